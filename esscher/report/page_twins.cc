#include "esscher/report/page_twins.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/report/detail/row_sheet.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

// Limiting risks at L = infinity and the smallest over finite lengths; NaN where there is none.
struct Limits {
  double infinite = NAN;
  double smallest = NAN;
};

bool is_infinite(const TwinRow& row) { return row.L && row.L->is_infinite(); }

Limits limits_of(const CompareResult& result) {
  Limits out;
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row)) {
      out.infinite = row.limiting_risk.value_or(NAN);
    } else {
      out.smallest = std::fmin(out.smallest, row.limiting_risk.value_or(NAN));
    }
  }
  return out;
}

// A layer without a formula flows on fixed prompts.
bool is_drawn(const CompareResult& result) {
  return std::ranges::any_of(result.twins, [](const TwinRow& row) {
    return row.task.has_value() && row.engine == Engine::direct;
  });
}

Sheet finals(const CompareResult& result) {
  Sheet sheet{.columns = {"L", "model", "risk"}, .rows = {}};
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row)) continue;
    sheet.add(row.L->count(), row.model, row.limiting_risk);
    if (row.bayes && *row.bayes > 0) {
      sheet.add(row.L->count(), row.bound ? "Bayes, the law known" : "Bayes", row.bayes);
    }
  }
  return sheet;
}

Sheet twins_over_time(const CompareResult& result) {
  Sheet sheet{.columns = {"prompt", "model", "t", "risk", "distance", "gradient_gap"}, .rows = {}};
  const auto time = [](const TwinRow& row) { return row.t.value_or(0); };
  for (const TwinRow& row : last_four_decades(result.path, time)) {
    const std::string prompt = is_infinite(row) ? "L = ∞" : "L = " + brief(row.L->count());
    if (is_infinite(row)) {  // it is the reference: its distance and its gap are zero
      sheet.add(prompt, "limit", row.t, row.risk, Value(), Value());
    } else {
      sheet.add(prompt, row.model, row.t, row.risk, row.distance, row.gradient_gap);
    }
  }
  return sheet;
}

CurveChart over_time(const std::string& column, const std::string& title) {
  return {.data = "twins",
          .x = {.column = "t", .title = "time", .log = true},
          .y = {.column = column, .title = title, .log = true},
          .series = "prompt",
          .dash = "model",
          .points = false};
}

CurveChart over_length(const std::string& data, const std::string& column,
                       const std::string& title) {
  return {.data = data,
          .x = {.column = "L", .title = "prompt length L", .log = true},
          .y = {.column = column, .title = title, .log = true},
          .series = "model"};
}

// A sentence for the Bayes risk where a log axis cannot show it.
std::string bayes_note(const CompareResult& result) {
  bool known = false, zero = true;
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row) || !row.bayes) continue;
    known = true;
    zero = zero && *row.bayes <= 0;
  }
  return known && zero ? " The Bayes risk is 0 at these lengths, below any log axis." : "";
}

// "The smallest limiting risk at a finite length is 0.2; at L = ∞ it is 0.1."
std::string limits_text(const Limits& limits) {
  const bool finite = std::isfinite(limits.smallest), infinite = std::isfinite(limits.infinite);
  std::string out = "The limiting risk against prompt length.";
  if (finite) out += " The smallest at a finite length is " + brief(limits.smallest, 3) + ".";
  if (infinite) out += " At L = ∞ it is " + brief(limits.infinite, 3) + ".";
  return out;
}

Section final_section(const CompareResult& result, const Limits& limits) {
  Section section{.id = "final", .title = "Limiting risk against prompt length"};
  section.text =
      "The risk where each flow stops, against the Bayes risk at the same length, if it is known.";
  CurveChart chart = over_length("finals", "risk", "limiting risk");
  if (limits.infinite > 1e-6 * limits.smallest) {
    chart.references.push_back({.axis = 'y', .value = limits.infinite, .label = "L = ∞"});
  }
  section.figures.push_back({.id = "final",
                             .chart = std::move(chart),
                             .caption = limits_text(limits) + bayes_note(result)});
  section.tables.push_back(
      {.title = "Flows",
       .sheet =
           sheet_of_rows(result.twins, {"model", "L", "status", "t", "limiting_risk", "std_error",
                                        "bayes", "excess", "sup_distance", "sup_gradient_gap",
                                        "sup_gradient_gap_std_error", "horizon"})});
  if (!result.lengths.empty()) {
    section.tables.push_back(
        {.title = "L(ε): the smallest length whose limiting risk is within ε of that at L = ∞",
         .sheet = sheet_of_rows(result.lengths, {"model", "eps", "length", "length_low",
                                                 "length_high", "status", "risk", "risk_before"})});
  }
  return section;
}

// ": its largest value is between 0.1 and 0.2" over the finite lengths; nothing if none was measured.
std::string largest_text(const CompareResult& result, std::optional<double> TwinRow::*column) {
  double largest = NAN, smallest = NAN;
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row)) continue;
    largest = std::fmax(largest, (row.*column).value_or(NAN));
    smallest = std::fmin(smallest, (row.*column).value_or(NAN));
  }
  const std::string low = brief(smallest, 3), high = brief(largest, 3);
  if (std::isnan(largest)) return "";
  return low == high ? ": its largest value is " + low
                     : ": its largest value is between " + low + " and " + high;
}

Section time_section(const CompareResult& result, const Limits& limits) {
  Section section{.id = "time", .title = "Twin trajectories"};
  section.text =
      "All flows begin at the same parameters. Shades are lengths, dashes tell softmax from linear "
      "attention.";
  CurveChart risk = over_time("risk", "risk");
  // The flow at L = infinity may fall to rounding; finite lengths are what is compared.
  if (limits.smallest > 0) risk.y.min = limits.smallest / 100;
  section.figures.push_back(
      {.id = "twin-risk",
       .chart = std::move(risk),
       .caption = "Risk along each flow: a line levels off at its limiting risk" +
                  (std::isfinite(limits.infinite)
                       ? ", and that of the infinite prompt at " + brief(limits.infinite, 3)
                       : std::string()) +
                  "."});
  section.figures.push_back(
      {.id = "twin-distance",
       .chart = over_time("distance", "distance of the parameters from L = ∞"),
       .caption = "Distance of the parameters from those at L = ∞ at the same time" +
                  largest_text(result, &TwinRow::sup_distance) + "."});
  return section;
}

Section gap_section(const CompareResult& result) {
  Section section{.id = "gap", .title = "Gradient gap"};
  section.text =
      "How far the gradient of the risk at length L is from that at L = ∞, along the path of the "
      "infinite prompt.";
  section.figures.push_back(
      {.id = "sup-gap",
       .chart = over_length("gaps", "sup_gradient_gap", "largest gap of the gradients"),
       .caption = "The gap of the gradients along the path, at each length" +
                  largest_text(result, &TwinRow::sup_gradient_gap) + "."});
  section.figures.push_back({.id = "gap",
                             .chart = over_time("gradient_gap", "gap of the gradients"),
                             .caption = "The gap of the gradients over time. Where it stays "
                                        "small, training at length L follows that of the infinite "
                                        "prompt.",
                             .read = true});
  return section;
}

// What the flows say, in a sentence or two: the lengths that are needed, or the risks that are left.
std::string headline(const CompareResult& result, const Limits& limits) {
  std::string text, sep;
  double eps = NAN;
  for (const TwinRow& row : result.lengths) {
    if (!row.length || (std::isfinite(eps) && row.eps != eps)) continue;
    eps = row.eps.value_or(NAN);
    text += sep + row.model + " attention needs " + std::to_string(*row.length) + " tokens";
    sep = ", ";
  }
  if (!text.empty()) {
    return "To end within " + brief(eps, 3) + " of the risk of the infinite prompt " + text + ".";
  }
  const TwinRow* longest = nullptr;
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row)) continue;
    if (longest == nullptr || row.L->count() > longest->L->count()) longest = &row;
  }
  if (longest == nullptr) return "The flow of the infinite prompt alone was run.";
  text = "Trained on prompts of " + brief(longest->L->count()) + " tokens";
  for (const TwinRow& row : result.twins) {
    if (is_infinite(row) || *row.L != *longest->L || !row.limiting_risk) continue;
    text += sep + " " + row.model + " attention ends at risk " + brief(*row.limiting_risk, 3);
    sep = ",";
  }
  return text + "; the infinite prompt ends at " + brief(limits.infinite, 3) + ".";
}

}  // namespace

Page twins_page(const CompareResult& result, const std::string& rerun) {
  const Limits limits = limits_of(result);
  Page page{.title = "Finite and infinite prompts, trained side by side",
            .lead = headline(result, limits),
            .setting = std::string("All models follow the gradient flow of their ") +
                       (is_drawn(result) ? "risk on prompts that are drawn once, from one start."
                                         : "exact risk from one start.")};
  page.datasets["finals"] = finals(result);
  page.datasets["gaps"] =
      sheet_of_rows(result.twins, {"L", "model", "sup_gradient_gap", "sup_distance"});
  page.datasets["twins"] = twins_over_time(result);
  page.sections = {final_section(result, limits), time_section(result, limits),
                   gap_section(result)};
  for (Section& section : page.sections) section.rerun = rerun;
  add_readings(page);
  return page;
}

}  // namespace esscher
