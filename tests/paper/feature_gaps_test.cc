#include "esscher/paper/feature_gaps.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/paper/judged.h"
#include "esscher/training/start.h"
#include "tests/testing.h"

namespace esscher::paper {
namespace {

using testing::close;

LinearRegressionTask task_of(Features features, Index d = 2) {
  LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(d, 0.5));
  task.features = features;
  return task;
}

// E_x E|b xbar - x|^2 / 2 over all prompts of L signs and all queries, d = 2.
double enumerated_risk(const Matrix& root, const Matrix& A, double b, int L) {
  Matrix atoms(4, 2);
  for (int i = 0; i < 4; ++i) atoms.row(i) << (i % 2 == 0 ? -1 : 1), (i < 2 ? -1 : 1);
  atoms *= root;
  double total = 0;
  const int prompts = static_cast<int>(std::pow(4, L));
  for (int q = 0; q < 4; ++q) {
    const Vector x = atoms.row(q).transpose(), weight = (atoms * (A * x)).array().exp();
    for (int code = 0; code < prompts; ++code) {
      Vector sum = Vector::Zero(2);
      double norm = 0;
      for (int l = 0, rest = code; l < L; ++l, rest /= 4) {
        sum += weight[rest % 4] * atoms.row(rest % 4).transpose();
        norm += weight[rest % 4];
      }
      total += (b * sum / norm - x).squaredNorm() / 2;
    }
  }
  return total / 4 / prompts;
}

// The gap at two lengths: gradients of all entries, none taken together.
TEST(FeatureGaps, SignsByEnumeration) {
  const LinearRegressionTask task = task_of(Features::rademacher);
  const FeatureGaps gaps(task);
  const Vector theta = gaps.path(balanced_start_bound(task) / 2, 1.5);
  const Matrix root = psd_sqrt("test", "cov", task.prompt_cov);
  const auto slope = [&](int L, Index k) {
    const double h = 1e-5;
    const auto at = [&](double step) {
      Vector moved = theta;
      moved[k] += step;
      return enumerated_risk(root, Eigen::Map<const Matrix>(moved.data(), 2, 2), moved[4], L);
    };
    return (at(h) - at(-h)) / (2 * h);
  };
  const Vector limit = gaps.limit_gradient(theta);
  for (const int L : {2, 4}) {
    double square = 0;
    for (Index k = 0; k < 5; ++k) square += std::pow(slope(L, k) - limit[k], 2);
    EXPECT_TRUE(close(gaps.gaps(theta, {L})[0].gap, std::sqrt(square), 1e-5)) << L;
  }
}

TEST(FeatureGaps, AgreeWithIndependentValues) {
  const double t = 0.02 * std::pow(2500.0, 15 / 23.0);
  for (const Features features : {Features::rademacher, Features::uniform, Features::sphere}) {
    const LinearRegressionTask task = task_of(features);
    const FeatureGaps gaps(task);
    const std::vector<FeatureGap> got =
        gaps.gaps(gaps.path(balanced_start_bound(task) / 2, t), {10, 100});
    for (const FeatureGap& g : got) {
      const IndependentValue& want = independent(std::string(name(features)) + " gap d=2", t, g.L);
      EXPECT_NEAR(g.gap, want.value, 1e-6 * want.value + 3 * (g.error + want.error))
          << name(features) << " " << g.L;
      EXPECT_LT(g.error, 0.01 * g.gap);
    }
  }
}

TEST(FeatureGaps, RefusesWhatItDoesNotServe) {
  EXPECT_THROW((void)FeatureGaps(task_of(Features::gaussian)), ArgumentError);
  EXPECT_THROW((void)FeatureGaps(task_of(Features::sphere, 4)), CapabilityError);
}

}  // namespace
}  // namespace esscher::paper
