#include "esscher/report/page_temperature.h"

#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/estimate/interval.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

// --- numbers

std::vector<TemperatureRow> of_kind(const std::vector<TemperatureRow>& rows,
                                    TemperatureRowKind kind) {
  std::vector<TemperatureRow> out;
  for (const TemperatureRow& row : rows) {
    if (row.what == kind) out.push_back(row);
  }
  return out;
}

// The shift of a task as a title says it.
std::string shift_words(const std::string& shift) {
  return shift == "none" ? "the task of training" : "shift " + shift;
}

// Risks over the smallest one of their shift and length, so that colours of all lengths compare.
Sheet map_sheet(const std::vector<TemperatureRow>& rows) {
  Sheet sheet{.columns = {"shift", "L", "temperature", "ratio", "risk"}, .rows = {}};
  for (const TemperatureRow& best : of_kind(rows, TemperatureRowKind::best)) {
    double least = best.risk.value_or(HUGE_VAL);
    std::vector<TemperatureRow> grid;
    for (const TemperatureRow& row : rows) {
      if (row.what == TemperatureRowKind::best || row.shift != best.shift || row.L != best.L)
        continue;
      grid.push_back(row);
      least = std::fmin(least, *row.risk);
    }
    for (const TemperatureRow& row : grid) {
      if (!(least > 0)) continue;
      sheet.add(shift_words(row.shift), row.L.text(), brief(row.scheduled * *row.temperature),
                *row.risk / least, *row.risk);
    }
  }
  return sheet;
}

struct Curves {
  Sheet best{.columns = {"L", "shift", "factor", "low", "high"}, .rows = {}};
  Sheet limit{.columns = {"L", "shift", "factor"}, .rows = {}};
  Sheet risks{.columns = {"L", "shift", "at", "risk"}, .rows = {}};
};

Curves curves_of(const std::vector<TemperatureRow>& rows) {
  Curves out;
  for (const TemperatureRow& row : of_kind(rows, TemperatureRowKind::best)) {
    if (row.L.is_infinite()) continue;
    const double L = static_cast<double>(row.L.count());
    if (row.limit_factor) out.limit.add(L, shift_words(row.shift), *row.limit_factor);
    out.risks.add(L, shift_words(row.shift), "as it is", *row.risk_before);
    if (!row.factor) continue;
    // The error comes from independent sets of nodes or draws, which are few.
    const double dof = RiskOptions{}.scramblings - 1;
    const Interval band = student_interval(*row.factor, *row.factor_std_error, dof);
    out.best.add(L, shift_words(row.shift), *row.factor, band.lo, band.hi);
    out.risks.add(L, shift_words(row.shift), "best temperature", *row.risk);
  }
  return out;
}

Sheet best_sheet(const std::vector<TemperatureRow>& rows) {
  Sheet sheet{
      .columns = {"shift", "L", "best temperature", "best factor", "± factor",
                  "best factor at L = ∞", "risk", "± risk", "risk as it is", "gain", "± gain"},
      .rows = {}};
  for (const TemperatureRow& r : of_kind(rows, TemperatureRowKind::best)) {
    sheet.add(r.shift, r.L.text(), r.temperature, r.factor, r.factor_std_error, r.limit_factor,
              r.risk, r.std_error, r.risk_before, r.gain, r.gain_std_error);
  }
  return sheet;
}

// --- words

// The best factors on the task of training: "Here they go from 5.4 at L = 10 to 4.4 at L = 100; .."
std::string factor_text(const std::vector<TemperatureRow>& rows) {
  const TemperatureRow *first = nullptr, *last = nullptr;
  const std::vector<TemperatureRow> best = of_kind(rows, TemperatureRowKind::best);
  for (const TemperatureRow& r : best) {
    if (r.shift != "none" || r.L.is_infinite() || !r.factor) continue;
    if (first == nullptr) first = &r;
    last = &r;
  }
  if (first == nullptr) return "";
  std::string out =
      " On the task of training it is " + brief(*first->factor, 3) + " at L = " + first->L.text();
  if (last != first) out += " and " + brief(*last->factor, 3) + " at L = " + last->L.text();
  if (last->limit_factor) out += ", and " + brief(*last->limit_factor, 3) + " at L = inf";
  return out + ".";
}

// The largest share of a risk that the best temperature saves, where it is beyond its error.
std::string headline(const std::vector<TemperatureRow>& rows) {
  const TemperatureRow* most = nullptr;
  double share = 0;
  const std::vector<TemperatureRow> best = of_kind(rows, TemperatureRowKind::best);
  for (const TemperatureRow& r : best) {
    if (!r.gain || !(*r.gain > 3 * *r.gain_std_error) || !(*r.risk_before > 0)) continue;
    if (*r.gain / *r.risk_before <= share) continue;
    share = *r.gain / *r.risk_before;
    most = &r;
  }
  if (most == nullptr) return "No temperature is better than the one in force, beyond its error.";
  return "Temperature buys most at L = " + most->L.text() +
         (most->shift == "none" ? std::string(" on the task of training")
                                : " under the shift “" + most->shift + "”") +
         ": at T = " + brief(*most->temperature, 3) + " the risk is " + brief(*most->risk, 3) +
         " instead of " + brief(*most->risk_before, 3) + ".";
}

}  // namespace

Page temperature_page(const std::vector<TemperatureRow>& rows) {
  Page page{.title = "What temperature buys", .lead = headline(rows)};
  Curves curves = curves_of(rows);
  const bool dashed = !curves.limit.rows.empty();
  page.datasets = {{"map", map_sheet(rows)},
                   {"best", std::move(curves.best)},
                   {"best_limit", std::move(curves.limit)},
                   {"risks", std::move(curves.risks)}};
  Section map{.id = "map", .title = "Risk over length and temperature"};
  map.text =
      "Scores are divided by the temperature, on top of the schedule if there is one. Each row of "
      "a "
      "map is one prompt length; its colour is the risk divided by the smallest risk of that row.";
  map.figures = {{.id = "map",
                  .chart = HeatmapChart{.data = "map",
                                        .x = "temperature",
                                        .x_title = "temperature",
                                        .y = "L",
                                        .y_title = "prompt length L",
                                        .value = {.column = "ratio",
                                                  .title = "risk / smallest risk",
                                                  .log = true,
                                                  .max = 10.0},
                                        .panel = "shift",
                                        .tooltip = {"shift", "L", "temperature", "risk", "ratio"}},
                  .caption = "Risk over the smallest risk of the same length, one map for each "
                             "shift of the task.",
                  .read = true}};
  const Axis length{.column = "L", .title = "prompt length L", .log = true};
  Section best{.id = "best", .title = "The best temperature"};
  best.text =
      "A finite prompt sees large scores too seldom, so its best factor differs from that of an "
      "infinite prompt, which has a closed form. Bands are 95 % intervals.";
  best.figures = {
      {.id = "best",
       .chart = CurveChart{.data = "best",
                           .x = length,
                           .y = {.column = "factor", .title = "best factor on scores, 1/T"},
                           .series = "shift",
                           .series_title = "task",
                           .low = "low",
                           .high = "high",
                           .reference_data = dashed ? "best_limit" : "",
                           .reference_title = "infinite prompt"},
       .caption = std::string("The factor with the smallest risk against prompt length.") +
                  (dashed ? " Dashed: the best factor of an infinite prompt." : "") +
                  factor_text(rows)},
      {.id = "risks",
       .chart = CurveChart{.data = "risks",
                           .x = length,
                           .y = {.column = "risk", .title = "risk", .log = true},
                           .series = "shift",
                           .series_title = "task",
                           .dash = "at"},
       .caption = "The risk of the model as it is, and at its best temperature.",
       .read = true}};
  best.tables = {{.title = "Best temperatures", .sheet = best_sheet(rows)}};
  page.sections = {std::move(map), std::move(best)};
  add_readings(page);
  return page;
}

}  // namespace esscher
