// The numbers that describe a head, as a row with columns (base/columns.h).
//
//   lin   = |T - T_s| / |T|,        T the softmax output, T_s that of a surrogate
//   lin_c = |T - T_s| / |T - Vbar|  (1: no better than the mean value Vbar)
//
// All figures are medians over queries. On "unseen" keys a surrogate is fitted to a random half of
// the keys and judged on the other half, so that a mixture is not praised for memorising.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/base/estimate.h"
#include "esscher/heads/budget.h"
#include "esscher/heads/causes.h"
#include "esscher/heads/score_scale.h"
#include "esscher/heads/tail.h"
#include "esscher/heads/verdict.h"

namespace esscher {

// Medians over queries of the two relative errors.
struct SurrogateError {
  double lin = 0;
  double lin_c = 0;
};

struct MixtureRow {
  Index k = 0;
  SurrogateError in_sample;
  // On unseen keys; absent if half of the keys are too few for k components.
  std::optional<double> split_lin = {}, split_lin_c = {};
  // The expected error on prompts drawn from the mixture, relative to the measured |T - Vbar|
  // (mixture_control() of heads/control.h): the median over the control_queries queries in reach of
  // the exact engine; absent if there are none.
  std::optional<double> control_lin_c = {};
  Index control_queries = 0;
  int em_steps = 0;        // of the fit to all keys
  bool converged = false;  // the fits to all keys and to half of them

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("k", row.k, "", "components of the mixture");
    column("in_sample_lin", row.in_sample.lin, "", "lin on the keys that it was fitted to");
    column("in_sample_lin_c", row.in_sample.lin_c, "", "lin_c on the keys that it was fitted to");
    column("split_lin", row.split_lin, "", "lin on unseen keys");
    column("split_lin_c", row.split_lin_c, "", "lin_c on unseen keys");
    column("control_lin_c", row.control_lin_c, "",
           "lin_c on prompts drawn from the mixture, exact");
    column("control_queries", row.control_queries, "", "queries in reach of the exact engine");
    column("em_steps", row.em_steps, "", "steps of expectation-maximisation");
    column("converged", row.converged, "", "the likelihood had stopped rising");
  }
};

// The same head on its first n keys only, next to the exact Gaussian prediction.
struct PrefixRow {
  Index n = 0;
  double lin_c = 0;
  double control = 0;                        // median over queries
  double control_low = 0, control_high = 0;  // 10 % and 90 % over queries

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("n", row.n, "tokens", "keys of the prompt");
    column("lin_c", row.lin_c, "", "error of the Gaussian limit");
    column("control", row.control, "", "the same for Gaussian keys, exact, median over queries");
    column("control_low", row.control_low, "", "its 10 % quantile over queries");
    column("control_high", row.control_high, "", "its 90 % quantile over queries");
  }
};

inline constexpr std::string_view kSoftmax = "softmax";

// What it costs to keep a surrogate and to evaluate it at one query.
struct CostRow {
  std::string surrogate;  // softmax, mean, uncentred, gaussian, "mixture k"
  Index state = 0;
  Index multiply_adds = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("surrogate", row.surrogate, "", "softmax itself or what replaces it");
    column("state", row.state, "numbers", "numbers to keep");
    column("multiply_adds", row.multiply_adds, "", "multiply-adds per query");
  }
};

// An exact window with a tail (heads/window.h).
struct WindowRow {
  Index w = 0;  // exact keys, the sinks among them
  Tail tail = Tail::finite;
  std::optional<Index> heavy = {};  // heavy keys beside them; absent: none
  double lin = 0, lin_c = 0;
  // lin_c if the keys behind the window were Gaussian, exactly (heads/window_control.h), relative to
  // the measured |T - Vbar|; absent for tails that are not one Gaussian and out of reach.
  std::optional<double> control_lin_c = {};
  Index state = 0;
  Index multiply_adds = 0;
  std::optional<bool> best = {};  // the row that window_verdict speaks of

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("w", row.w, "tokens", "exact keys: the sinks and the last ones");
    column("tail", row.tail, "", "what stands for the other keys");
    column("heavy", row.heavy, "tokens", "heavy keys that are kept beside them; absent: none");
    column("lin", row.lin, "", "error relative to |T|");
    column("lin_c", row.lin_c, "", "error relative to |T - mean V|");
    column("control_lin_c", row.control_lin_c, "",
           "lin_c of Gaussian keys behind the window, exact");
    column("state", row.state, "numbers", "numbers to keep");
    column("multiply_adds", row.multiply_adds, "", "multiply-adds per query");
    column(
        "best", row.best, "",
        "the cheapest row within tolerance in half of the numbers, else the one that errs least");
  }
};

// The same on shorter prompts.
struct WindowLengthRow {
  Index n = 0;
  Index w = 0;
  Tail tail = Tail::finite;
  double lin_c = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("n", row.n, "tokens", "keys of the prompt");
    column("w", row.w, "tokens", "exact keys");
    column("tail", row.tail, "", "what stands for the other keys");
    column("lin_c", row.lin_c, "", "error relative to |T - mean V|");
  }
};

struct HeadDiagnosis {
  std::string name;
  Index n = 0, dk = 0, dv = 0, queries = 0;
  bool causal = false;
  double scale = 1;

  double tau2 = 0, tau2_low = 0, tau2_high = 0;  // score variance: median and 5 %, 95 %
  double ess = 0;                                // 1 / sum omega^2
  double frozen = 0;                             // share of queries with n < e^{tau2}
  double kurtosis = 3;                           // of the scores; 3 for Gaussian keys
  double top_weight = 0;                         // largest omega
  double dominant = 0;  // share of queries that give more than half their weight to one same key
  // Dependence of neighbouring keys (heads/dependence.h); absent for fewer than 8 keys.
  std::optional<double> kappa, kappa_low, kappa_high;

  SurrogateError mean_only, uncentred, gaussian, gaussian_split;
  double control_lin_c = 0;  // exact, same n and moments, Gaussian keys
  // The test of the error against it (heads/excess.h); absent if the error is within tolerance.
  std::optional<double> control_test_error, control_test_typical, control_test_limit,
      control_test_p;
  Length linear_from = Length::infinity();  // for the median query; infinity: not before 10^15
  // The test of shape (heads/shape.h); absent unless a length is in question (heads/verdict.h).
  std::optional<double> shape_departure, shape_typical, shape_limit, shape_harm, shape_power;
  std::optional<Index> best_k;  // the best mixture on unseen keys
  std::optional<Index>
      mixture_keys;  // of a long prompt, those that mixtures have their moments from
  std::vector<MixtureRow> mixtures;

  HeadVerdict verdict_kind = HeadVerdict::not_linearisable;
  std::string verdict;  // in words
  std::string reason;
  // Absent where the error is within tolerance, and for heads with rules.
  std::optional<std::vector<CauseRow>> causes;
  std::optional<std::string> why;
  Engine engine = Engine::exact;  // of the controls: no prompt is drawn for them

  std::vector<CostRow> cost;
  std::vector<PrefixRow> prefixes;
  // Longer prompts (heads/score_scale.h); absent for heads with rules and for scores that do not vary.
  std::optional<double> score_c, gap_scale;
  std::optional<Phase> phase;
  std::optional<std::vector<ScoreLengthRow>> score_lengths;
  std::optional<std::vector<ForecastRow>> longer_prompts;
  std::optional<std::vector<ForecastTest>> forecast_test;  // one row; none for a short prompt
  // Absent if no window was tried.
  std::optional<std::vector<WindowRow>> window;
  std::optional<std::vector<WindowLengthRow>> window_lengths;
  std::optional<std::string> window_verdict;     // "linear beyond 32 keys: ..."
  std::optional<std::vector<BudgetRow>> budget;  // absent if no budget was asked for
  std::optional<std::string> budget_verdict;
  Vector score_histogram;  // density of (s - mean)/tau in kHistogramBins bins over [-5, 5]
  Vector score_mixture;  // the same density for keys from the best mixture; empty if there is none

  // What softmax keeps: the keys and values that a query may see, or all of them where no cost is known.
  [[nodiscard]] Index softmax_numbers() const {
    for (const CostRow& row : cost) {
      if (row.surrogate == kSoftmax) return row.state;
    }
    return n * (dk + dv);
  }

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("head", row.name, "", "name of the head");
    column("n", row.n, "tokens", "keys");
    column("d", row.dk, "", "width of queries and keys");
    column("d_v", row.dv, "", "width of values");
    column("causal", row.causal, "", "query i sees the keys 0..i only");
    column("scale", row.scale, "", "factor of the scores");
    column("queries", row.queries, "", "queries behind the medians");
    column("tau2", row.tau2, "", "variance of the scores");
    column("tau2_low", row.tau2_low, "", "its 5 % quantile over queries");
    column("tau2_high", row.tau2_high, "", "its 95 % quantile over queries");
    column("ess", row.ess, "tokens", "effective sample size of the softmax weights");
    column("frozen", row.frozen, "", "share of queries with n < exp(tau2)");
    column("kurtosis", row.kurtosis, "", "kurtosis of the scores, 3 for Gaussian keys");
    column("top_weight", row.top_weight, "", "largest softmax weight");
    column("dominant", row.dominant, "", "share of queries that one same key dominates");
    column("kappa", row.kappa, "",
           "n keys in this order are worth n/kappa independent ones; absent for fewer than 8 keys");
    column("kappa_low", row.kappa_low, "", "lower end of its 95 % interval");
    column("kappa_high", row.kappa_high, "",
           "upper end of its 95 % interval; inf if the keys are too few to show it");
    column("lin", row.gaussian.lin, "", "error of the Gaussian limit relative to |T|");
    column("lin_c", row.gaussian.lin_c, "", "the same relative to |T - mean V|");
    column("control_lin_c", row.control_lin_c, "", "lin_c of Gaussian keys, exact");
    column("control_test_error", row.control_test_error, "",
           "lin_c of the queries that are tested against Gaussian keys; absent: within tolerance");
    column("control_test_typical", row.control_test_typical, "",
           "the same for Gaussian keys, median");
    column("control_test_limit", row.control_test_limit, "",
           "the same for Gaussian keys, 95 % quantile: a larger error is refused");
    column("control_test_p", row.control_test_p, "", "p-value of that test");
    column("mean_only_lin", row.mean_only.lin, "", "lin of the mean value");
    column("mean_only_lin_c", row.mean_only.lin_c, "", "lin_c of the mean value");
    column("uncentred_lin", row.uncentred.lin, "", "lin of linear attention, mean left in");
    column("uncentred_lin_c", row.uncentred.lin_c, "", "lin_c of linear attention, mean left in");
    column("gaussian_split_lin", row.gaussian_split.lin, "",
           "lin of the Gaussian limit on unseen keys");
    column("gaussian_split_lin_c", row.gaussian_split.lin_c, "",
           "lin_c of the Gaussian limit on unseen keys");
    column("best_k", row.best_k, "", "components of the best mixture on unseen keys");
    column("mixture_keys", row.mixture_keys, "tokens",
           "evenly spaced keys that mixtures have their moments from; absent: all");
    column("linear_from", row.linear_from, "tokens",
           "length from which Gaussian keys are within tolerance; inf: not before 10^15");
    column("shape_departure", row.shape_departure, "",
           "how far the scores depart from Gaussian ones; absent: no length is in question");
    column("shape_typical", row.shape_typical, "", "the same for Gaussian keys, median");
    column("shape_limit", row.shape_limit, "", "the same for Gaussian keys, 95 % quantile");
    column("shape_harm", row.shape_harm, "", "error of the limit that shape_power is for");
    column("shape_power", row.shape_power, "",
           "probability that keys with that error are refused; absent: these keys are");
    column("verdict_kind", row.verdict_kind, "", "the verdict as a word for programs");
    column("verdict", row.verdict, "", "the verdict for people");
    column("reason", row.reason, "", "the numbers behind the verdict");
    column("causes", row.causes, "", "one row per possible cause of the failure");
    column("why", row.why, "", "what was found among them");
    column("engine", row.engine, "", "how controls average over prompts");
    column("mixtures", row.mixtures, "", "one row per mixture tried");
    column("cost", row.cost, "", "one row per surrogate");
    column("prefixes", row.prefixes, "", "one row per prefix of the prompt");
    column("score_c", row.score_c, "", "deviation of the scores over sqrt(log n)");
    column("gap_scale", row.gap_scale, "", "largest log N(t) / t of the gaps below the maximum");
    column("phase", row.phase, "", "averaging, intermediate or frozen, by score_c");
    column("score_lengths", row.score_lengths, "", "deviation and weights by prefix of the prompt");
    column("longer_prompts", row.longer_prompts, "",
           "one row per longer prompt, 2, 4 and 16 times");
    column("forecast_test", row.forecast_test, "",
           "the whole prompt as its first half forecasts it; no row for fewer than 16 keys");
    column("window", row.window, "", "one row per exact window and tail");
    column("window_lengths", row.window_lengths, "", "one window on prefixes of the prompt");
    column("window_verdict", row.window_verdict, "", "from which window on the rest is linear");
    column("budget", row.budget, "", "one row per memory and way to keep the prompt in it");
    column("budget_verdict", row.budget_verdict, "", "what wins in each memory, and at what cost");
    column("score_histogram", row.score_histogram, "", "density of the standardised scores");
    column("score_mixture", row.score_mixture, "", "the same for keys from the best mixture");
  }
};

}  // namespace esscher
