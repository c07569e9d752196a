#include "esscher/estimate/two_level.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/estimate/quantile.h"

namespace esscher {
namespace {

Index uniform_index(const Stream& stream, std::uint64_t i, Index n) {
  return std::min(n - 1, static_cast<Index>(stream.uniform(i) * static_cast<double>(n)));
}

}  // namespace

TwoLevel two_level(const VectorView& means, const VectorView& std_errors, Index replicates,
                   Queries queries, double level) {
  const Index Q = means.size();
  check_dimension("two_level", "std_errors", std_errors.size(), Q);
  if (Q < (queries == Queries::random ? 2 : 1)) {
    throw_argument("two_level", "queries", std::to_string(Q), "at least 2 drawn or 1 fixed query");
  }
  Moments m;
  for (Index q = 0; q < Q; ++q) m.add(means[q]);
  const double mean_noise = std_errors.squaredNorm() / static_cast<double>(Q);
  TwoLevel result;
  result.queries = Q;
  result.replicates = replicates;
  result.mean = m.mean();
  result.within = mean_noise * static_cast<double>(std::max<Index>(replicates, 1));
  result.between = std::max(0.0, m.variance() - mean_noise);
  if (queries == Queries::random) {
    result.std_error = m.std_error();
    result.ci = mean_interval(means, level);
  } else {
    result.std_error = std::sqrt(mean_noise / static_cast<double>(Q));
    const double dof = static_cast<double>(Q * std::max<Index>(replicates - 1, 1));
    result.ci = student_interval(result.mean, result.std_error, dof, level);
  }
  return result;
}

TwoLevel mean_of_squares(const VectorView& means, const VectorView& std_errors, Index replicates,
                         const SquareLaw& law, double level) {
  TwoLevel result = two_level(means, std_errors, replicates, Queries::fixed, level);
  check_dimension("mean_of_squares", "law", law.means.size(), means.size());
  check_dimension("mean_of_squares", "law", law.relative_variances.size(), means.size());
  const double total = law.means.sum();
  if (result.std_error == 0 || !(result.mean > 0)) return result;
  const double predicted = law.means.cwiseAbs2().dot(law.relative_variances) /
                           (total * total * static_cast<double>(replicates));
  const double measured = std::pow(result.std_error / result.mean, 2);
  constexpr double kTrust = 30;  // numbers that the law counts as
  const double n = static_cast<double>(means.size() * replicates) - 1;
  const double pooled = (kTrust * predicted + n * measured) / (kTrust + n);
  result.ci = chi_square_interval(result.mean, 2 / std::max(pooled, measured), level);
  return result;
}

TwoLevel two_level(const MatrixView& values, Queries queries) {
  const Index Q = values.rows(), R = values.cols();
  if (R < 1 || (queries == Queries::fixed && R < 2)) {
    throw_argument("two_level", "replicates", std::to_string(R), "at least 2 for fixed queries");
  }
  Vector means(Q), errors = Vector::Zero(Q);
  for (Index q = 0; q < Q; ++q) {
    Moments m;
    for (Index r = 0; r < R; ++r) m.add(values(q, r));
    means[q] = m.mean();
    if (R > 1) errors[q] = m.std_error();
  }
  return two_level(means, errors, R, queries);
}

Interval bootstrap_interval(const MatrixView& values, Queries queries, int draws,
                            const Stream& stream, double level) {
  const Index Q = values.rows(), R = values.cols();
  if (draws < 20) throw_argument("bootstrap", "draws", std::to_string(draws), "at least 20");
  const Vector means = values.rowwise().mean();
  std::vector<double> results(static_cast<std::size_t>(draws));
  for (int b = 0; b < draws; ++b) {
    const Stream s = stream.split(static_cast<std::uint64_t>(b));
    double sum = 0;
    if (queries == Queries::random) {
      for (Index q = 0; q < Q; ++q)
        sum += means[uniform_index(s, static_cast<std::uint64_t>(q), Q)];
      results[static_cast<std::size_t>(b)] = sum / static_cast<double>(Q);
    } else {
      for (Index i = 0; i < Q * R; ++i) {
        sum += values(i / R, uniform_index(s, static_cast<std::uint64_t>(i), R));
      }
      results[static_cast<std::size_t>(b)] = sum / static_cast<double>(Q * R);
    }
  }
  return {quantile(results, (1 - level) / 2), quantile(results, (1 + level) / 2)};
}

Matrix covariance_of_means(const MatrixView& samples) {
  const Index n = samples.rows();
  if (n < 2) throw_argument("covariance_of_means", "samples", std::to_string(n), "at least 2 rows");
  const Matrix centred = samples.rowwise() - samples.colwise().mean();
  return centred.transpose() * centred / (static_cast<double>(n) * static_cast<double>(n - 1));
}

}  // namespace esscher
