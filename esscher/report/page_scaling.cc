#include "esscher/report/page_scaling.h"

#include <cmath>

#include "esscher/base/number_text.h"
#include "esscher/scaling/boundary.h"

namespace esscher {
namespace {

const Axis kLength = {.column = "L", .title = "prompt length L", .log = true};

// --- numbers

// One column of the rows by schedule; what is not finite is left out.
template <class ValueOf>
Sheet curves(const std::vector<ScalingRow>& rows, const ValueOf& value_of) {
  Sheet sheet{.columns = {"L", "schedule", "value"}, .rows = {}};
  for (const ScalingRow& r : rows) {
    const double value = value_of(r);
    if (std::isfinite(value)) sheet.add(r.L, r.schedule, value);
  }
  return sheet;
}

Sheet freezing_sheet() {
  Sheet sheet{.columns = {"L", "boundary", "value"}, .rows = {}};
  for (int decade = 1; decade <= 15; ++decade) {
    const double x = decade * std::log(10.0);
    sheet.add(std::exp(x), "exact at this length", freezing_deviation(x));
    sheet.add(std::exp(x), "√(2 log L)", asymptotic_freezing_deviation(x));
  }
  return sheet;
}

Sheet retrieval_sheet() {
  Sheet sheet{.columns = {"c", "length", "value"}, .rows = {}};
  for (const int decade : {2, 4, 8, 15}) {
    for (int i = 1; i <= 30; ++i) {
      sheet.add(0.1 * i, "L = 1e" + std::to_string(decade),
                retrieval_gap(0.1 * i, decade * std::log(10.0)));
    }
  }
  for (int i = 3; i <= 30; ++i) sheet.add(0.1 * i, "limit", asymptotic_retrieval_gap(0.1 * i));
  return sheet;
}

void add_map(Sheet& cells, Sheet& lines, const std::string& panel, const PhaseMap& map) {
  for (const MapCell& c : map.cells) cells.add(panel, c.x, c.y, c.value);
  for (const MapLine& l : map.lines) {
    lines.add(panel, l.x, l.y, l.exact ? "exact at this length" : "limit of long prompts");
  }
}

struct Maps {
  Sheet cells, lines;
};
Maps empty_maps() {
  return {.cells = {.columns = {"panel", "x", "y", "value"}, .rows = {}},
          .lines = {.columns = {"panel", "x", "y", "line"}, .rows = {}}};
}

Maps weight_maps() {
  Maps out = empty_maps();
  add_map(out.cells, out.lines, "", weight_map());
  return out;
}

Maps needle_maps() {
  Maps out = empty_maps();
  for (const int decade : {2, 4, 15}) {
    add_map(out.cells, out.lines, "L = 1e" + std::to_string(decade),
            needle_map(decade * std::log(10.0)));
  }
  return out;
}

Sheet row_sheet(const std::vector<ScalingRow>& rows) {
  Sheet sheet{.columns = {"schedule", "L", "factor", "τ", "E H", "predicted", "limit of the phase",
                          "median H", "ESS", "entropy / log L", "needle", "phase", "freezes at ×",
                          "Δτ to the boundary"},
              .rows = {}};
  for (const ScalingRow& r : rows) {
    sheet.add(r.schedule, r.L, r.factor, r.tau, r.H, r.crossover_H, r.predicted_H, r.H_median,
              r.ess, r.entropy, r.needle, r.phase, r.freezing_multiple, r.boundary_distance);
  }
  return sheet;
}

// --- words

std::string event_text(const ScalingEvent& e) {
  const std::string at = "at L = " + brief(e.L < 1e4 ? std::round(e.L) : e.L, 3);
  const std::string under = "Under the schedule “" + e.schedule + "” ";
  switch (e.change) {
    case ScalingChange::dilutes:
      return under + "the needle's weight falls below one half " + at + ".";
    case ScalingChange::recovers:
      return under + "the needle's weight rises above one half " + at + ".";
    case ScalingChange::freezes: return under + "the weights freeze on few tokens " + at + ".";
    case ScalingChange::thaws: break;
  }
  return under + "the weights thaw " + at + ".";
}

std::string setting_text(const ScoreModel& scores, double gap) {
  const std::string law =
      scores.is_gaussian()
          ? "Scores are Gaussian with deviation " + brief(scores.deviation(1)) + " at factor 1."
          : "Scores are those of " + scores.layer()->mu.name() +
                " tokens at one query, with deviation " + brief(scores.deviation(1)) +
                " at factor 1.";
  return law + " The needle is one more token whose score lies " + brief(gap) +
         " above the mean at factor 1.";
}

Figure schedule_figure(const std::string& id, Axis y, const std::string& caption) {
  return {.id = id,
          .chart = CurveChart{.data = id,
                              .x = kLength,
                              .y = std::move(y),
                              .series = "schedule",
                              .series_title = "schedule",
                              .reference_data = id + "_predicted"},
          .caption = caption};
}

// What happens along the schedules, in the order of the lengths.
std::string answer_text(const std::vector<ScalingEvent>& events) {
  std::string text;
  for (const ScalingEvent& e : events) text += (text.empty() ? "" : " ") + event_text(e);
  return text.empty()
             ? "Between 2 and 1e15 tokens no schedule freezes, thaws, loses or finds the needle."
             : text;
}

// " At L = 1e8 it is 0.4 (log, c = 1) and 1e-8 (constant)." of the longest prompts.
template <class ValueOf>
std::string at_the_end(const std::vector<ScalingRow>& rows, const ValueOf& value_of) {
  double longest = 0;
  for (const ScalingRow& r : rows) longest = std::fmax(longest, r.L);
  std::string out;
  for (const ScalingRow& r : rows) {
    if (r.L != longest) continue;
    out += (out.empty() ? " At L = " + brief(longest, 3) + " it is " : ", ") +
           brief(value_of(r), 3) + " (" + r.schedule + ")";
  }
  return out + ".";
}

// The largest distance of the one formula for all phases from the exact mean of the squared weights.
std::string formula_text(const std::vector<ScalingRow>& rows) {
  double worst = 0;
  for (const ScalingRow& r : rows) worst = std::fmax(worst, std::abs(r.crossover_H / r.H - 1));
  return " Dashed: the one formula for all phases, here within " + brief(100 * worst, 2) + " %.";
}

Section schedule_section(const std::vector<ScalingRow>& rows) {
  Section section{.id = "schedules", .title = "The weights along each schedule"};
  const auto H = [](const ScalingRow& r) { return r.H; };
  const auto entropy = [](const ScalingRow& r) { return r.entropy; };
  const auto needle = [](const ScalingRow& r) { return r.needle; };
  section.figures = {
      schedule_figure(
          "participation", {.column = "value", .title = "E Σω²", .log = true},
          "Mean of Σω² against prompt length, exact." + at_the_end(rows, H) + formula_text(rows)),
      schedule_figure(
          "entropy", {.column = "value", .title = "entropy / log L"},
          "Mean entropy of the weights divided by log L: 1 is uniform, 0 is one token." +
              at_the_end(rows, entropy) + " Dashed: the one formula for all phases."),
      schedule_figure("needle", {.column = "value", .title = "weight of the needle", .log = true},
                      "Expected weight of the needle." + at_the_end(rows, needle) +
                          " Dashed: the one formula for all phases.")};
  section.tables = {{.title = "All lengths", .sheet = row_sheet(rows)}};
  return section;
}

std::string length_text(int decade) { return "L = 1e" + std::to_string(decade); }

// " At L = 1e2 it is 2.7 instead of 3.0, at L = 1e15 8.2 instead of 8.3."
std::string freezing_text() {
  std::string out;
  for (const int decade : {2, 15}) {
    const double x = decade * std::log(10.0);
    out += (out.empty() ? " At " : ", at ") + length_text(decade) +
           (out.empty() ? " it is " : " ") + brief(freezing_deviation(x), 3) + " instead of " +
           brief(asymptotic_freezing_deviation(x), 3);
  }
  return out + ".";
}

// " At c = 0.5 it is 2.4 at L = 1e2 and 2.26 at L = 1e15, where the limit is 2.25."
std::string retrieval_text(double c) {
  const auto at = [&](int decade) {
    return brief(retrieval_gap(c, decade * std::log(10.0)), 3) + " at " + length_text(decade);
  };
  return " At c = " + brief(c) + " it is " + at(2) + " and " + at(15) + ", where the limit is " +
         brief(asymptotic_retrieval_gap(c), 3) + ".";
}

Section map_section() {
  Section section{.id = "maps", .title = "Phase diagrams"};
  section.text =
      "Solid lines are boundaries at finite length, dashed ones their limits; where they part, "
      "formulas for long prompts mislead.";
  section.figures = {
      {.id = "weight_map",
       .chart = HeatmapChart{.data = "weight_map",
                             .x = "x",
                             .x_title = "score deviation τ",
                             .y = "y",
                             .y_title = "log₁₀ L",
                             .value = {.column = "value",
                                       .title = "E Σω²",
                                       .log = true,
                                       .min = 1e-15,
                                       .max = 1.0},
                             .lines_data = "weight_map_lines",
                             .line = "line"},
       .caption = "Mean of Σω² over the score deviation and the logarithm of the prompt length. "
                  "Solid: the deviation where weights freeze at this length. Dashed: √(2 log L)." +
                  freezing_text()},
      {.id = "needle_map",
       .chart = HeatmapChart{.data = "needle_map",
                             .x = "x",
                             .x_title = "c = τ / √(log L)",
                             .y = "y",
                             .y_title = "gap / √(log L)",
                             .value = {.column = "value",
                                       .title = "weight of the needle",
                                       .min = 0.0,
                                       .max = 1.0},
                             .panel = "panel",
                             .lines_data = "needle_map_lines",
                             .line = "line"},
       .caption =
           "Weight of a token over c and its gap above the mean, at three lengths. Solid: the gap "
           "where it weighs one half. Dashed: the limit 1/c + c/2, which is √2 in the frozen "
           "phase." +
           retrieval_text(0.5)}};
  return section;
}

Section boundary_section() {
  Section section{.id = "boundaries", .title = "Phases at finite length"};
  section.text =
      "Gaussian scores of deviation τ freeze near τ = √(2 log L); at finite length the boundary is "
      "where E Σω² has its asymptotic value there, 1/√(π log L). Under τ = c√(log L) a token is "
      "retrieved if its gap, in units of √(log L) before multiplication, lies above the curve.";
  section.figures = {
      {.id = "freezing",
       .chart = CurveChart{.data = "freezing",
                           .x = kLength,
                           .y = {.column = "value", .title = "score deviation τ"},
                           .series = "boundary"},
       .caption = "The deviation at which weights freeze: exact at each length, and its limit. At "
                  "L = 1000 it is " +
                  brief(freezing_deviation(std::log(1e3)), 3) + " instead of " +
                  brief(asymptotic_freezing_deviation(std::log(1e3)), 3) + "."},
      {.id = "retrieval",
       .chart = CurveChart{.data = "retrieval",
                           .x = {.column = "c", .title = "c = τ / √(log L)"},
                           .y = {.column = "value", .title = "gap / √(log L)", .max = 6.0},
                           .series = "length",
                           .series_order = {"L = 1e2", "L = 1e4", "L = 1e8", "L = 1e15", "limit"},
                           .points = false},
       .caption = "The gap at which a token weighs one half: exact at four lengths, and the limit "
                  "1/c + c/2, which is √2 in the frozen phase." +
                  retrieval_text(2)}};
  return section;
}

}  // namespace

Page scaling_page(const ScoreModel& scores, const std::vector<ScalingRow>& rows,
                  const std::vector<ScalingEvent>& events, double gap) {
  Page page{.title = "What temperature a long prompt needs",
            .lead = answer_text(events),
            .setting = setting_text(scores, gap)};
  const auto add = [&](const std::string& id, auto exact, auto predicted) {
    page.datasets[id] = curves(rows, exact);
    page.datasets[id + "_predicted"] = curves(rows, predicted);
  };
  add(
      "participation", [](const ScalingRow& r) { return r.H; },
      [](const ScalingRow& r) { return r.crossover_H; });
  add(
      "entropy", [](const ScalingRow& r) { return r.entropy; },
      [](const ScalingRow& r) { return r.crossover_entropy; });
  add(
      "needle", [](const ScalingRow& r) { return r.needle; },
      [](const ScalingRow& r) { return r.crossover_needle; });
  page.datasets["freezing"] = freezing_sheet();
  page.datasets["retrieval"] = retrieval_sheet();
  Maps weights = weight_maps(), needles = needle_maps();
  page.datasets["weight_map"] = std::move(weights.cells);
  page.datasets["weight_map_lines"] = std::move(weights.lines);
  page.datasets["needle_map"] = std::move(needles.cells);
  page.datasets["needle_map_lines"] = std::move(needles.lines);
  page.sections = {schedule_section(rows), map_section(), boundary_section()};
  return page;
}

}  // namespace esscher
