#include "esscher/report/page_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "esscher/base/number_text.h"
#include "esscher/estimate/quantile.h"
#include "esscher/report/detail/layer_map.h"
#include "esscher/report/detail/page_head.h"
#include "esscher/report/reading.h"

namespace esscher {
namespace {

constexpr const char* kLimitFormula =
    "<math display=\"block\"><msub><mi>T</mi><mi>lin</mi></msub><mo "
    "stretchy=\"false\">(</mo><mi>q</mi><mo stretchy=\"false\">)</mo>"
    "<mo>=</mo><mi>E</mi><mi>V</mi><mo>+</mo><mi>Cov</mi><mo "
    "stretchy=\"false\">(</mo><mi>V</mi><mo>,</mo><mi>K</mi>"
    "<mo stretchy=\"false\">)</mo><mspace width=\"0.2em\"/><mi>scale</mi><mspace "
    "width=\"0.2em\"/><mi>q</mi></math>";

constexpr const char* kOverviewText =
    "All figures are medians over queries, each with the prompt it really had. The error of the "
    "Gaussian limit is relative to the part of the output that is not the mean value, |T − mean "
    "V|, "
    "so that 1 is no better than the mean value; the error of the whole output is relative to |T|. "
    "Beside it stands what Gaussian keys with the same moments and length would show, from the "
    "exact engine. The length needed is that from which such keys would be within the tolerance; a "
    "verdict promises it only where a test of the shape of the keys could have refused it. A query "
    "is frozen if n is below e^{τ²}. With a window, some keys stay exact and a tail stands for the "
    "others; the table names the cheapest one within the tolerance, or the one that errs least, in "
    "at "
    "most half of the numbers that softmax keeps.";

// What a verdict says of one head and of several.
struct GroupWords {
  const char* group;
  const char* one;
  const char* several;
};

GroupWords words_of(HeadVerdict verdict) {
  switch (verdict) {
    case HeadVerdict::linear_here: return {"linear here", "is linear here", "are linear here"};
    case HeadVerdict::linear_from:
      return {"linear from a longer prompt", "is linear from a longer prompt",
              "are linear from a longer prompt"};
    case HeadVerdict::linear_within:
      return {"roughly linear", "is roughly linear", "are roughly linear"};
    case HeadVerdict::too_short:
      return {"too short to say", "has too short a prompt to say",
              "have too short a prompt to say"};
    case HeadVerdict::needs_components:
      return {"needs components", "needs components", "need components"};
    case HeadVerdict::not_linearisable: break;
  }
  return {"not linearisable", "is not linearisable", "are not linearisable"};
}

// A log axis where the heads spread over more than a decade and nothing is zero.
Axis spread_axis(const std::vector<double>& values, const std::string& column,
                 const std::string& title) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {.column = column, .title = title, .log = *low > 0 && *high > 10 * *low};
}

// The row that the head's verdict on windows speaks of; nullptr if there is none.
const WindowRow* best_window(const HeadDiagnosis& head) {
  if (!head.window) return nullptr;
  for (const WindowRow& row : *head.window) {
    if (row.best.value_or(false)) return &row;
  }
  return nullptr;
}

// What windows gain over all heads, in a sentence; empty if none has one.
std::string window_sentence(const std::vector<HeadDiagnosis>& heads) {
  std::vector<double> alone, with, share;
  for (const HeadDiagnosis& head : heads) {
    const WindowRow* window = best_window(head);
    if (window == nullptr) continue;
    alone.push_back(head.gaussian.lin_c);
    with.push_back(window->lin_c);
    share.push_back(100 * static_cast<double>(window->state) /
                    static_cast<double>(head.softmax_numbers()));
  }
  if (with.empty()) return "";
  return fmt::format(
      " With an exact window and a tail behind it the error of {} is {} instead of {}, for {} % of "
      "the numbers that softmax keeps{}.",
      heads.size() == 1 ? "its output" : "the typical head", brief(median(with), 3),
      brief(median(alone), 3), brief(median(share), 2), heads.size() == 1 ? "" : " (medians)");
}

PageTable overview_table(const std::vector<HeadDiagnosis>& heads) {
  PageTable table{.title = "One row per head; a click on a column sorts",
                  .sheet = {.columns = {"head", "verdict", "error of the limit",
                                        "Gaussian keys would show", "error of the whole output",
                                        "τ²", "ESS", "frozen share", "length needed", "n", "d",
                                        "window: keys", "tail", "error with it", "numbers kept, %"},
                            .rows = {}}};
  for (const HeadDiagnosis& head : heads) {
    const WindowRow* window = best_window(head);
    const auto whole = static_cast<double>(head.softmax_numbers());
    table.sheet.add(
        head.name, head.verdict, three_digits(head.gaussian.lin_c),
        three_digits(head.control_lin_c), three_digits(head.gaussian.lin), three_digits(head.tau2),
        three_digits(head.ess), three_digits(head.frozen), linear_from_text(head.linear_from),
        head.n, head.dk, window != nullptr ? Value(std::int64_t{window->w}) : Value(),
        window != nullptr ? Value(std::string(name(window->tail))) : Value(),
        window != nullptr ? three_digits(window->lin_c) : Value(),
        window != nullptr ? three_digits(100 * static_cast<double>(window->state) / whole)
                          : Value());
  }
  return table;
}

Sheet overview_data(const std::vector<HeadDiagnosis>& heads) {
  Sheet sheet{.columns = {"head", "tau2", "lin_c", "control_lin_c", "verdict", "kind"}, .rows = {}};
  for (const HeadDiagnosis& head : heads) {
    sheet.add(head.name, head.tau2, head.gaussian.lin_c, head.control_lin_c, head.verdict,
              verdict_group(head.verdict_kind));
  }
  return sheet;
}

Figure overview_figure(const std::vector<HeadDiagnosis>& heads) {
  std::vector<double> controls;
  std::vector<double> errors;
  const HeadDiagnosis* farthest = &heads.front();
  const auto above = [](const HeadDiagnosis& h) { return h.gaussian.lin_c - h.control_lin_c; };
  for (const HeadDiagnosis& head : heads) {
    controls.push_back(head.control_lin_c);
    errors.push_back(head.gaussian.lin_c);
    if (above(head) > above(*farthest)) farthest = &head;
  }
  std::string caption =
      "One point per head. Near the diagonal the error of the limit is what Gaussian keys would "
      "show and comes from a short prompt; far above it the keys are not Gaussian. ";
  caption +=
      above(*farthest) > 0
          ? fmt::format("The head farthest above the diagonal is {} ({:.2f} against {:.2f}).",
                        farthest->name, farthest->gaussian.lin_c, farthest->control_lin_c)
          : "No head is above the diagonal.";
  return {.id = "error-control",
          .chart = ScatterChart{.data = "heads",
                                .x = spread_axis(controls, "control_lin_c",
                                                 "error that Gaussian keys would show"),
                                .y = spread_axis(errors, "lin_c", "error of the Gaussian limit"),
                                .series = "kind",
                                .label = "head",
                                .diagonal = true,
                                .references = {{'y', 1.0, "no better than the mean value"}},
                                .tooltip = {"head", "tau2", "lin_c", "control_lin_c", "verdict"}},
          .caption = caption};
}

// Layers times heads, where the names say so: the smallest error of a window in half the numbers, or
// that of the limit where no window was tried.
void add_map(const std::vector<HeadDiagnosis>& heads, Page& page) {
  std::vector<LayerCell> cells;
  for (const HeadDiagnosis& head : heads) {
    double error = head.gaussian.lin_c;
    for (const WindowRow& row : head.window.value_or(std::vector<WindowRow>{})) {
      const bool small = 2 * row.state <= head.softmax_numbers();
      if (small && row.tail != Tail::mixture) error = std::min(error, row.lin_c);
    }
    cells.push_back({.name = head.name, .value = error, .text = head.verdict});
  }
  auto map = layer_map(page, "map", cells, "smallest error of the head",
                       "The smallest error of a head by its limit or by a window with a tail that "
                       "keeps at most half of the numbers; the tooltip has the verdict.");
  if (!map) return;
  map->caption += " " + reading(map->chart, page.datasets);
  page.sections.front().figures.push_back(std::move(*map));
}

}  // namespace

Verdict head_badge(const HeadDiagnosis& head) {
  switch (head.verdict_kind) {
    case HeadVerdict::linear_here: return {.status = VerdictStatus::holds, .text = head.verdict};
    case HeadVerdict::not_linearisable:
      return {.status = VerdictStatus::fails, .text = head.verdict};
    default: return {.status = VerdictStatus::info, .text = head.verdict};
  }
}

std::string verdict_group(HeadVerdict verdict) { return words_of(verdict).group; }

std::string count_sentence(const std::vector<HeadDiagnosis>& heads) {
  std::vector<std::string> parts;
  for (const auto& [verdict, word] : enum_names(HeadVerdict{}).table) {
    const auto count = std::count_if(
        heads.begin(), heads.end(),
        [&, kind = verdict](const HeadDiagnosis& head) { return head.verdict_kind == kind; });
    if (count == 0) continue;
    const GroupWords words = words_of(verdict);
    parts.push_back(fmt::format("{} {}", count, count == 1 ? words.one : words.several));
  }
  return fmt::format("{} {}: {}.", heads.size(), heads.size() == 1 ? "head" : "heads",
                     fmt::join(parts, ", "));
}

Page heads_page(const std::vector<HeadDiagnosis>& heads) {
  Page page{.title = "Attention heads, diagnosed",
            .lead = count_sentence(heads) + window_sentence(heads)};
  page.datasets["heads"] = overview_data(heads);
  page.sections.push_back({.id = "overview",
                           .title = "Which heads are linear in disguise",
                           .text = kOverviewText,
                           .formulas = {kLimitFormula},
                           .figures = {overview_figure(heads)},
                           .tables = {overview_table(heads)}});
  add_map(heads, page);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    add_head_section(heads[i], "head-" + std::to_string(i), page);
  }
  return page;
}

}  // namespace esscher
