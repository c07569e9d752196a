#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "esscher/estimate/quantile.h"
#include "esscher/heads/control.h"
#include "esscher/heads/detail/diagnosis_parts.h"
#include "esscher/heads/detail/ratio.h"

namespace esscher {
namespace {

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

}  // namespace

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

// Softmax keeps every key and value that a query may see; a surrogate keeps moments, and where keys are
// forgotten also what the moments must be freed of.
std::vector<CostRow> cost_rows(const HeadDiagnosis& head, const KeptKeys& kept) {
  const Index dk = head.dk;
  const Index dv = head.dv;
  const Index whole = kept.count * (dk + dv);
  const Index forgotten = kept.forgotten ? whole : 0;
  std::vector<CostRow> rows = {
      {.surrogate = std::string(kSoftmax), .state = whole, .multiply_adds = whole},
      {.surrogate = "mean",
       .state = dv + (kept.forgotten ? kept.count * dv : 0),
       .multiply_adds = 0},
      {.surrogate = "uncentred", .state = forgotten + dv * dk, .multiply_adds = dv * dk},
      {.surrogate = "gaussian", .state = forgotten + dv * (dk + 1), .multiply_adds = dv * dk}};
  for (const MixtureRow& row : head.mixtures) {
    // Per component: weight, mean of k, covariance of k (triangle), mean of v, cross-covariance.
    const Index reads = dk + dk * (dk + 1) / 2 + dv * (dk + 1);
    rows.push_back({.surrogate = "mixture " + std::to_string(row.k),
                    .state = forgotten + row.k * (1 + reads),
                    .multiply_adds = row.k * reads});
  }
  return rows;
}

}  // namespace esscher
