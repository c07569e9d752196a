#include "esscher/report/icl_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "esscher/report/vega_lite.h"

namespace esscher {
namespace {

constexpr int kSliderStops = 40;

double value_of(const Json& row, const char* column) {
  const auto found = row.find(column);
  return found != row.end() && found->is_number() ? found->get<double>() : NAN;
}

std::vector<Json> of_kind(const std::vector<Json>& rows, const char* what) {
  std::vector<Json> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out),
               [&](const Json& row) { return row.value("what", "") == what; });
  return out;
}

// Where a log axis may end: rounding begins about twelve decades below the start.
std::optional<double> floor_of(const std::vector<Json>& rows, const char* column) {
  double top = 0, bottom = HUGE_VAL;
  for (const Json& row : rows) {
    top = std::fmax(top, value_of(row, column));
    bottom = std::fmin(bottom, value_of(row, column));
  }
  if (bottom >= 1e-12 * top) return std::nullopt;
  return 1e-12 * top;
}

Json columns(const Json& row, std::initializer_list<const char*> names) {
  Json out = Json::object();
  for (const char* name : names) out[name] = row.contains(name) ? row[name] : Json();
  return out;
}

Json series(const std::vector<Json>& rows, std::initializer_list<const char*> names) {
  Json out = Json::array();
  for (const Json& row : rows) out.push_back(columns(row, names));
  return out;
}

Json figure(const std::string& id, Json spec, const std::string& caption) {
  return {{"id", id}, {"spec", std::move(spec)}, {"caption", caption}};
}

// Entries of U and of the readout row r (drawn as one more row) at `time` for a heatmap with a
// slider: {stop, row, column, value}; of the columns of one head that begin with `tag`.
struct Heatmap {
  Json data = Json::array();
  std::vector<double> stops;
  double largest = 0;  // absolute value
};

// Six digits are what a reader can use; a stop of the slider and its rows keep the same ones.
std::string brief(double x) { return fmt::format("{:.6g}", x); }

Heatmap heatmap(const std::vector<Json>& rows, const char* time, const std::string& tag = "") {
  Heatmap out;
  const std::size_t n = rows.size();
  for (int k = 0; n > 0 && k < kSliderStops; ++k) {
    const std::size_t i = k * (n - 1) / (kSliderStops - 1);
    const double t = std::stod(brief(value_of(rows[i], time)));
    if (!out.stops.empty() && t <= out.stops.back()) continue;
    out.stops.push_back(t);
    for (const auto& [name, entry] : rows[i].items()) {
      if (name.rfind(tag, 0) != 0) continue;
      const std::string key = name.substr(tag.size());
      const bool in_U = key.rfind("U_", 0) == 0, in_r = key.rfind("r_", 0) == 0;
      if (!in_U && !in_r) continue;
      const std::size_t split = key.find('_', 2);
      const std::string row = in_U ? "U" + key.substr(2, split - 2) : "V last";
      const std::string column = in_U ? key.substr(split + 1) : key.substr(2);
      if (entry.is_number()) out.largest = std::max(out.largest, std::abs(entry.get<double>()));
      out.data.push_back({{time, t}, {"row", row}, {"column", column}, {"value", entry}});
    }
  }
  return out;
}

Json heatmap_figure(const Heatmap& map, const std::string& data, const std::string& time,
                    const std::string& title, const std::string& who = "") {
  HeatmapChart chart;
  chart.data = data;
  chart.x = "column";
  chart.x_title = "column";
  chart.y = "row";
  chart.y_title = "";
  chart.value = {.column = "value"};
  if (map.largest > 0) {  // the same colour strength for the same size, whatever the sign
    chart.value.min = -map.largest;
    chart.value.max = map.largest;
  }
  chart.diverging = true;
  chart.slider = time;
  chart.slider_title = title;
  chart.slider_values = map.stops;
  return figure(data, heatmap_chart(chart),
                who + "U = K'Q entry by entry, and the last row of V, which the prediction reads.");
}

Json section(const std::string& id, const std::string& title, const std::string& text,
             const std::string& rerun, const std::string& status = "info",
             const std::string& verdict = "") {
  Json out{{"id", id}, {"title", title}, {"statement", ""}, {"hypotheses", Json::array()}};
  if (status != "info" || !verdict.empty()) {
    out["verdict"] = {{"status", status}, {"text", verdict}};
  }
  out["text"] = text;
  out["formulas"] = Json::array();
  out["figures"] = Json::array();
  out["tables"] = Json::array();
  out["rerun"] = rerun;
  return out;
}

// A log axis of time begins four decades before the end: the solver's first steps are far smaller.
std::vector<Json> visible(const std::vector<Json>& path) {
  double end = 0;
  for (const Json& row : path) end = std::max(end, value_of(row, "t"));
  std::vector<Json> out;
  std::copy_if(path.begin(), path.end(), std::back_inserter(out),
               [&](const Json& row) { return value_of(row, "t") >= 1e-4 * end; });
  return out;
}

std::string text_of(const Json& value) {
  if (value.is_number_float()) return brief(value.get<double>());
  return value.is_string() ? value.get<std::string>() : dump(value);
}

Json table(const std::string& title, const std::vector<Json>& rows,
           std::initializer_list<const char*> names) {
  Json out{{"title", title}, {"columns", Json::array()}, {"rows", Json::array()}};
  for (const char* name : names) out["columns"].push_back(name);
  for (const Json& row : rows) {
    Json line = Json::array();
    for (const char* name : names) line.push_back(row.contains(name) ? row[name] : Json());
    out["rows"].push_back(line);
  }
  return out;
}

}  // namespace

Json flow_report(const std::vector<Json>& rows, const std::string& rerun) {
  const std::vector<Json> path = of_kind(rows, "path");
  const Json& summary = rows.back();
  Json datasets{{"path", series(visible(path), {"t", "risk", "gradient_norm", "distance"})}};

  CurveChart risk{.data = "path", .x = {"t", "time", true}, .y = {"risk", "risk", true}};
  risk.points = false;
  const double bayes = value_of(summary, "bayes");
  if (bayes > 0) risk.references.push_back({'y', bayes, "Bayes"});
  risk.y.min = floor_of(path, "risk");
  Json main = section("risk", "Risk along the gradient flow",
                      "Model " + text_of(summary["model"]) + ", L = " + text_of(summary["L"]) +
                          ", parametrisation " + text_of(summary["parametrisation"]) + ". Ended: " +
                          text_of(summary["status"]) + " at t = " + text_of(summary["t"]) + ".",
                      rerun);
  main["figures"].push_back(figure(
      "risk", curve_chart(risk),
      bayes > 0 ? "Half the mean squared error; the line is the Bayes risk at this length."
                : "Half the mean squared error. The Bayes risk is 0, so a log axis has no line for "
                  "it."));
  main["tables"].push_back(
      table("Where the flow ended and what it kept", {summary},
            {"status", "t", "risk", "risk_std_error", "bayes", "gradient_norm", "conserved_drift",
             "energy_defect", "largest_increase", "steps", "evaluations"}));

  Json parameters = section("parameters", "Parameters over time", "Move the slider.", rerun);
  const Heatmap map = heatmap(path, "t");
  datasets["parameters"] = map.data;
  parameters["figures"].push_back(heatmap_figure(map, "parameters", "t", "time"));
  Json sections = Json::array({main, parameters});

  if (summary.contains("limit_distance") && summary["limit_distance"].is_number()) {
    const double end = value_of(summary, "limit_distance");
    const bool holds = summary["status"] == "stationary" && end < 1e-6;
    Json limit = section("limit", "Distance to the limit of the formula",
                         "The balanced start must end at b A = Gamma^-1 with b = "
                         "tr(Gamma^-2)^{1/4}.",
                         rerun,
                         holds                               ? "holds"
                         : summary["status"] == "stationary" ? "fails"
                                                             : "info",
                         "distance at the end " + text_of(summary["limit_distance"]));
    CurveChart chart{.data = "path", .x = {"t", "time", true}, .y = {"distance", "distance", true}};
    chart.points = false;
    limit["figures"].push_back(figure("distance", curve_chart(chart), "|(U, V) - limit|"));
    sections.push_back(limit);
  }
  return {{"title", "Gradient flow of in-context regression"},
          {"lead", "d theta/dt = -grad R, integrated by CVODE on exact risks."},
          {"sections", sections},
          {"datasets", datasets}};
}

Json compare_report(const std::vector<Json>& rows, const std::string& rerun) {
  std::vector<Json> path = of_kind(rows, "path"), summaries = of_kind(rows, "summary");
  const std::vector<Json> lengths = of_kind(rows, "length");
  for (Json& row : path) row["flow"] = text_of(row["model"]) + " L=" + text_of(row["L"]);
  Json finals = Json::array();
  double limit = NAN, smallest = NAN;  // at infinite and over finite lengths
  for (const Json& row : summaries) {
    if (!row["L"].is_number()) {
      limit = value_of(row, "limiting_risk");
      continue;
    }
    smallest = std::fmin(smallest, value_of(row, "limiting_risk"));
    finals.push_back({{"L", row["L"]}, {"model", row["model"]}, {"risk", row["limiting_risk"]}});
    finals.push_back({{"L", row["L"]}, {"model", "bayes"}, {"risk", row["bayes"]}});
  }
  Json datasets{
      {"finals", finals},
      {"gaps", series(summaries, {"L", "model", "sup_gradient_gap", "sup_distance"})},
      {"twins", series(visible(path), {"flow", "t", "risk", "distance", "gradient_gap"})}};

  Json final_section = section("final", "Limiting risk against prompt length",
                               "The risk where each flow stops, against the "
                               "Bayes risk at the same length.",
                               rerun);
  CurveChart final_chart{.data = "finals",
                         .x = {"L", "prompt length L", true},
                         .y = {"risk", "limiting risk", true},
                         .series = "model"};
  if (limit > 1e-6 * smallest) final_chart.references.push_back({'y', limit, "L = infinity"});
  final_section["figures"].push_back(
      figure("final", curve_chart(final_chart), "Trained softmax, trained linear, Bayes."));
  final_section["tables"].push_back(
      table("Flows", summaries,
            {"model", "L", "status", "t", "limiting_risk", "std_error", "bayes", "excess",
             "sup_distance", "sup_gradient_gap", "horizon"}));
  if (!lengths.empty()) {
    final_section["tables"].push_back(
        table("L(eps): smallest length whose limiting risk is within eps of L = "
              "infinity",
              lengths, {"model", "eps", "length", "status", "risk", "risk_before"}));
  }

  Json time =
      section("time", "Twin trajectories",
              "Same start; distance to the flow at L = infinity, and risk, over time.", rerun);
  CurveChart distance{.data = "twins",
                      .x = {"t", "time", true},
                      .y = {"distance", "|theta_L - theta_inf|", true},
                      .series = "flow"};
  distance.points = false;
  CurveChart risk{
      .data = "twins", .x = {"t", "time", true}, .y = {"risk", "risk", true}, .series = "flow"};
  risk.points = false;
  // The flow at L = infinity may fall to rounding; finite lengths are what is compared.
  if (smallest > 0) risk.y.min = smallest / 100;
  time["figures"].push_back(figure("twin-risk", curve_chart(risk), "Risk along each flow."));
  time["figures"].push_back(
      figure("twin-distance", curve_chart(distance), "Distance of parameters."));

  Json gap = section("gap", "Gradient gap",
                     "sup over the path at L = infinity of |grad R_L - grad R_inf|.", rerun);
  CurveChart sup{.data = "gaps",
                 .x = {"L", "prompt length L", true},
                 .y = {"sup_gradient_gap", "sup gradient gap", true},
                 .series = "model"};
  CurveChart along{.data = "twins",
                   .x = {"t", "time", true},
                   .y = {"gradient_gap", "gradient gap", true},
                   .series = "flow"};
  along.points = false;
  gap["figures"].push_back(figure("sup-gap", curve_chart(sup), "Largest gap along the path."));
  gap["figures"].push_back(figure("gap", curve_chart(along), "Gap over time."));
  return {{"title", "Finite and infinite prompts, trained side by side"},
          {"lead", "Gradient flows on exact risks from one start."},
          {"sections", Json::array({final_section, time, gap})},
          {"datasets", datasets}};
}

Json train_report(const std::vector<Json>& rows, const std::string& rerun) {
  const std::vector<Json> loss = of_kind(rows, "loss"), checkpoints = of_kind(rows, "checkpoint"),
                          risks = of_kind(rows, "risk");
  Json datasets{{"loss", series(loss, {"step", "loss", "low", "high"})},
                {"risks", series(risks, {"L", "model", "risk", "std_error"})}};
  Json curve = section("loss", "Loss over training",
                       "Means over blocks of steps; the band is two "
                       "standard errors.",
                       rerun);
  CurveChart chart{.data = "loss",
                   .x = {"step", "step", true},
                   .y = {"loss", "loss", true},
                   .low = "low",
                   .high = "high"};
  chart.points = false;
  double bayes = NAN, limit = NAN;
  for (const Json& row : risks) {
    if (row["model"] == "bayes") (row["L"].is_number() ? bayes : limit) = value_of(row, "risk");
  }
  const bool together = limit > 0 && bayes < 1.2 * limit;  // labels would overlap
  if (bayes > 0) {
    chart.references.push_back(
        {'y', bayes, together ? "Bayes, here and at L = infinity" : "Bayes"});
  }
  if (limit > 0 && !together) chart.references.push_back({'y', limit, "L = infinity"});
  curve["figures"].push_back(
      figure("loss", curve_chart(chart),
             "Half the mean squared error on fresh prompts. Lines: the Bayes risk at this length, "
             "and its limit at L = infinity."));
  curve["tables"].push_back(
      table("Risk of the trained model", risks, {"L", "model", "risk", "std_error", "engine"}));
  Json sections = Json::array({curve});
  if (!checkpoints.empty()) {
    Json parameters = section("parameters", "Parameters over training", "Move the slider.", rerun);
    const auto add = [&](const std::string& tag, const std::string& data, const std::string& who) {
      const Heatmap map = heatmap(checkpoints, "step", tag);
      datasets[data] = map.data;
      parameters["figures"].push_back(heatmap_figure(map, data, "step", "step", who));
    };
    if (checkpoints.front().contains("r_0")) add("", "parameters", "");
    for (int h = 0;; ++h) {
      const std::string tag = "head" + std::to_string(h) + "_";
      if (!checkpoints.front().contains(tag + "r_0")) break;
      add(tag, "parameters-" + std::to_string(h + 1), "Head " + std::to_string(h + 1) + ". ");
    }
    sections.push_back(parameters);
  }
  return {{"title", "Training of in-context regression"},
          {"lead", "Stochastic gradients on fresh prompts."},
          {"sections", sections},
          {"datasets", datasets}};
}

}  // namespace esscher
