#include "esscher/concentration/limit_size.h"

#include "esscher/base/error.h"
#include "esscher/concentration/detail/limit_size.h"

namespace esscher {

double limit_norm2(Metric metric, const Problem& problem, const VectorView& z) {
  const MetricForm form = metric_form(metric, problem.attention);
  const Vector a = problem.attention.tilt(z);
  const double size2 = form.of_covariance
                           ? form.covariance_norm2(problem.attention.V() * problem.mu.tilted_cov(a))
                           : form.mean_norm2(problem.mu.tilted_mean(a));
  return form.factor(z) * size2;
}

LimitSize limit_size(Metric metric, std::size_t k, const Problem& problem, const QueryPlan& plan) {
  if (plan.average) return {.mean_square = plan.average->limit_norm2(k)};
  const QuerySet& set = plan.queries;
  Vector norms(set.size());
  try {
    for (Index q = 0; q < set.size(); ++q) {
      norms[q] = limit_norm2(metric, problem, set.z.row(q).transpose());
    }
  } catch (const DomainError&) {
    return {};
  }
  if (set.level == Queries::fixed) return {.mean_square = norms.mean()};
  const Matrix shares = set.shares(norms);
  const TwoLevel t = set.interval(set.independent(shares).col(0));
  return {.mean_square = t.mean, .std_error = t.std_error, .ci = t.ci};
}

}  // namespace esscher
