#include "esscher/report/page_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "esscher/base/number_text.h"
#include "esscher/report/detail/head_map.h"
#include "esscher/report/detail/row_sheet.h"
#include "esscher/report/setting.h"

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

// Until the risk has fallen by a two-hundredth of its fall, nothing is to be seen: a log axis of time
// begins there.
std::vector<FlowRow> where_something_happens(const std::vector<FlowRow>& path) {
  const double begin = path.front().risk, fall = begin - path.back().risk;
  const auto first = std::find_if(path.begin(), path.end(), [&](const FlowRow& row) {
    return row.t > 0 && begin - row.risk >= fall / 200;
  });
  std::vector<FlowRow> out(first, path.end());
  return out.size() < 5 ? path : out;
}

// "falls from 0.5 to 0.1"; a flow that starts where it ends "stays at 0.5".
std::string fall_text(const FlowRecord& flow, int digits) {
  const std::string first = brief(flow.path.front().risk, digits);
  const std::string last = brief(flow.path.back().risk, digits);
  return first == last ? "stays at " + last : "falls from " + first + " to " + last;
}

std::string headline(const FlowRecord& flow) {
  const FlowRow& end = flow.summary;
  std::string text = "The risk " + fall_text(flow, 3) + "; the flow " +
                     (*end.status == FlowStatus::stationary ? "is stationary" : "was stopped") +
                     " at t = " + brief(end.t, 3);
  if (!end.bayes) return text + ".";
  return text + (end.bound ? ", and no prediction has less than " : ", and the Bayes risk is ") +
         brief(*end.bayes, 3) + ".";
}

std::string coordinates_text(const FlowRow& end) {
  return end.parametrisation
             ? " with the parametrisation “" + std::string(name(*end.parametrisation)) + "”"
             : " in the family “" + std::string(name(*end.family)) + "”";
}

// Fixed prompts stand for the exact risk where it has no formula.
std::string integrated_text(const FlowRow& end) {
  return end.is_layer() && *end.engine == Engine::direct
             ? "CVODE integrates the gradient flow of the risk on prompts that are drawn once."
             : "CVODE integrates the gradient flow of the exact risk.";
}

PageTable residual_table(const Matrix& W) {
  PageTable table{.title = "Residual W at the end", .sheet = {}};
  for (Index j = 0; j < W.cols(); ++j) table.sheet.columns.push_back(std::to_string(j + 1));
  for (Index i = 0; i < W.rows(); ++i) {
    Record row;
    for (Index j = 0; j < W.cols(); ++j) row.emplace_back(W(i, j));
    table.sheet.add_row(std::move(row));
  }
  return table;
}

CurveChart over_time(const std::string& column, const std::string& title) {
  return {.data = "path",
          .x = {.column = "t", .title = "time", .log = true},
          .y = {.column = column, .title = title, .log = true},
          .points = false};
}

std::string loss_of(const FlowRecord& flow) {
  return std::string(mean_of(flow.summary.loss.value_or(TaskLoss::squared)));
}

std::string risk_caption(const FlowRecord& flow) {
  std::string text = "The risk, " + loss_of(flow) + ", " + fall_text(flow, 4) + ". ";
  if (!flow.summary.bayes) return text + "The Bayes risk of this task is not known.";
  if (*flow.summary.bayes > 0) {
    return text + "The line is the Bayes risk at this length, " + brief(*flow.summary.bayes) + ".";
  }
  return text + "The Bayes risk is 0, so a log axis has no line for it.";
}

Section risk_section(const FlowRecord& flow) {
  const FlowRow& end = flow.summary;
  Section section{.id = "risk", .title = "Risk along the gradient flow"};
  CurveChart chart = over_time("risk", "risk, " + loss_of(flow));
  const double bayes = end.bayes.value_or(0);
  if (bayes > 0) {
    chart.references.push_back(
        {.axis = 'y', .value = bayes, .label = end.bound ? "Bayes, the law known" : "Bayes"});
  }
  if (end.affine) {
    chart.references.push_back(
        {.axis = 'y', .value = *end.affine, .label = "best affine map of the query"});
  }
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
  section.text =
      "From the balanced start the flow must end at bA = Γ^{−1} with b = (tr Γ^{−2})^{1/4} = " +
      brief(*flow.summary.limit_b) + ".";
  section.figures.push_back({.id = "distance",
                             .chart = over_time("distance", "distance to the limit"),
                             .caption = "Distance of (U, V) to the limit over time; it ends at " +
                                        brief(distance, 3) + "."});
  return section;
}

}  // namespace

Verdict limit_verdict(FlowStatus status, double distance) {
  const std::string text = "The distance at the end is " + brief(distance, 3);
  if (status != FlowStatus::stationary) {
    return {VerdictStatus::info, text + "; the flow did not become stationary."};
  }
  return {distance < kLimitTolerance ? VerdictStatus::holds : VerdictStatus::fails, text + "."};
}

Page flow_page(const FlowRecord& flow, const std::string& rerun) {
  const FlowRow& end = flow.summary;
  Page page{.title = "Gradient flow of in-context " + task_words(end.task.value_or("regression")),
            .lead = headline(flow)};
  page.setting = "The model is " + *end.model + " attention at L = " +
                 (end.L->is_infinite() ? std::string("∞") : brief(end.L->count())) +
                 coordinates_text(end) + "; " + integrated_text(end);
  page.datasets["path"] =
      sheet_of_rows(where_something_happens(flow.path), {"t", "risk", "gradient_norm", "distance"});
  page.sections.push_back(risk_section(flow));
  Section parameters{.id = "parameters", .title = "Parameters over time"};
  std::vector<TimedHeads> heads;
  for (const FlowRow& row : flow.path) {
    heads.push_back(row.is_layer() ? timed_heads(row.t, row.layer(end))
                                   : timed_heads(row.t, {row.readout()}));
  }
  if (end.is_layer()) parameters.tables.push_back(residual_table(*end.W));
  parameters.figures.push_back(head_map(page, "parameters", heads, "t"));
  page.sections.push_back(std::move(parameters));
  if (flow.summary.limit_distance) page.sections.push_back(limit_section(flow));
  for (Section& section : page.sections) section.rerun = rerun;
  return page;
}

}  // namespace esscher
