#include "esscher/store/detail/old_rows.h"

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace esscher {
namespace {

void modernise_concentration(Json& row) {
  Json out = Json::object();
  for (const auto& [key, value] : row.items()) {
    const std::string name = key == "bias" ? "bias2" : key;
    if (value.is_null()) {
      out[name] = key == "asymptotic" ? "inf" : "nan";
    } else if (key == "cov" && value.is_string()) {
      out[name] = Json::array();
      std::istringstream numbers(value.get<std::string>());
      for (double x = 0; numbers >> x;) out[name].push_back(x);
    } else {
      out[name] = value;
    }
  }
  row = std::move(out);
}

// "U_1_0" of the first head is row 1 of U, "head1_r_0" entry D + 0 of r.
void modernise_training(Json& row) {
  Json out = Json::object();
  std::size_t width = 0;
  while (row.contains("r_" + std::to_string(width)) ||
         row.contains("head0_r_" + std::to_string(width))) {
    ++width;
  }
  const auto is_entry = [](const std::string& key) {
    return key.starts_with("U_") || key.starts_with("r_") ||
           (key.starts_with("head") && key.find('_') != std::string::npos);
  };
  for (const auto& [key, value] : row.items()) {
    if (width == 0 || !is_entry(key)) out[key] = value;
  }
  const auto entry = [&](const std::string& key) {
    return row[key].is_null() ? Json("nan") : row[key];
  };
  for (std::size_t head = 0; width > 0; ++head) {
    const bool one = row.contains("r_0");
    const std::string prefix = one ? "" : "head" + std::to_string(head) + "_";
    if (!row.contains(prefix + "r_0")) break;
    for (std::size_t i = 0; i < width; ++i) {
      Json line = Json::array();
      for (std::size_t j = 0; j < width; ++j) {
        line.push_back(entry(prefix + "U_" + std::to_string(i) + "_" + std::to_string(j)));
      }
      out["U"].push_back(std::move(line));
      out["r"].push_back(entry(prefix + "r_" + std::to_string(i)));
    }
    if (one) break;
  }
  row = std::move(out);
}

Json or_nan(const Json& value) { return value.is_null() ? Json("nan") : value; }

// {"a": {"lin": x, "lin_c": y}} becomes {"a_lin": x, "a_lin_c": y}.
Json without_pairs(const Json& object) {
  Json out = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && value.contains("lin")) {
      out[key + "_lin"] = or_nan(value["lin"]);
      out[key + "_lin_c"] = or_nan(value["lin_c"]);
    } else if (!value.is_null()) {
      out[key] = value;
    }
  }
  return out;
}

const char* verdict_kind(const std::string& words) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> kKinds = {
      {{"linear here", "linear_here"},
       {"linear from", "linear_from"},
       {"linear within", "linear_within"},
       {"too short", "too_short"},
       {"needs", "needs_components"}}};
  for (const auto& [start, kind] : kKinds) {
    if (words.starts_with(start)) return kind;
  }
  return "not_linearisable";
}

// Nulls that were no numbers: the row types of today leave these values absent.
bool may_be_absent(const std::string& name) {
  static const std::set<std::string> kNames = {
      "conserved_drift", "alpha",  "limit_distance", "limit_b", "distance", "risk_before",
      "best_k",          "length", "fitted_up_to",   "value",   "lambda",   "gamma"};
  return kNames.contains(name);
}

void modernise_nulls(std::string_view verb, Json& row) {
  for (auto& [name, value] : row.items()) {
    if (!value.is_null() || may_be_absent(name)) continue;
    value = verb == "paper" && name == "constant" ? "inf" : "nan";
  }
}

void modernise_heads(std::string_view verb, Json& row) {
  const auto detail = row.find("detail");
  if (detail == row.end() || !detail->is_string()) return;
  Json old = parse_json(verb, detail->get<std::string>());
  for (const char* name : {"tau2", "ess", "frozen", "kurtosis", "top_weight", "dominant", "lin",
                           "lin_c", "control_lin_c"}) {
    old[name] = or_nan(old[name]);
  }
  Json out = without_pairs(old);
  if (out.contains("tau2_range")) {
    out["tau2_low"] = or_nan(out["tau2_range"][0]);
    out["tau2_high"] = or_nan(out["tau2_range"][1]);
  }
  out["linear_from"] = out.contains("linear_from") ? out["linear_from"] : Json("inf");
  Json mixtures = Json::array();
  for (const Json& mixture : out["mixtures"]) mixtures.push_back(without_pairs(mixture));
  out["mixtures"] = std::move(mixtures);
  const Json density = out.contains("score_mixture") ? out["score_mixture"]["density"] : Json();
  out["score_mixture"] = density.is_array() ? density : Json::array();
  out["verdict_kind"] = verdict_kind(out["verdict"].get<std::string>());
  for (const char* gone : {"tau2_range", "linear_from_text", "gaussian_lin", "gaussian_lin_c"}) {
    out.erase(gone);
  }
  row = std::move(out);
}

}  // namespace

void modernise(std::string_view verb, Json& row) {
  if (verb == "concentration") modernise_concentration(row);
  if (verb.starts_with("icl ")) modernise_training(row);
  if (verb == "heads") modernise_heads(verb, row);
  modernise_nulls(verb, row);
}

std::map<std::string, ColumnType> old_types(std::string_view verb) {
  std::map<std::string, ColumnType> out;
  if (verb == "icl flow" || verb == "icl compare" || verb == "paper") {
    out["L"] = ColumnType::length;
    out["length"] = ColumnType::integer;
  }
  if (verb == "heads") {
    out["linear_from"] = ColumnType::length;
    for (const char* name : {"mixtures", "cost", "prefixes"}) out[name] = ColumnType::table;
  }
  return out;
}

}  // namespace esscher
