#include "esscher/model/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "esscher/base/error.h"
#include "esscher/heads/windowed_outputs.h"
#include "esscher/io/strict_json.h"

namespace esscher {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& where, const std::string& got,
                         const std::string& expected) {
  throw FileError(where + " is " + got + ", expected " + expected);
}

void check_keys(const std::string& where, const Json& json, const std::set<std::string>& known) {
  if (!json.is_object()) refuse(where, json.dump().substr(0, 60), "an object");
  for (const auto& [key, value] : json.items()) {
    if (known.contains(key)) continue;
    std::string words;
    for (const std::string& word : known) words += (words.empty() ? "" : ", ") + word;
    throw FileError(where + ": unknown key \"" + key + "\", expected one of " + words);
  }
}

Index whole(const std::string& where, const Json& json, const char* key, Index fallback) {
  if (!json.contains(key)) {
    if (fallback < 0) refuse(where + "." + key, "missing", "a whole number");
    return fallback;
  }
  const Json& value = json[key];
  if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 1e9) {
    refuse(where + "." + key, value.dump(), "a whole number from 0 to 10^9");
  }
  return value.get<Index>();
}

// None for "window": null.
std::optional<WindowOptions> window_in(const std::string& where, const Json& json) {
  if (json.contains("window") && json["window"].is_null()) return std::nullopt;
  WindowOptions out{.window = whole(where, json, "window", -1),
                    .sinks = whole(where, json, "sinks", 1),
                    .heavy = whole(where, json, "heavy", 0)};
  if (json.contains("tail")) {
    if (!json["tail"].is_string()) refuse(where + ".tail", json["tail"].dump(), "a word");
    try {
      out.tail = parse_enum<Tail>(json["tail"].get<std::string>());
    } catch (const ArgumentError& error) {
      throw FileError(where + ".tail: " + error.what());
    }
  }
  if (out.tail == Tail::mixture) refuse(where + ".tail", "\"mixture\"", "a tail that needs no fit");
  if (out.window < std::max<Index>(1, out.sinks)) {
    refuse(where + ".window", std::to_string(out.window), "at least 1 and the number of sinks");
  }
  if (out.tail == Tail::rotary && out.heavy > 0) {
    refuse(where + ".heavy", std::to_string(out.heavy), "0 with a rotary tail");
  }
  return out;
}

Json window_json(const std::optional<WindowOptions>& window) {
  if (!window) return {{"window", nullptr}};
  return {{"window", window->window},
          {"sinks", window->sinks},
          {"heavy", window->heavy},
          {"tail", name(window->tail)}};
}

}  // namespace

std::optional<WindowOptions> HeadPlan::at(Index layer, Index head) const {
  const auto found = heads.find({layer, head});
  return found == heads.end() ? fallback : found->second;
}

HeadPlan parse_plan(std::string_view where, std::string_view text) {
  check_strict_json(where, text);
  const Json json = Json::parse(text, nullptr, false);
  const std::string file(where);
  check_keys(file, json, {"default", "heads"});
  HeadPlan plan;
  if (json.contains("default") && !json["default"].is_null()) {
    check_keys(file + ": default", json["default"], {"window", "sinks", "heavy", "tail"});
    plan.fallback = window_in(file + ": default", json["default"]);
  }
  if (!json.contains("heads")) return plan;
  if (!json["heads"].is_array())
    refuse(file + ": heads", json["heads"].dump().substr(0, 60), "a list");
  for (std::size_t i = 0; i < json["heads"].size(); ++i) {
    const std::string at = file + ": heads[" + std::to_string(i) + "]";
    const Json& one = json["heads"][i];
    check_keys(at, one, {"layer", "head", "window", "sinks", "heavy", "tail"});
    const std::pair key{whole(at, one, "layer", -1), whole(at, one, "head", -1)};
    if (!plan.heads.try_emplace(key, window_in(at, one)).second) {
      throw FileError(at + ": layer " + std::to_string(key.first) + ", head " +
                      std::to_string(key.second) + " is named twice");
    }
  }
  return plan;
}

std::string plan_text(const HeadPlan& plan) {
  Json out{{"default", plan.fallback ? window_json(plan.fallback) : Json(nullptr)},
           {"heads", Json::array()}};
  for (const auto& [key, window] : plan.heads) {
    Json one = window_json(window);
    one["layer"] = key.first;
    one["head"] = key.second;
    out["heads"].push_back(std::move(one));
  }
  return out.dump(1) + "\n";
}

void check_plan(const HeadPlan& plan, const ModelSpec& spec) {
  for (const auto& [key, window] : plan.heads) {
    if (key.first >= spec.layers || key.second >= spec.heads) {
      throw_argument("plan", "head",
                     "layer " + std::to_string(key.first) + ", head " + std::to_string(key.second),
                     "layers below " + std::to_string(spec.layers) + " and heads below " +
                         std::to_string(spec.heads));
    }
  }
  const auto rotary = [](const auto& window) { return window && window->tail == Tail::rotary; };
  bool any = rotary(plan.fallback);
  for (const auto& [key, window] : plan.heads) any = any || rotary(window);
  if (any && spec.family != ModelFamily::llama) {
    throw_argument("plan", "tail", "rotary", "another tail: this model has no rotary positions");
  }
}

HeadRule planned_heads(const HeadPlan& plan, const ModelSpec& spec) {
  check_plan(plan, spec);
  return [plan, rotary = spec.rotary](const HeadInput& in) -> Matrix {
    std::optional<WindowOptions> options = plan.at(in.layer, in.head);
    if (!options) return softmax_head(in);
    if (options->tail == Tail::rotary) options->rotary = rotary;
    return windowed_outputs(*options, in.Q, in.K, in.V, in.scale);
  };
}

PlanState plan_state(const HeadPlan& plan, const ModelSpec& spec, Index n) {
  PlanState out;
  const Index pair = 2 * spec.head_dim;
  out.cache = spec.layers * spec.kv_heads * n * pair;
  const Index group = spec.heads / spec.kv_heads;
  for (Index l = 0; l < spec.layers; ++l) {
    for (Index g = 0; g < spec.kv_heads; ++g) {
      // Heads that share their keys share what they keep alike: exact ones the cache, windows of the
      // same options their pairs and moments.
      std::set<std::tuple<Index, Index, Index, Tail>> kept;
      bool exact = false;
      for (Index h = g * group; h < (g + 1) * group; ++h) {
        const auto window = plan.at(l, h);
        exact = exact || !window || window->window >= n;
        if (!window) continue;
        const bool alone = window->heavy > 0;  // heavy keys depend on the queries of one head
        kept.insert({window->window, window->sinks, alone ? h + 1 : 0, window->tail});
      }
      if (exact) {
        out.plan += n * pair;
        continue;
      }
      for (const auto& [w, sinks, alone, tail] : kept) {
        const Index heavy = alone > 0 ? plan.at(l, alone - 1)->heavy : 0;
        out.plan += std::min(n, w + heavy) * (pair + (heavy > 0 ? 2 : 0)) +
                    tail_state(tail, spec.head_dim, spec.head_dim);
      }
    }
  }
  return out;
}

}  // namespace esscher
