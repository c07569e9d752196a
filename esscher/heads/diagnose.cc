#include "esscher/heads/diagnose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/score_law.h"
#include "esscher/heads/verdict.h"
#include "esscher/heads/walk.h"

namespace esscher {
namespace {

constexpr Index kLengthQueries = 5;  // representatives for linear_from, by quantile of tau2

// Median over queries of error / scale. An error that is rounding of |T| counts as 0, also where
// there is nothing to explain and the scale is rounding too.
double median_ratio(const std::vector<double>& errors, const std::vector<double>& scales,
                    const std::vector<double>& norms) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const bool nothing = errors[i] <= 1e-13 * norms[i];
    ratios.push_back(nothing ? 0.0 : errors[i] / std::max(scales[i], 1e-300));
  }
  return median(ratios);
}

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
  return {median_ratio(errors, norms, norms), median_ratio(errors, signals, norms)};
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

std::optional<MixtureControl> control_of(const std::vector<PromptResult>& results,
                                         std::size_t model) {
  std::vector<double> ratios;
  for (const PromptResult& result : results) {
    if (std::isnan(result.controls[model]) || result.signal <= 1e-12 * result.norm) continue;
    ratios.push_back(result.controls[model] / result.signal);
  }
  if (ratios.empty()) return std::nullopt;
  return MixtureControl{median(ratios), static_cast<Index>(ratios.size())};
}

void fill_errors(const std::vector<PromptResult>& results,
                 const std::vector<SurrogateModel>& models, HeadDiagnosis& out) {
  const auto norms = collect(results, [](const PromptResult& r) { return r.norm; });
  const auto signals = collect(results, [](const PromptResult& r) { return r.signal; });
  const auto uncentred = collect(results, [](const PromptResult& r) { return r.uncentred; });
  out.mean_only = {median_ratio(signals, norms, norms), median_ratio(signals, signals, norms)};
  out.uncentred = {median_ratio(uncentred, norms, norms), median_ratio(uncentred, signals, norms)};
  for (std::size_t m = 0; m < models.size(); ++m) {
    const SurrogateModel& model = models[m];
    const SurrogateError error = error_of(results, m, model.split);
    if (model.k == 1) {
      (model.split ? out.gaussian_split : out.gaussian) = error;
      continue;
    }
    auto row = std::find_if(out.mixtures.begin(), out.mixtures.end(),
                            [&](const MixtureRow& r) { return r.k == model.k; });
    if (row != out.mixtures.end()) {
      row->split = error;
      row->converged = row->converged && model.fit->converged;
    } else if (!model.split) {
      out.mixtures.push_back({.k = model.k,
                              .in_sample = error,
                              .split = std::nullopt,
                              .control = control_of(results, m),
                              .steps = model.fit->steps,
                              .converged = model.fit->converged});
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
    const std::int64_t length = linear_from(order[at]->moments, tolerance);
    lengths.push_back(length == kNeverLinear ? std::numeric_limits<double>::infinity()
                                             : static_cast<double>(length));
  }
  const double typical = quantile(lengths, 0.5);
  out.linear_from =
      std::isinf(typical) ? kNeverLinear : static_cast<std::int64_t>(std::llround(typical));
}

PrefixRow prefix_row(const Matrix& keys, const Matrix& values,
                     const std::vector<PromptResult>& results, Index n) {
  const Matrix k = keys.topRows(n);
  const Matrix v = values.topRows(n);
  const Vector mean_v = v.colwise().mean();
  const Matrix centred = v.rowwise() - mean_v.transpose();
  std::vector<double> measured;
  std::vector<double> control;
  for (const PromptResult& query : results) {
    if (query.n < static_cast<double>(n)) continue;
    const Vector s = k * query.a;
    const Vector shifted = s.array() - s.mean();
    const Vector w = (s.array() - s.maxCoeff()).exp();
    const Vector moved = centred.transpose() * w / w.sum();
    const Vector linear = centred.transpose() * shifted / static_cast<double>(n);
    const double signal = moved.norm();
    measured.push_back(signal > 0 ? (moved - linear).norm() / signal : 0.0);
    control.push_back(
        gaussian_control(n, {.tau2 = shifted.squaredNorm() / static_cast<double>(n),
                             .signal2 = linear.squaredNorm(),
                             .value_var = centred.squaredNorm() / static_cast<double>(n)})
            .relative());
  }
  return {n, median(measured), median(control), quantile(control, 0.1), quantile(control, 0.9)};
}

// Prefixes of doubling length up to the longest that fits one chunk; a few queries are enough.
void fill_prefixes(const Head& head, const std::vector<PromptResult>& results, HeadDiagnosis& out) {
  constexpr std::size_t kQueries = 16;
  std::vector<PromptResult> few;
  const std::size_t count = std::min(kQueries, results.size());
  for (std::size_t i = 0; i < count; ++i) few.push_back(results[i * results.size() / count]);
  const Index longest = std::min(head.n, kHeadChunk);
  const Matrix keys = head.K(0, longest);
  const Matrix values = head.V(0, longest);
  const bool any = std::any_of(few.begin(), few.end(), [&](const PromptResult& r) {
    return r.n >= static_cast<double>(longest);
  });
  for (Index n = 16; n < longest; n *= 2) {
    const bool reached = std::any_of(few.begin(), few.end(), [&](const PromptResult& r) {
      return r.n >= static_cast<double>(n);
    });
    if (reached) out.prefixes.push_back(prefix_row(keys, values, few, n));
  }
  if (any && longest > 1) out.prefixes.push_back(prefix_row(keys, values, few, longest));
}

void check_options(const Head& head, const HeadOptions& options) {
  const std::string where = "head " + head.name;
  for (const Index k : options.components) {
    if (k < 2) throw_argument(where, "components", std::to_string(k), "at least 2");
  }
  if (options.most_queries < 1) {
    throw_argument(where, "queries", std::to_string(options.most_queries), "at least 1");
  }
  if (!(options.tolerance > 0)) {
    throw_argument(where, "tolerance", to_text(options.tolerance), "a positive number");
  }
}

std::vector<Index> checked_queries(const Head& head, const HeadOptions& options) {
  if (options.queries.empty()) return default_queries(head, options.most_queries);
  for (const Index query : options.queries) {
    if (query < 0 || query >= head.n_queries) {
      throw_argument("head " + head.name, "query", std::to_string(query),
                     "an index below " + std::to_string(head.n_queries));
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
  const std::vector<PromptResult> results = walk_prompt(head, queries, models);
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
  fill_errors(results, models, out);
  fill_control(results, options.tolerance, out);
  if (const MixtureRow* best = best_mixture(out); best != nullptr) {
    for (const SurrogateModel& model : models) {
      if (model.k == best->k && !model.split) {
        out.best_k = model.k;
        out.score_mixture = score_density(model.moments.surrogate(model.floor()), results);
      }
    }
  }
  judge(out, options.tolerance);
  fill_prefixes(head, results, out);
  out.score_histogram = score_histogram(head, results);
  return out;
}

std::vector<HeadDiagnosis> diagnose(const std::vector<Head>& heads, const HeadOptions& options) {
  std::vector<HeadDiagnosis> out(heads.size());
  parallel_for(static_cast<std::int64_t>(heads.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    out[at] = diagnose(heads[at], options);
  });
  return out;
}

std::vector<Surrogate> fit_surrogates(const Head& head, const HeadOptions& options) {
  check_head(head);
  check_options(head, options);
  std::vector<SurrogateModel> models = fit_models(head, options, {false});
  walk_prompt(head, {head.causal ? head.n_queries - 1 : 0}, models);
  std::vector<Surrogate> out;
  for (const SurrogateModel& model : models) out.push_back(model.moments.surrogate(model.floor()));
  return out;
}

}  // namespace esscher
