#include "esscher/report/page_risk.h"

#include <cmath>
#include <map>
#include <utility>

#include "esscher/base/number_text.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

// --- numbers

// The smallest risk of a trained model of one kind at one length.
using Least = std::map<std::pair<std::string, std::string>, double>;

Least least_of(const std::vector<RiskRow>& rows) {
  Least out;
  for (const RiskRow& row : rows) {
    if (!row.trained) continue;
    const auto at = out.try_emplace({row.model, row.L.text()}, row.risk).first;
    at->second = std::fmin(at->second, row.risk);
  }
  return out;
}

double ratio_of(const RiskRow& row, const Least& least) {
  return row.risk / least.at({row.model, row.L.text()});
}

Sheet map_sheet(const std::vector<RiskRow>& rows, const Least& least) {
  Sheet sheet{.columns = {"model", "trained", "tested", "ratio", "risk"}, .rows = {}};
  for (const RiskRow& row : rows) {
    if (!row.trained || !(row.risk > 0)) continue;
    sheet.add(row.model, row.trained->text(), row.L.text(), ratio_of(row, least), row.risk);
  }
  return sheet;
}

// Infinite prompts have no place on the axis.
Sheet curve_sheet(const std::vector<RiskRow>& rows) {
  Sheet sheet{.columns = {"L", "prediction", "model", "risk"}, .rows = {}};
  for (const RiskRow& row : rows) {
    if (row.L.is_infinite()) continue;
    sheet.add(static_cast<double>(row.L.count()),
              row.trained ? "trained at L = " + row.trained->text() : row.model,
              row.trained ? row.model : "reference", row.risk);
  }
  return sheet;
}

Sheet risk_sheet(const std::vector<RiskRow>& rows) {
  Sheet sheet{.columns = {"trained at", "tested at", "model", "risk", "± risk", "engine"},
              .rows = {}};
  for (const RiskRow& row : rows) {
    sheet.add(row.trained ? row.trained->text() : std::string("—"), row.L.text(), row.model,
              row.risk, row.std_error, std::string(name(row.engine)));
  }
  return sheet;
}

// --- words

std::string loss_of(const std::vector<RiskRow>& rows) {
  return std::string(mean_of(rows.front().loss.value_or(TaskLoss::squared)));
}

// The model that does worst beside another one at the same length.
std::string headline(const std::vector<RiskRow>& rows, const Least& least) {
  const RiskRow *worst = nullptr, *better = nullptr;
  for (const RiskRow& row : rows) {
    if (!row.trained) continue;
    if (worst == nullptr || ratio_of(row, least) > ratio_of(*worst, least)) worst = &row;
  }
  for (const RiskRow& row : rows) {
    if (row.trained && row.model == worst->model && row.L == worst->L &&
        (better == nullptr || row.risk < better->risk)) {
      better = &row;
    }
  }
  if (worst == better) {
    return "The model was trained at L = " + worst->trained->text() +
           "; at L = " + worst->L.text() + " its risk is " + brief(worst->risk, 3) + ".";
  }
  return "Lengths matter most at L = " + worst->L.text() + ": the " + worst->model +
         " model that was trained at L = " + worst->trained->text() + " has the risk " +
         brief(worst->risk, 3) + " there, the one from L = " + better->trained->text() + " " +
         brief(better->risk, 3) + ".";
}

// Risks beside each other at the longest finite prompt, or at infinity if there is no other.
std::string untrained_headline(const std::vector<RiskRow>& rows) {
  Length at = rows.front().L;
  for (const RiskRow& row : rows) {
    if (!row.L.is_infinite() && (at.is_infinite() || row.L.count() > at.count())) at = row.L;
  }
  std::string out = "At L = " + at.text() + " the risk is ";
  bool first = true;
  for (const RiskRow& row : rows) {
    if (row.L != at) continue;
    const bool has_error = row.std_error > 1e-6 * row.risk;
    out += (first ? "" : ", ") +
           (has_error ? brief_with_error(row.risk, row.std_error) : brief(row.risk, 3)) + " (" +
           (row.model == "bayes" ? "Bayes" : row.model) + ")";
    first = false;
  }
  return out + ".";
}

Figure risk_curves() {
  return {.id = "curves",
          .chart = CurveChart{.data = "curves",
                              .x = {.column = "L", .title = "prompt length L", .log = true},
                              .y = {.column = "risk", .title = "risk", .log = true},
                              .series = "prediction",
                              .series_title = "prediction"},
          .caption =
              "Half the mean squared error against prompt length; infinite prompts stand in "
              "the table only.",
          .read = true};
}

// A model whose length of training nobody knows: its risks against the length.
Page untrained_page(const std::vector<RiskRow>& rows) {
  Page page{.title = "The risk of a model at any prompt length", .lead = untrained_headline(rows)};
  Section section{.id = "risks", .title = "Risks"};
  Sheet curves{.columns = {"L", "prediction", "risk"}, .rows = {}};
  for (const RiskRow& row : rows) {
    if (row.L.is_infinite()) continue;
    curves.add(static_cast<double>(row.L.count()), row.model == "bayes" ? "Bayes" : row.model,
               row.risk);
  }
  if (!curves.rows.empty()) {
    page.datasets = {{"curves", std::move(curves)}};
    section.figures = {risk_curves()};
  }
  section.tables = {{.title = "Risks", .sheet = risk_sheet(rows)}};
  page.sections = {std::move(section)};
  add_readings(page);
  return page;
}

}  // namespace

Page risk_page(const std::vector<RiskRow>& rows) {
  const Least least = least_of(rows);
  if (least.empty()) return untrained_page(rows);
  Page page{.title = "Trained at one length, tested at another", .lead = headline(rows, least)};
  page.datasets = {{"map", map_sheet(rows, least)}, {"curves", curve_sheet(rows)}};
  Section map{.id = "map", .title = "Risk over both lengths"};
  map.text =
      "Each row of a map is a length of test; its colour is the risk divided by the smallest risk "
      "of a model in that row.";
  map.figures = {{.id = "map",
                  .chart = HeatmapChart{.data = "map",
                                        .x = "trained",
                                        .x_title = "trained at L",
                                        .y = "tested",
                                        .y_title = "tested at L",
                                        .value = {.column = "ratio",
                                                  .title = "risk / smallest risk",
                                                  .log = true,
                                                  .max = 10.0},
                                        .panel = "model",
                                        .tooltip = {"model", "trained", "tested", "risk", "ratio"}},
                  .caption = "Risk over the smallest risk at the same length of test.",
                  .read = true}};
  map.figures.push_back(
      {.id = "curves",
       .chart = CurveChart{.data = "curves",
                           .x = {.column = "L", .title = "tested at L", .log = true},
                           .y = {.column = "risk", .title = "risk", .log = true},
                           .series = "prediction",
                           .series_title = "prediction",
                           .dash = "model"},
       .caption = "The risk, " + loss_of(rows) + ", against the length of test.",
       .read = true});
  map.tables = {{.title = "Risks", .sheet = risk_sheet(rows)}};
  page.sections = {std::move(map)};
  add_readings(page);
  return page;
}

}  // namespace esscher
