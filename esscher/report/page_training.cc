#include "esscher/report/page_training.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/report/detail/head_map.h"
#include "esscher/report/detail/row_sheet.h"
#include "esscher/report/setting.h"

namespace esscher {
namespace {

std::string loss_of(const TrainResult& result) {
  return std::string(mean_of(result.final_risk.loss.value_or(TaskLoss::squared)));
}

std::string loss_caption(const TrainResult& result, const std::vector<ReferenceLine>& lines) {
  std::string text = "The loss, " + loss_of(result) + ", on fresh prompts";
  if (!result.losses.empty()) {
    text +=
        ", from " + brief(*result.losses.front().loss) + " to " + brief(*result.losses.back().loss);
  }
  text += ". ";
  for (const ReferenceLine& line : lines) {
    text += "The line “" + line.label + "” is at " + brief(line.value, 3) + ". ";
  }
  text.pop_back();
  return text;
}

Section loss_section(const TrainResult& result, const std::vector<RiskRow>& risks) {
  Section section{.id = "loss", .title = "Loss over training"};
  section.text =
      "Each point is the mean of a block of steps, drawn at its last step, so the curve begins "
      "with "
      "the first block. The band is two standard errors.";
  CurveChart chart{.data = "loss",
                   .x = {.column = "step", .title = "step", .log = true},
                   .y = {.column = "loss", .title = "loss, " + loss_of(result), .log = true},
                   .low = "low",
                   .high = "high",
                   .references = bayes_lines(risks),
                   .points = false};
  const std::string caption = loss_caption(result, chart.references);
  section.figures.push_back({.id = "loss", .chart = std::move(chart), .caption = caption});
  section.tables.push_back(
      {.title = "Risk of the trained model",
       .sheet = sheet_of_rows(risks, {"L", "model", "risk", "std_error", "engine"})});
  return section;
}

// The final risk, and how many times the Bayes risk it is.
std::string headline(const TrainResult& result, const std::vector<RiskRow>& risks) {
  const RiskRow& end = result.final_risk;
  std::string text = "After " + brief(result.steps) + " steps the risk is " +
                     brief_with_error(end.risk, end.std_error);
  for (const RiskRow& row : risks) {
    if (row.model != "bayes" || row.L != end.L || !(row.risk > 0)) continue;
    text += ", " + brief(end.risk / row.risk, 3) + " times " +
            (row.bound ? "what no prediction beats, " : "the Bayes risk ") + brief(row.risk, 3);
  }
  return text + " at L = " + (end.L.is_infinite() ? std::string("∞") : brief(end.L.count())) + ".";
}

Section parameter_section(Page& page, const std::vector<TrainRow>& checkpoints) {
  Section section{.id = "parameters", .title = "Parameters over training"};
  std::vector<TimedHeads> path;
  for (const TrainRow& row : checkpoints) {
    const auto step = static_cast<double>(row.step);
    path.push_back(row.is_layer() ? timed_heads(step, row.layer())
                                  : timed_heads(step, row.heads()));
  }
  section.figures.push_back(head_map(page, "parameters", path, "step"));
  return section;
}

}  // namespace

std::vector<ReferenceLine> bayes_lines(const std::vector<RiskRow>& risks) {
  double bayes = NAN, limit = NAN;
  bool bound = false;
  for (const RiskRow& row : risks) {
    if (row.model == "bayes") (row.L.is_infinite() ? limit : bayes) = row.risk;
    bound = bound || row.bound.value_or(false);
  }
  const bool together = limit > 0 && bayes < 1.2 * limit;
  std::vector<ReferenceLine> lines;
  if (bayes > 0) {
    lines.push_back({.axis = 'y',
                     .value = bayes,
                     .label = together ? "Bayes risk, here and at L = ∞"
                              : bound  ? "Bayes, the law known"
                                       : "Bayes risk"});
  }
  if (limit > 0 && !together) {
    lines.push_back({.axis = 'y', .value = limit, .label = "Bayes risk at L = ∞"});
  }
  return lines;
}

Page training_page(const TrainResult& result, const std::vector<RiskRow>& risks,
                   const std::string& rerun) {
  Page page{
      .title = "Training of in-context " + (result.layer ? task_words(result.task) : "regression"),
      .lead = headline(result, risks)};
  page.datasets["loss"] = sheet_of_rows(result.losses, {"step", "loss", "low", "high"});
  page.datasets["risks"] = sheet_of_rows(risks, {"L", "model", "risk", "std_error"});
  page.sections.push_back(loss_section(result, risks));
  if (!result.checkpoints.empty()) {
    page.sections.push_back(parameter_section(page, result.checkpoints));
  }
  for (Section& section : page.sections) section.rerun = rerun;
  return page;
}

}  // namespace esscher
