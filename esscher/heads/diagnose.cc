#include "esscher/heads/diagnose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/control.h"
#include "esscher/heads/dependence.h"
#include "esscher/heads/detail/prefixes.h"
#include "esscher/heads/detail/ratio.h"
#include "esscher/heads/detail/score_law.h"
#include "esscher/heads/detail/walk.h"
#include "esscher/heads/detail/window_study.h"
#include "esscher/heads/score_scale.h"

namespace esscher {
namespace {

constexpr std::uint64_t kShapeStream = 0x5a9e;  // beside the fits, whose streams are their sizes
constexpr std::uint64_t kExcessStream = 0xe8ce;
constexpr std::uint64_t kBudgetStream = 0xb0d6;
constexpr std::uint64_t kCauseStream = 0xca05;
constexpr Index kShapeKeys = 2048;   // at most, so that the test costs little beside the fits
constexpr Index kLengthQueries = 5;  // representatives for linear_from, by quantile of tau2

template <class Field>
std::vector<double> collect(const std::vector<PromptResult>& results, Field field) {
  std::vector<double> out;
  for (const PromptResult& result : results) out.push_back(field(result));
  return out;
}

SurrogateError error_of(const std::vector<PromptResult>& results, std::size_t model, bool split) {
  const auto errors = collect(results, [&](const PromptResult& r) { return r.errors[model]; });
  const auto norms =
      collect(results, [&](const PromptResult& r) { return split ? r.norm_unseen : r.norm; });
  const auto signals =
      collect(results, [&](const PromptResult& r) { return split ? r.signal_unseen : r.signal; });
  return {.lin = median_ratio(errors, norms, norms), .lin_c = median_ratio(errors, signals, norms)};
}

double dominant_share(const std::vector<PromptResult>& results) {
  std::map<Index, int> heavy;
  int most = 0;
  for (const PromptResult& result : results) {
    if (result.top_weight > 0.5 && result.n > 2) most = std::max(most, ++heavy[result.top_key]);
  }
  return static_cast<double>(most) / static_cast<double>(results.size());
}

void fill_scores(const std::vector<PromptResult>& results, HeadDiagnosis& out) {
  const auto tau2 = collect(results, [](const PromptResult& r) { return r.moments.tau2; });
  out.tau2 = median(tau2);
  out.tau2_low = quantile(tau2, 0.05);
  out.tau2_high = quantile(tau2, 0.95);
  out.ess = median(collect(results, [](const PromptResult& r) { return r.ess; }));
  out.kurtosis = median(collect(results, [](const PromptResult& r) { return r.kurtosis; }));
  out.top_weight = median(collect(results, [](const PromptResult& r) { return r.top_weight; }));
  const auto frozen = std::count_if(results.begin(), results.end(), [](const PromptResult& r) {
    return std::log(r.n) < r.moments.tau2;
  });
  out.frozen = static_cast<double>(frozen) / static_cast<double>(results.size());
  out.dominant = dominant_share(results);
}

void fill_dependence(const std::optional<KeyDependence>& found, HeadDiagnosis& out) {
  if (!found) return;
  out.kappa = found->kappa;
  out.kappa_low = found->low;
  out.kappa_high = found->high;
}

// The control of a mixture where the exact engine reaches and something moves.
void fill_mixture_control(const std::vector<PromptResult>& results, std::size_t model,
                          MixtureRow& row) {
  std::vector<double> ratios;
  for (const PromptResult& result : results) {
    if (std::isnan(result.controls[model]) || result.signal <= 1e-12 * result.norm) continue;
    ratios.push_back(result.controls[model] / result.signal);
  }
  row.control_queries = static_cast<Index>(ratios.size());
  if (!ratios.empty()) row.control_lin_c = median(ratios);
}

void fill_errors(const std::vector<PromptResult>& results,
                 const std::vector<SurrogateModel>& models, HeadDiagnosis& out) {
  const auto norms = collect(results, [](const PromptResult& r) { return r.norm; });
  const auto signals = collect(results, [](const PromptResult& r) { return r.signal; });
  const auto uncentred = collect(results, [](const PromptResult& r) { return r.uncentred; });
  out.mean_only = {.lin = median_ratio(signals, norms, norms),
                   .lin_c = median_ratio(signals, signals, norms)};
  out.uncentred = {.lin = median_ratio(uncentred, norms, norms),
                   .lin_c = median_ratio(uncentred, signals, norms)};
  for (std::size_t m = 0; m < models.size(); ++m) {
    const SurrogateModel& model = models[m];
    const SurrogateError error = error_of(results, m, model.split);
    if (model.k == 1) {
      (model.split ? out.gaussian_split : out.gaussian) = error;
      continue;
    }
    auto row = std::find_if(out.mixtures.begin(), out.mixtures.end(),
                            [&](const MixtureRow& r) { return r.k == model.k; });
    const bool known = row != out.mixtures.end();
    if (known && model.split) {
      row->split_lin = error.lin;
      row->split_lin_c = error.lin_c;
      row->converged = row->converged && model.fit->converged;
    } else if (!known && !model.split) {
      out.mixtures.push_back({.k = model.k,
                              .in_sample = error,
                              .em_steps = model.fit->steps,
                              .converged = model.fit->converged});
      fill_mixture_control(results, m, out.mixtures.back());
    }
  }
}

void fill_control(const std::vector<PromptResult>& results, double tolerance, HeadDiagnosis& out) {
  out.control_lin_c = median(collect(results, [](const PromptResult& r) {
    return gaussian_control(static_cast<std::int64_t>(r.n), r.moments).relative();
  }));
  std::vector<const PromptResult*> order;
  for (const PromptResult& result : results) order.push_back(&result);
  std::sort(order.begin(), order.end(), [](const PromptResult* x, const PromptResult* y) {
    return x->moments.tau2 < y->moments.tau2;
  });
  const auto count = static_cast<Index>(order.size());
  std::vector<double> lengths;
  for (Index i = 0; i < std::min(kLengthQueries, count); ++i) {
    const Index at = (2 * i + 1) * count / (2 * std::min(kLengthQueries, count));
    const Length length = linear_from(order[at]->moments, tolerance);
    lengths.push_back(length.is_infinite() ? std::numeric_limits<double>::infinity()
                                           : static_cast<double>(length.count()));
  }
  const double typical = quantile(lengths, 0.5);
  out.linear_from = std::isinf(typical) ? Length::infinity() : Length(std::llround(typical));
}

// The smallest mixture that is within a tenth of the best one on unseen keys; nullptr if none.
const MixtureRow* best_mixture(const std::vector<MixtureRow>& mixtures) {
  const MixtureRow* best = nullptr;
  for (const MixtureRow& row : mixtures) {
    if (row.split_lin_c && (best == nullptr || *row.split_lin_c < *best->split_lin_c)) best = &row;
  }
  for (const MixtureRow& row : mixtures) {
    if (row.split_lin_c && *row.split_lin_c <= 1.1 * *best->split_lin_c) return &row;
  }
  return best;
}

// Scores [keys,queries] of a few queries on the first keys of the longest prompt.
Matrix few_scores(const Head& head, const std::vector<PromptResult>& results) {
  const std::vector<PromptResult> few = few_of(results);
  Matrix a(static_cast<Index>(few.size()), head.dk);
  double longest = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    a.row(static_cast<Index>(i)) = few[i].a;
    longest = std::max(longest, few[i].n);
  }
  const Matrix keys = head.K(0, std::min(static_cast<Index>(longest), kShapeKeys));
  return keys * a.transpose();
}

// The test of the error on the first keys, with the values they have.
std::optional<ErrorExcess> test_error(const Head& head, const std::vector<PromptResult>& results,
                                      const HeadOptions& options) {
  const std::vector<PromptResult> few = few_of(results);
  Matrix a(static_cast<Index>(few.size()), head.dk);
  std::vector<Index> ends;
  for (std::size_t i = 0; i < few.size(); ++i) {
    a.row(static_cast<Index>(i)) = few[i].a;
    ends.push_back(std::min(static_cast<Index>(few[i].n), kExcessKeys));
  }
  const Index n = *std::max_element(ends.begin(), ends.end());
  return error_excess(head.K(0, n) * a.transpose(), head.V(0, n), ends,
                      Stream(options.seed).split(kExcessStream));
}

void fill_excess(const ErrorExcess& excess, HeadDiagnosis& out) {
  out.control_test_error = excess.error;
  out.control_test_typical = excess.typical;
  out.control_test_limit = excess.limit;
  out.control_test_p = excess.p;
}

void fill_shape(const KeyShape& shape, HeadDiagnosis& out) {
  out.shape_departure = shape.departure;
  out.shape_typical = shape.typical;
  out.shape_limit = shape.limit;
  out.shape_harm = shape.harm;
  out.shape_power = shape.power;
}

void fill_verdict(const Head& head, const std::vector<PromptResult>& results,
                  const HeadOptions& options, HeadDiagnosis& out) {
  HeadEvidence evidence{.n = out.n,
                        .error = out.gaussian.lin_c,
                        .unseen = out.gaussian_split.lin_c,
                        .control = out.control_lin_c,
                        .linear_from = out.linear_from,
                        .dominant = out.dominant,
                        .kurtosis = out.kurtosis};
  if (const MixtureRow* best = best_mixture(out.mixtures); best != nullptr) {
    out.best_k = best->k;
    evidence.mixture = {.k = best->k, .unseen = *best->split_lin_c, .control = best->control_lin_c};
  }
  if (head.rules.none() && evidence.error > options.tolerance) {
    evidence.excess = test_error(head, results, options);
  }
  if (evidence.excess) fill_excess(*evidence.excess, out);
  if (length_in_question(evidence, options.tolerance)) {
    evidence.shape = key_shape(few_scores(head, results), harm_of(options.tolerance),
                               Stream(options.seed).split(kShapeStream));
    if (evidence.shape) fill_shape(*evidence.shape, out);
  }
  const HeadJudgement judgement = judge(evidence, options.tolerance);
  out.verdict_kind = judgement.verdict;
  out.verdict = judgement.words;
  out.reason = judgement.reason;
}

// Softmax keeps every key and value; a surrogate keeps moments.
std::vector<CostRow> cost_rows(const HeadDiagnosis& head) {
  const Index dk = head.dk;
  const Index dv = head.dv;
  std::vector<CostRow> rows = {
      {.surrogate = "softmax", .state = head.n * (dk + dv), .multiply_adds = head.n * (dk + dv)},
      {.surrogate = "mean", .state = dv, .multiply_adds = 0},
      {.surrogate = "uncentred", .state = dv * dk, .multiply_adds = dv * dk},
      {.surrogate = "gaussian", .state = dv * (dk + 1), .multiply_adds = dv * dk}};
  for (const MixtureRow& row : head.mixtures) {
    // Per component: weight, mean of k, covariance of k (triangle), mean of v, cross-covariance.
    const Index reads = dk + dk * (dk + 1) / 2 + dv * (dk + 1);
    rows.push_back({.surrogate = "mixture " + std::to_string(row.k),
                    .state = row.k * (1 + reads),
                    .multiply_adds = row.k * reads});
  }
  return rows;
}

// The mixture whose components make a tail, in absolute coordinates; none if no mixture was best.
std::optional<MixtureFit> best_fit(const std::vector<SurrogateModel>& models,
                                   std::optional<Index> best_k) {
  std::optional<MixtureFit> best;
  for (const SurrogateModel& model : models) {
    if (model.fit && model.k == best_k && !model.split) {
      best = model.fit;
      for (Vector& mean : best->means) mean += model.moments.origin_k();
    }
  }
  return best;
}

void fill_windows(const Head& head, const HeadOptions& options, const std::vector<Index>& queries,
                  const std::vector<PromptResult>& results,
                  const std::vector<SurrogateModel>& models, HeadDiagnosis& out) {
  if (head.rules.none()) {
    out.window = window_rows(head, options, results, best_fit(models, out.best_k));
    out.window_lengths = window_length_rows(head, options, results);
  } else {
    out.window = ruled_window_rows(head, options, queries, results);
  }
  out.window_verdict = window_verdict(*out.window, options.tolerance, head.n * (head.dk + head.dv));
}

// Evenly spaced keys of the first chunk, in order, and a few queries.
void fill_causes(const Head& head, const std::vector<PromptResult>& results,
                 const std::optional<KeyDependence>& dependence, const HeadOptions& options,
                 HeadDiagnosis& out) {
  const std::vector<PromptResult> few = few_of(results);
  CauseInput input{.scores = {},
                   .dependence = dependence,
                   .dominant = out.dominant,
                   .queries = out.queries,
                   .rotary = head.rotary};
  input.a = Matrix(static_cast<Index>(few.size()), head.dk);
  double longest = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    input.a.row(static_cast<Index>(i)) = few[i].a;
    longest = std::max(longest, few[i].n);
  }
  const Index n = std::min(static_cast<Index>(longest), kHeadChunk);
  const Index count = std::min(n, kCauseKeys);
  const Matrix all = head.K(0, n);
  input.keys = Matrix(count, head.dk);
  for (Index i = 0; i < count; ++i) {
    input.places.push_back(i * n / count);
    input.keys.row(i) = all.row(input.places.back());
  }
  input.scores = input.keys * input.a.transpose();
  out.causes = cause_rows(input, Stream(options.seed).split(kCauseStream));
  out.why = causes_text(*out.causes);
}

// A few queries on the first chunk of keys.
void fill_score_scale(const Head& head, const std::vector<PromptResult>& results,
                      HeadDiagnosis& out) {
  const Matrix keys = head.K(0, std::min(head.n, kHeadChunk));
  std::vector<Vector> scores;
  for (const PromptResult& query : few_of(results)) {
    scores.emplace_back(keys.topRows(std::min(static_cast<Index>(query.n), keys.rows())) * query.a);
  }
  std::optional<ScoreScale> found = score_scale(scores);
  if (!found) return;
  out.score_c = found->c;
  out.gap_scale = found->gap_scale;
  out.phase = found->phase;
  out.score_lengths = std::move(found->lengths);
  out.longer_prompts = std::move(found->forecast);
  out.forecast_test.emplace();
  if (found->test) out.forecast_test->push_back(*found->test);
}

void fill_budget(const Head& head, const HeadOptions& options, HeadDiagnosis& out) {
  out.budget = budget_rows(head, options.budgets, options.gap, options.sinks,
                           Stream(options.seed).split(kBudgetStream));
  const Index keys = std::min(head.n, kBudgetKeys);
  out.budget_verdict = budget_verdict(*out.budget, options.tolerance, keys * (head.dk + head.dv));
}

// Scores of each query as they enter the softmax.
std::vector<Vector> seen_scores(const Head& head, const std::vector<Index>& queries) {
  const Matrix K = head.K(0, head.n);
  std::vector<Vector> out;
  for (const Index query : queries) out.push_back(seen_keys(head, K, query).scores);
  return out;
}

void check_options(const Head& head, const HeadOptions& options) {
  const std::string where = "head " + head.name;
  for (const Index k : options.components) {
    if (k < 2) throw_argument(where, "components", std::to_string(k), "at least 2");
  }
  if (options.most_queries < 1) {
    throw_argument(where, "queries", std::to_string(options.most_queries), "at least 1");
  }
  for (const Index w : options.windows) {
    if (w < std::max<Index>(1, options.sinks)) {
      throw_argument(where, "window", std::to_string(w),
                     "at least 1 and the number of sinks, " + std::to_string(options.sinks));
    }
  }
  for (const Index budget : options.budgets) {
    if (budget < 1) throw_argument(where, "budget", std::to_string(budget), "at least 1");
  }
  if (options.mixture_keys < 1) {
    throw_argument(where, "mixture_keys", std::to_string(options.mixture_keys), "at least 1");
  }
  if (options.sinks < 0) {
    throw_argument(where, "sinks", std::to_string(options.sinks), "at least 0");
  }
  if (options.heavy < 0) {
    throw_argument(where, "heavy", std::to_string(options.heavy), "at least 0");
  }
  if (!(options.tolerance > 0)) {
    throw_argument(where, "tolerance", to_text(options.tolerance), "a positive number");
  }
}

std::vector<Index> checked_queries(const Head& head, const HeadOptions& options) {
  if (options.queries.empty()) {
    const std::vector<Index> queries = default_queries(head, options.most_queries);
    if (queries.empty()) {
      throw_argument("head " + head.name, "mask", "every key of every query hidden",
                     "queries that see a key");
    }
    return queries;
  }
  for (const Index query : options.queries) {
    if (query < 0 || query >= head.n_queries) {
      throw_argument("head " + head.name, "query", std::to_string(query),
                     "an index below " + std::to_string(head.n_queries));
    }
    if (head.rules.bias && !sees_keys(head, query)) {
      throw_argument("head " + head.name, "query", std::to_string(query), "one that sees a key");
    }
  }
  return options.queries;
}

// Finite queries and keys may have scores that are not.
void check_results(const Head& head, const std::vector<PromptResult>& results,
                   const std::vector<Index>& queries) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PromptResult& r = results[i];
    if (!std::isfinite(r.moments.tau2 * r.moments.tau2) || !std::isfinite(r.moments.value_var) ||
        !std::isfinite(r.norm)) {
      throw_argument("head " + head.name,
                     "size of the scores of query " + std::to_string(queries[i]),
                     "too large for double precision", "scale, Q, K and V of a usable size");
    }
  }
}

}  // namespace

HeadDiagnosis diagnose(const Head& head, const HeadOptions& options) {
  check_head(head);
  check_options(head, options);
  std::vector<SurrogateModel> models = fit_models(head, options, {false, true});
  const std::vector<Index> queries = checked_queries(head, options);
  const std::vector<PromptResult> results =
      head.rules.none() ? walk_prompt(head, queries, models, options.mixture_keys)
                        : walk_ruled(head, queries, models);
  check_results(head, results, queries);
  HeadDiagnosis out;
  out.name = head.name;
  out.n = head.n;
  out.dk = head.dk;
  out.dv = head.dv;
  out.queries = static_cast<Index>(results.size());
  out.causal = head.causal;
  out.scale = head.scale;
  fill_scores(results, out);
  const std::optional<KeyDependence> dependence = key_dependence(head);
  fill_dependence(dependence, out);
  fill_errors(results, models, out);
  if (head.rules.none() && !out.mixtures.empty() && head.n > options.mixture_keys) {
    const Index stride = mixture_stride(head.n, options.mixture_keys);
    out.mixture_keys = (head.n + stride - 1) / stride;
  }
  fill_control(results, options.tolerance, out);
  fill_verdict(head, results, options, out);
  if (head.rules.none() && out.gaussian.lin_c > options.tolerance) {
    fill_causes(head, results, dependence, options, out);
  }
  for (const SurrogateModel& model : models) {
    if (model.k == out.best_k && !model.split) {
      out.score_mixture = score_density(model.moments.surrogate(model.floor()), results);
    }
  }
  out.score_histogram = head.rules.none() ? score_histogram(head, results)
                                          : score_histogram(seen_scores(head, queries));
  if (head.rules.none()) {
    out.prefixes = prefix_rows(head, results);
    fill_score_scale(head, results, out);
  }
  if (!options.windows.empty()) fill_windows(head, options, queries, results, models, out);
  if (!options.budgets.empty()) fill_budget(head, options, out);
  out.cost = cost_rows(out);
  return out;
}

Cells<HeadDiagnosis> diagnosis_cells(std::vector<Head> heads, const HeadOptions& options) {
  Cells<HeadDiagnosis> cells;
  for (const Head& head : heads) cells.keys.push_back(head.name);
  cells.compute = [heads = std::move(heads), options](std::size_t i) {
    return std::vector<HeadDiagnosis>{diagnose(heads[i], options)};
  };
  return cells;
}

std::vector<HeadDiagnosis> diagnose(const std::vector<Head>& heads, const HeadOptions& options) {
  return compute_here(diagnosis_cells(heads, options));
}

std::vector<Surrogate> fit_surrogates(const Head& head, const HeadOptions& options) {
  check_head(head);
  check_options(head, options);
  std::vector<SurrogateModel> models = fit_models(head, options, {false});
  if (head.rules.none()) {
    walk_prompt(head, {head.causal ? head.n_queries - 1 : 0}, models, options.mixture_keys);
  } else {
    walk_ruled(head, {default_queries(head).back()}, models);
  }
  std::vector<Surrogate> out;
  for (const SurrogateModel& model : models) out.push_back(model.moments.surrogate(model.floor()));
  return out;
}

}  // namespace esscher
