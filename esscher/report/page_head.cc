#include "esscher/report/detail/page_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <set>

#include "esscher/base/number_text.h"
#include "esscher/report/page_heads.h"

namespace esscher {
namespace {

// Errors and cost of every surrogate, softmax itself first.
PageTable surrogate_table(const HeadDiagnosis& head) {
  PageTable table{
      .title = "Error and cost per query of each surrogate",
      .sheet = {.columns = {"surrogate", "error of the whole output", "error of the limit",
                            "on unseen keys", "on prompts of its own law", "numbers kept",
                            "multiply-adds"},
                .rows = {}}};
  std::map<std::string, CostRow> costs;
  for (const CostRow& row : head.cost) costs[row.surrogate] = row;
  const auto add = [&](const std::string& title, const std::string& surrogate,
                       const SurrogateError& error, std::optional<double> unseen,
                       std::optional<double> control) {
    const CostRow& cost = costs[surrogate];
    table.sheet.add(title, three_digits(error.lin), three_digits(error.lin_c), three_digits(unseen),
                    three_digits(control), cost.state, cost.multiply_adds);
  };
  add("softmax", "softmax", {}, {}, {});
  add("mean value", "mean", head.mean_only, {}, {});
  add("linear attention, keys not centred", "uncentred", head.uncentred, {}, {});
  add("Gaussian limit", "gaussian", head.gaussian, head.gaussian_split.lin_c, head.control_lin_c);
  for (const MixtureRow& row : head.mixtures) {
    add(fmt::format("mixture of {}{}", row.k, row.converged ? "" : ", EM stopped early"),
        fmt::format("mixture {}", row.k), row.in_sample, row.split_lin_c, row.control_lin_c);
  }
  return table;
}

std::string kappa_text(const HeadDiagnosis& head) {
  const double low = head.kappa_low.value_or(0), high = head.kappa_high.value_or(0);
  if (!std::isfinite(high)) {
    return fmt::format(
        "about {} or more: the correlation of some coordinate does not fade where it is summed",
        brief(*head.kappa, 2));
  }
  return fmt::format("{} (95 %: {} to {}); {} keys are worth {}", brief(*head.kappa, 3),
                     brief(low, 3), brief(high, 3), head.n,
                     brief(static_cast<double>(head.n) / std::max(1.0, *head.kappa), 3));
}

// The numbers of one head, each with what it covers.
PageTable number_table(const HeadDiagnosis& head) {
  PageTable table{.title = head.causal ? "Numbers (causal head: each query sees the keys before it)"
                                       : "Numbers (every query sees every key)",
                  .sheet = {.columns = {"quantity", "value"}, .rows = {}}};
  Sheet& sheet = table.sheet;
  sheet.add("score variance τ²",
            fmt::format("{} (90 % of queries: {} to {})", brief_or_dash(head.tau2, 3),
                        brief_or_dash(head.tau2_low, 3), brief_or_dash(head.tau2_high, 3)));
  sheet.add("effective sample size",
            fmt::format("{} of {} keys", brief_or_dash(head.ess, 3), head.n));
  sheet.add("frozen queries, n < exp(τ²)", brief(100 * head.frozen, 3) + " %");
  if (head.kappa) sheet.add("dependence of neighbouring keys, κ", kappa_text(head));
  if (head.score_c) {
    sheet.add("deviation of the scores over √log n",
              fmt::format("{}: {}, if the scores were Gaussian", brief(*head.score_c, 3),
                          name(*head.phase)));
    sheet.add("gap-counting scale: a larger factor concentrates",
              brief_or_dash(*head.gap_scale, 3));
  }
  sheet.add("control, Gaussian keys",
            fmt::format("{} (exact, all {} queries)", brief_or_dash(head.control_lin_c, 3),
                        head.queries));
  if (head.control_test_error) {
    sheet.add("test of the error against Gaussian keys",
              fmt::format("{}; Gaussian keys: median {}, 95 % below {} (p = {})",
                          brief_or_dash(*head.control_test_error, 3),
                          brief_or_dash(head.control_test_typical.value_or(0), 3),
                          brief_or_dash(head.control_test_limit.value_or(0), 3),
                          brief_or_dash(head.control_test_p.value_or(1), 2)));
  }
  for (const MixtureRow& row : head.mixtures) {
    if (row.k != head.best_k || !row.control_lin_c) continue;
    sheet.add(fmt::format("control, keys from the mixture of {}", row.k),
              fmt::format("{} (exact, {} of {} queries; best on unseen keys)",
                          brief_or_dash(*row.control_lin_c, 3), row.control_queries, head.queries));
  }
  if (head.mixture_keys) {
    sheet.add("keys that mixtures have their moments from",
              fmt::format("{} evenly spaced ones of {}", *head.mixture_keys, head.n));
  }
  sheet.add("Gaussian keys within tolerance from L", linear_from_text(head.linear_from));
  if (!head.shape_departure) return table;
  sheet.add("departure of the scores from Gaussian ones",
            fmt::format("{} (Gaussian keys: median {}, 95 % below {})",
                        brief_or_dash(*head.shape_departure, 3),
                        brief_or_dash(head.shape_typical.value_or(0), 3),
                        brief_or_dash(head.shape_limit.value_or(0), 3)));
  if (!head.shape_power) return table;
  sheet.add("power of that test",
            fmt::format("{} against keys whose limit errs by {}", brief(*head.shape_power, 3),
                        brief(head.shape_harm.value_or(0), 3)));
  return table;
}

// Error against prefix length, the exact prediction as a band.
Sheet prefix_data(const HeadDiagnosis& head) {
  Sheet sheet{.columns = {"n", "error", "low", "high", "series"}, .rows = {}};
  for (const PrefixRow& row : head.prefixes) {
    sheet.add(row.n, row.lin_c, Value(), Value(), "this head");
    sheet.add(row.n, row.control, row.control_low, row.control_high, "Gaussian keys, exact");
  }
  return sheet;
}

// The histogram as an outline of steps over a filled band, the laws as curves.
Sheet score_data(const HeadDiagnosis& head) {
  Sheet sheet{.columns = {"x", "density", "low", "high", "series"}, .rows = {}};
  const Vector& bins = head.score_histogram;
  const double width = 10.0 / static_cast<double>(bins.size());
  for (Index i = 0; i < bins.size(); ++i) {
    const double left = -5.0 + width * static_cast<double>(i);
    for (const double x : {left, left + width * (1 - 1e-9)}) {
      sheet.add(x, bins(i), 0, bins(i), "scores");
    }
    const double x = left + 0.5 * width;
    sheet.add(x, std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi), Value(), Value(),
              "one Gaussian");
    if (!head.best_k) continue;
    sheet.add(x, head.score_mixture(i), Value(), Value(),
              fmt::format("mixture of {}", *head.best_k));
  }
  return sheet;
}

Figure prefix_figure(const HeadDiagnosis& head, const std::string& id) {
  const std::string within =
      head.linear_from.is_infinite()
          ? "they would not be within the tolerance before L = 10^15"
          : "they would be within the tolerance from L = " + head.linear_from.text();
  return {.id = "prefix-" + id,
          .chart = CurveChart{.data = "prefix-" + id,
                              .x = {.column = "n", .title = "keys in the prompt, n", .log = true},
                              .y = {.column = "error", .title = "error of the limit", .log = true},
                              .series = "series",
                              .series_order = {"this head", "Gaussian keys, exact"},
                              .low = "low",
                              .high = "high"},
          .caption =
              "Error on the first n keys. The band is what Gaussian keys with this head's "
              "moments would show (80 % of queries, exact); " +
              within + "."};
}

Figure score_figure(const HeadDiagnosis& head, const std::string& id) {
  return {.id = "scores-" + id,
          .chart = CurveChart{.data = "scores-" + id,
                              .x = {.column = "x", .title = "standardised score"},
                              .y = {.column = "density", .title = "density"},
                              .series = "series",
                              .low = "low",
                              .high = "high",
                              .points = false},
          .caption = fmt::format("Standardised scores of all queries and the fitted laws. Their "
                                 "kurtosis is {:.2f}; Gaussian scores have 3.",
                                 head.kurtosis)};
}

// What longer prompts of this head would show, and how such a forecast did on the head's own prompt.
PageTable longer_table(const HeadDiagnosis& head) {
  PageTable table{
      .title = "Longer prompts: other keys drawn from those there are, or Gaussian ones",
      .sheet = {.columns = {"keys", "ESS", "ESS, Gaussian keys", "weight of today's heaviest key",
                            "that weight, Gaussian keys", "factor that keeps today's ESS"},
                .rows = {}}};
  for (const ForecastRow& row : *head.longer_prompts) {
    table.sheet.add(three_digits(row.n), three_digits(row.ess), three_digits(row.ess_gaussian),
                    three_digits(row.needle), three_digits(row.needle_gaussian),
                    three_digits(row.factor));
  }
  return table;
}

PageTable forecast_test_table(const ForecastTest& test) {
  PageTable table{
      .title =
          fmt::format("The same forecast of all {} keys from the first {}", test.to, test.from),
      .sheet = {.columns = {"quantity", "measured", "forecast", "Gaussian keys"}, .rows = {}}};
  table.sheet.add("ESS", three_digits(test.ess), three_digits(test.ess_forecast),
                  three_digits(test.ess_gaussian));
  table.sheet.add("weight of the first half's heaviest key", three_digits(test.needle),
                  three_digits(test.needle_forecast), three_digits(test.needle_gaussian));
  return table;
}

Figure longer_figure(const HeadDiagnosis& head, const std::string& id, Page& page) {
  Sheet sheet{.columns = {"n", "ess", "series"}, .rows = {}};
  for (const ScoreLengthRow& row : *head.score_lengths) {
    sheet.add(static_cast<double>(row.n), row.ess, "this head");
  }
  for (const ForecastRow& row : *head.longer_prompts) {
    sheet.add(row.n, row.ess, "forecast, keys drawn again");
    sheet.add(row.n, row.ess_gaussian, "forecast, Gaussian keys");
  }
  std::string caption =
      "Effective sample size on the first n keys, and its forecast for longer "
      "prompts.";
  for (const ForecastTest& test : *head.forecast_test) {
    sheet.add(static_cast<double>(test.to), test.ess_forecast, "forecast from the first half");
    const std::string why = drift_text(test);
    caption += fmt::format(" From its first {} keys the forecast for {} is {}; measured are {}{}.",
                           test.from, test.to, brief(test.ess_forecast, 3), brief(test.ess, 3),
                           why.empty() ? "" : ", and " + why);
  }
  page.datasets["longer-" + id] = std::move(sheet);
  return {.id = "longer-" + id,
          .chart = CurveChart{.data = "longer-" + id,
                              .x = {.column = "n", .title = "keys in the prompt, n", .log = true},
                              .y = {.column = "ess", .title = "effective sample size", .log = true},
                              .series = "series"},
          .caption = caption};
}

void add_longer_prompts(const HeadDiagnosis& head, const std::string& id, Section& section,
                        Page& page) {
  section.figures.push_back(longer_figure(head, id, page));
  section.tables.push_back(longer_table(head));
  for (const ForecastTest& test : *head.forecast_test) {
    section.tables.push_back(forecast_test_table(test));
  }
}

// What stands beside the window: "finite", "finite, 4 heavy keys".
std::string kept_beside(const WindowRow& row) {
  const std::string tail(name(row.tail));
  return row.heavy ? fmt::format("{}, {} heavy keys", tail, *row.heavy) : tail;
}

// Errors and cost of every window and tail.
PageTable window_table(const HeadDiagnosis& head) {
  PageTable table{
      .title = "Exact window and tail; control: Gaussian keys behind the window, exactly",
      .sheet = {.columns = {"exact keys", "tail", "error", "control", "error of the whole output",
                            "numbers kept", "multiply-adds"},
                .rows = {}}};
  for (const WindowRow& row : *head.window) {
    table.sheet.add(row.w, kept_beside(row), three_digits(row.lin_c),
                    three_digits(row.control_lin_c), three_digits(row.lin), row.state,
                    row.multiply_adds);
  }
  return table;
}

Figure window_figure(const HeadDiagnosis& head, const std::string& id, Page& page) {
  Sheet sheet{.columns = {"numbers", "error", "tail", "w"}, .rows = {}};
  for (const WindowRow& row : *head.window) {
    sheet.add(row.state, row.lin_c, kept_beside(row), row.w);
  }
  page.datasets["window-" + id] = std::move(sheet);
  return {.id = "window-" + id,
          .chart = CurveChart{.data = "window-" + id,
                              .x = {.column = "numbers", .title = "numbers kept", .log = true},
                              .y = {.column = "error", .title = "error", .log = true},
                              .series = "tail",
                              .series_title = "tail",
                              .tooltip = {"w", "tail", "numbers", "error"}},
          .caption = fmt::format("Error against memory for windows of exact keys with each tail. "
                                 "Softmax itself keeps {} numbers.",
                                 head.softmax_numbers())};
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

// What keeps the limit from holding, found or not.
PageTable cause_table(const HeadDiagnosis& head) {
  PageTable table{.title = "Why the limit fails: what was looked for (level 5 %)",
                  .sheet = {.columns = {"cause", "found", "value", "95 % from", "to",
                                        "Gaussian keys would show", "p", "in words"},
                            .rows = {}}};
  for (const CauseRow& row : *head.causes) {
    table.sheet.add(std::string(name(row.cause)), std::string(row.found ? "yes" : "no"),
                    three_digits(row.value), three_digits(row.low),
                    std::isfinite(row.high) ? three_digits(row.high) : Value(),
                    three_digits(row.typical), three_digits(row.p), row.text);
  }
  return table;
}

// Errors and cost of every method at every budget, on unseen queries.
PageTable budget_table(const HeadDiagnosis& head) {
  PageTable table{
      .title = "Equal memory, unseen queries",
      .sheet = {.columns = {"memory, in keys", "method", "error of the method", "standard error",
                            "error of the whole output", "numbers kept", "multiply-adds",
                            "fitted to queries", "best", "Pareto"},
                .rows = {}}};
  for (const BudgetRow& row : *head.budget) {
    table.sheet.add(row.budget, words_of(row.method), three_digits(row.lin_c),
                    three_digits(row.lin_c_std_error), three_digits(row.lin), row.numbers,
                    row.multiply_adds, std::string(row.calibrated ? "yes" : "no"),
                    std::string(row.best ? "best" : ""), std::string(row.pareto ? "yes" : ""));
  }
  return table;
}

// The Pareto front, and every method that is on it somewhere.
Figure budget_figure(const HeadDiagnosis& head, const std::string& id, Page& page) {
  std::set<Compression> shown;
  for (const BudgetRow& row : *head.budget) {
    if (row.pareto || row.best) shown.insert(row.method);
  }
  Sheet sheet{.columns = {"numbers", "error", "method", "memory"}, .rows = {}};
  for (const BudgetRow& row : *head.budget) {
    if (shown.count(row.method) == 0) continue;
    sheet.add(row.numbers, row.lin_c, words_of(row.method), row.budget);
  }
  page.datasets["budget-" + id] = std::move(sheet);
  return {
      .id = "budget-" + id,
      .chart = CurveChart{.data = "budget-" + id,
                          .x = {.column = "numbers", .title = "numbers kept", .log = true},
                          .y = {.column = "error", .title = "error on unseen queries", .log = true},
                          .series = "method",
                          .series_title = "method",
                          .tooltip = {"method", "memory", "numbers", "error"}},
      .caption =
          "Error on unseen queries against memory, of the methods that nothing of the "
          "same memory beats somewhere. " +
          sentence(head.budget_verdict.value_or(""))};
}

}  // namespace

Value three_digits(double x) {
  return std::isfinite(x) ? std::strtod(brief(x, 3).c_str(), nullptr) : x;
}
Value three_digits(const std::optional<double>& x) { return x ? three_digits(*x) : Value(); }

void add_head_section(const HeadDiagnosis& head, const std::string& id, Page& page) {
  page.datasets["prefix-" + id] = prefix_data(head);
  page.datasets["scores-" + id] = score_data(head);
  Section section{.id = id, .title = head.name};
  section.verdict = head_badge(head);
  section.text = sentence(head.reason);
  if (!head.prefixes.empty()) section.figures.push_back(prefix_figure(head, id));
  section.figures.push_back(score_figure(head, id));
  section.tables = {number_table(head), surrogate_table(head)};
  if (head.causes) {
    section.text += "\n\nWhy: " + head.why.value_or("") + ".";
    section.tables.push_back(cause_table(head));
  }
  if (head.longer_prompts) add_longer_prompts(head, id, section, page);
  if (head.window && !head.window->empty()) {
    section.text += "\n\nWith an exact window: " + head.window_verdict.value_or("") + ".";
    section.figures.push_back(window_figure(head, id, page));
    section.tables.push_back(window_table(head));
  }
  if (head.budget && !head.budget->empty()) {
    section.figures.push_back(budget_figure(head, id, page));
    section.tables.push_back(budget_table(head));
  }
  page.sections.push_back(std::move(section));
}

}  // namespace esscher
