#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "esscher/concentration/detail/study_state.h"
#include "esscher/concentration/length.h"
#include "esscher/estimate/smallest_length.h"

namespace esscher {
namespace {

using ValueOf = std::function<double(const StudyRow&)>;

// The first length at which `value` is at most eps, by the power law through the two points around
// it; absent unless the curve crosses eps between two of its lengths.
std::optional<std::int64_t> crossing(const std::vector<StudyRow>& curve, const ValueOf& value,
                                     double eps) {
  const auto below = std::find_if(curve.begin(), curve.end(),
                                  [&](const StudyRow& row) { return value(row) <= eps; });
  if (below == curve.begin() || below == curve.end()) return std::nullopt;
  const StudyRow &a = *(below - 1), &b = *below;
  const double high = std::log(value(a)), low = std::log(std::max(value(b), 1e-300));
  const double part = (high - std::log(eps)) / (high - low);
  const double x = std::log(static_cast<double>(a.L)), y = std::log(static_cast<double>(b.L));
  const auto L = static_cast<std::int64_t>(std::ceil(std::exp(x + part * (y - x))));
  return std::clamp(L, a.L + 1, b.L);
}

}  // namespace

Reach Study::reach(double fraction, const StudyResult& result) const {
  const State& s = *states_.front();
  Reach out{.metric = result.metrics.at(0), .fraction = fraction};
  const LimitSize limit = result.limits.at(0);
  const double eps = fraction * fraction * limit.mean_square;
  if (!(eps > 0)) return out;  // a limit of zero, or none: no relative error is small
  std::vector<StudyRow> curve;
  std::copy_if(result.rows.begin(), result.rows.end(), std::back_inserter(curve),
               [&](const StudyRow& row) { return row.metric == out.metric; });
  const auto value = [](const StudyRow& row) { return row.value; };
  const auto enough = std::find_if(curve.begin(), curve.end(),
                                   [&](const StudyRow& row) { return row.value <= eps; });
  if (enough == curve.begin()) {
    out.status = ReachStatus::shorter;
    out.length = curve.front().L;
  } else if (s.plan.average) {
    const std::int64_t to = enough == curve.end() ? kMaxLength : enough->L;
    const auto D = [&](std::int64_t L) { return s.plan.average->at(L)[0].value; };
    out.length = smallest_length(D, eps, {.from = (enough - 1)->L, .to = to}).length;
    if (out.length) out.status = ReachStatus::certified;
  } else if (enough != curve.end()) {
    // The size of the limit is an estimate too, so eps moves within its error.
    const double square = fraction * fraction;
    out.status = ReachStatus::interpolated;
    out.length = crossing(curve, value, eps);
    out.low = crossing(
        curve, [](const StudyRow& row) { return row.ci.lo; }, square * limit.ci.hi);
    out.high = crossing(
        curve, [](const StudyRow& row) { return row.ci.hi; }, square * limit.ci.lo);
  } else if (std::isfinite(curve.back().asymptotic)) {
    const double constant = curve.back().asymptotic * static_cast<double>(curve.back().L);
    const double L = std::ceil(constant / eps);
    if (L > static_cast<double>(kMaxLength)) return out;
    out.status = ReachStatus::extrapolated;
    out.length = static_cast<std::int64_t>(L);
  }
  return out;
}

}  // namespace esscher
