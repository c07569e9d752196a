#include "esscher/heads/detail/prefixes.h"

#include <algorithm>

#include "esscher/estimate/quantile.h"

namespace esscher {
namespace {

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
  return {.n = n,
          .lin_c = median(measured),
          .control = median(control),
          .control_low = quantile(control, 0.1),
          .control_high = quantile(control, 0.9)};
}

}  // namespace

std::vector<PrefixRow> prefix_rows(const Head& head, const std::vector<PromptResult>& results) {
  const std::vector<PromptResult> few = few_of(results);
  const Index longest = std::min(head.n, kHeadChunk);
  const Matrix keys = head.K(0, longest);
  const Matrix values = head.V(0, longest);
  std::vector<PrefixRow> rows;
  const auto add = [&](Index n) {
    const bool reached = std::any_of(few.begin(), few.end(), [&](const PromptResult& query) {
      return query.n >= static_cast<double>(n);
    });
    if (reached) rows.push_back(prefix_row(keys, values, few, n));
  };
  for (Index n = 16; n < longest; n *= 2) add(n);
  if (longest > 1) add(longest);
  return rows;
}

}  // namespace esscher
