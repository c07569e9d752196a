#include "esscher/report/icl_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "esscher/report/chart.h"

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

// Entries of U and of the readout row r (drawn as one more row) at `time` for a
// heatmap with a slider: {stop, row, column, value}.
struct Heatmap {
  Json data = Json::array();
  std::vector<double> stops;
};

Heatmap heatmap(const std::vector<Json>& rows, const char* time) {
  Heatmap out;
  const std::size_t n = rows.size();
  for (int k = 0; n > 0 && k < kSliderStops; ++k) {
    const std::size_t i = k * (n - 1) / (kSliderStops - 1);
    const double t = value_of(rows[i], time);
    if (!out.stops.empty() && t <= out.stops.back()) continue;
    out.stops.push_back(t);
    for (const auto& [key, entry] : rows[i].items()) {
      const bool in_U = key.rfind("U_", 0) == 0, in_r = key.rfind("r_", 0) == 0;
      if (!in_U && !in_r) continue;
      const std::size_t split = key.find('_', 2);
      const std::string row = in_U ? "U" + key.substr(2, split - 2) : "V last";
      const std::string column = in_U ? key.substr(split + 1) : key.substr(2);
      out.data.push_back({{time, t}, {"row", row}, {"column", column}, {"value", entry}});
    }
  }
  return out;
}

Json heatmap_figure(const Heatmap& map, const std::string& time, const std::string& title) {
  HeatmapChart chart;
  chart.data = "parameters";
  chart.x = "column";
  chart.x_title = "column";
  chart.y = "row";
  chart.y_title = "";
  chart.value = {.column = "value"};
  chart.diverging = true;
  chart.slider = time;
  chart.slider_title = title;
  chart.slider_values = map.stops;
  return figure("parameters", heatmap_chart(chart),
                "U = K'Q entry by entry, and the last row of V, which the "
                "prediction reads.");
}

Json section(const std::string& id, const std::string& title, const std::string& text,
             const std::string& rerun, const std::string& status = "info",
             const std::string& verdict = "") {
  Json out{{"id", id}, {"title", title}, {"statement", ""}, {"hypotheses", Json::array()}};
  out["verdict"] = {{"status", status}, {"text", verdict}};
  out["text"] = text;
  out["formulas"] = Json::array();
  out["figures"] = Json::array();
  out["tables"] = Json::array();
  out["rerun"] = rerun;
  return out;
}

std::string text_of(const Json& value) {
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
  const Json summary = rows.back();
  Json datasets{{"path", series(path, {"t", "risk", "gradient_norm", "distance"})}};

  CurveChart risk{.data = "path", .x = {"t", "time", true}, .y = {"risk", "risk", true}};
  risk.points = false;
  const double bayes = value_of(summary, "bayes");
  if (bayes > 0) risk.references.push_back({'y', bayes, "Bayes"});
  Json main = section("risk", "Risk along the gradient flow",
                      "Model " + text_of(summary["model"]) + ", L = " + text_of(summary["L"]) +
                          ", parametrisation " + text_of(summary["parametrisation"]) + ". Ended: " +
                          text_of(summary["status"]) + " at t = " + text_of(summary["t"]) + ".",
                      rerun);
  main["figures"].push_back(figure("risk", curve_chart(risk),
                                   "Half the mean squared error; the line is the Bayes risk."));
  main["tables"].push_back(
      table("Where the flow ended and what it kept", {summary},
            {"status", "t", "risk", "risk_std_error", "bayes", "gradient_norm", "conserved_drift",
             "energy_defect", "largest_increase", "steps", "evaluations"}));

  Json parameters = section("parameters", "Parameters over time", "Move the slider.", rerun);
  const Heatmap map = heatmap(path, "t");
  datasets["parameters"] = map.data;
  parameters["figures"].push_back(heatmap_figure(map, "t", "time"));
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
  double limit = NAN;
  for (const Json& row : summaries) {
    if (!row["L"].is_number()) {
      limit = value_of(row, "limiting_risk");
      continue;
    }
    finals.push_back({{"L", row["L"]}, {"model", row["model"]}, {"risk", row["limiting_risk"]}});
    finals.push_back({{"L", row["L"]}, {"model", "bayes"}, {"risk", row["bayes"]}});
  }
  Json datasets{{"finals", finals},
                {"gaps", series(summaries, {"L", "model", "sup_gradient_gap", "sup_distance"})},
                {"twins", series(path, {"flow", "t", "risk", "distance", "gradient_gap"})}};

  Json final_section = section("final", "Limiting risk against prompt length",
                               "The risk where each flow stops, against the "
                               "Bayes risk at the same length.",
                               rerun);
  CurveChart final_chart{.data = "finals",
                         .x = {"L", "prompt length L", true},
                         .y = {"risk", "limiting risk", true},
                         .series = "model"};
  if (limit > 0) final_chart.references.push_back({'y', limit, "L = infinity"});
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
  for (const Json& row : risks) {
    if (row["model"] == "bayes" && value_of(row, "risk") > 0) {
      chart.references.push_back({'y', value_of(row, "risk"), "Bayes"});
      break;
    }
  }
  curve["figures"].push_back(figure("loss", curve_chart(chart), "Training loss as risk."));
  curve["tables"].push_back(
      table("Risk of the trained model", risks, {"L", "model", "risk", "std_error", "engine"}));
  Json sections = Json::array({curve});
  if (!checkpoints.empty() && checkpoints.front().contains("r_0")) {
    Json parameters = section("parameters", "Parameters over training", "Move the slider.", rerun);
    const Heatmap map = heatmap(checkpoints, "step");
    datasets["parameters"] = map.data;
    parameters["figures"].push_back(heatmap_figure(map, "step", "step"));
    sections.push_back(parameters);
  }
  return {{"title", "Training of in-context regression"},
          {"lead", "Stochastic gradients on fresh prompts."},
          {"sections", sections},
          {"datasets", datasets}};
}

}  // namespace esscher
