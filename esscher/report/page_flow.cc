#include "esscher/report/page_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "esscher/base/number_text.h"
#include "esscher/report/detail/head_map.h"
#include "esscher/report/detail/row_sheet.h"

namespace esscher {
namespace {

constexpr double kLimitTolerance = 1e-6;

// Where a log axis may end: rounding begins about twelve decades below the start.
std::optional<double> floor_of(const std::vector<FlowRow>& path) {
  double top = 0, bottom = HUGE_VAL;
  for (const FlowRow& row : path) {
    top = std::fmax(top, row.risk);
    bottom = std::fmin(bottom, row.risk);
  }
  if (bottom >= 1e-12 * top) return std::nullopt;
  return 1e-12 * top;
}

CurveChart over_time(const std::string& column, const std::string& title) {
  return {.data = "path",
          .x = {.column = "t", .title = "time", .log = true},
          .y = {.column = column, .title = title, .log = true},
          .points = false};
}

std::string risk_caption(const FlowRecord& flow) {
  std::string text = "Half the mean squared error falls from " + brief(flow.path.front().risk) +
                     " to " + brief(flow.path.back().risk) + ". ";
  if (!flow.summary.bayes) return text + "The Bayes risk of this task is not known.";
  if (*flow.summary.bayes > 0) {
    return text + "The line is the Bayes risk at this length, " + brief(*flow.summary.bayes) + ".";
  }
  return text + "The Bayes risk is 0, so a log axis has no line for it.";
}

Section risk_section(const FlowRecord& flow) {
  const FlowRow& end = flow.summary;
  Section section{.id = "risk", .title = "Risk along the gradient flow"};
  section.text = "Model " + std::string(name(*end.model)) + ", L = " + end.L->text() +
                 ", parametrisation " + std::string(name(*end.parametrisation)) +
                 ". Ended: " + std::string(name(*end.status)) + " at t = " + brief(end.t, 6) + ".";
  CurveChart chart = over_time("risk", "risk");
  const double bayes = end.bayes.value_or(0);
  if (bayes > 0) chart.references.push_back({.axis = 'y', .value = bayes, .label = "Bayes"});
  chart.y.min = floor_of(flow.path);
  section.figures.push_back(
      {.id = "risk", .chart = std::move(chart), .caption = risk_caption(flow)});
  section.tables.push_back(
      {.title = "Where the flow ended and what it kept",
       .sheet = sheet_of_rows(
           std::vector<FlowRow>{end},
           {"status", "t", "risk", "risk_std_error", "bayes", "gradient_norm", "conserved_drift",
            "energy_defect", "largest_increase", "steps", "evaluations"})});
  return section;
}

Section limit_section(const FlowRecord& flow) {
  const double distance = *flow.summary.limit_distance;
  Section section{.id = "limit", .title = "Distance to the limit of the formula"};
  section.verdict = limit_verdict(*flow.summary.status, distance);
  section.text = "The balanced start must end at b A = Gamma^-1 with b = tr(Gamma^-2)^{1/4} = " +
                 brief(*flow.summary.limit_b) + ".";
  section.figures.push_back(
      {.id = "distance",
       .chart = over_time("distance", "distance"),
       .caption = "The distance |(U, V) - limit| over time; it ends at " + brief(distance) + "."});
  return section;
}

}  // namespace

Verdict limit_verdict(FlowStatus status, double distance) {
  const std::string text = "distance at the end " + brief(distance, 6);
  if (status != FlowStatus::stationary) {
    return {VerdictStatus::info, text + "; the flow did not become stationary"};
  }
  return {distance < kLimitTolerance ? VerdictStatus::holds : VerdictStatus::fails, text};
}

Page flow_page(const FlowRecord& flow, const std::string& rerun) {
  Page page{.title = "Gradient flow of in-context regression",
            .lead = "d theta/dt = -grad R, integrated by CVODE on exact risks."};
  page.datasets["path"] =
      sheet_of_rows(last_four_decades(flow.path, [](const FlowRow& row) { return row.t; }),
                    {"t", "risk", "gradient_norm", "distance"});
  page.sections.push_back(risk_section(flow));
  Section parameters{.id = "parameters", .title = "Parameters over time"};
  std::vector<TimedHeads> heads;
  for (const FlowRow& row : flow.path) heads.push_back({row.t, {row.readout()}});
  parameters.figures.push_back(head_map(page, "parameters", heads, "t"));
  page.sections.push_back(std::move(parameters));
  if (flow.summary.limit_distance) page.sections.push_back(limit_section(flow));
  for (Section& section : page.sections) section.rerun = rerun;
  return page;
}

}  // namespace esscher
