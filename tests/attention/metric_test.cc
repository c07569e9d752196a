#include "esscher/attention/metric.h"

#include <gtest/gtest.h>

#include <functional>

#include "esscher/attention/attention.h"
#include "esscher/base/error.h"
#include "esscher/measure/any_measure.h"
#include "esscher/measure/gaussian.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

// The sum of the squares of all partial derivatives of T in the entries of M, by differences.
double jacobian_norm2(const Matrix& M, const std::function<Vector(const Matrix&)>& T) {
  constexpr double h = 1e-5;
  double sum = 0;
  for (Index i = 0; i < M.rows(); ++i) {
    for (Index j = 0; j < M.cols(); ++j) {
      Matrix up = M, down = M;
      up(i, j) += h;
      down(i, j) -= h;
      sum += ((T(up) - T(down)) / (2 * h)).squaredNorm();
    }
  }
  return sum;
}

// The form of every metric gives the size of what it stands for: the output, and its derivatives in
// V, U, K and Q.
TEST(MetricForm, IsTheSizeOfOutputAndDerivatives) {
  const Matrix K = random_matrix(Stream(1), 2, 3), Q = random_matrix(Stream(2), 2, 3);
  const Matrix V = random_matrix(Stream(3), 4, 3);
  const Vector z = Vector{{0.4, -0.7, 0.5}};
  const double scale = 0.3;
  const AnyMeasure mu = Gaussian(Vector{{0.2, 0.1, -0.4}}, testing::random_psd(Stream(4), 3));
  const Attention attention = Attention::from_kqv(K, Q, V, scale);
  const Vector a = attention.tilt(z);
  const auto size2 = [&](Metric metric) {
    const MetricForm form = metric_form(metric, attention);
    EXPECT_EQ(form.of_covariance, reads_covariance(metric));
    return form.factor(z) * (form.of_covariance ? form.covariance_norm2(V * mu.tilted_cov(a))
                                                : form.mean_norm2(mu.tilted_mean(a)));
  };
  EXPECT_TRUE(close(size2(Metric::output), attention(mu, z).squaredNorm(), 1e-12));
  EXPECT_TRUE(
      close(size2(Metric::grad_v),
            jacobian_norm2(
                V, [&](const Matrix& x) { return Attention::from_kqv(K, Q, x, scale)(mu, z); }),
            1e-8));
  EXPECT_TRUE(
      close(size2(Metric::grad_u),
            jacobian_norm2(attention.U(),
                           [&](const Matrix& x) { return Attention::from_uv(x, V)(mu, z); }),
            1e-8));
  EXPECT_TRUE(
      close(size2(Metric::grad_k),
            jacobian_norm2(
                K, [&](const Matrix& x) { return Attention::from_kqv(x, Q, V, scale)(mu, z); }),
            1e-8));
  EXPECT_TRUE(
      close(size2(Metric::grad_q),
            jacobian_norm2(
                Q, [&](const Matrix& x) { return Attention::from_kqv(K, x, V, scale)(mu, z); }),
            1e-8));
}

TEST(MetricForm, GradientsInKAndQNeedThem) {
  const Matrix I = Matrix::Identity(2, 2);
  const Attention uv = Attention::from_uv(I, I);
  EXPECT_NO_THROW((void)metric_form(Metric::grad_u, uv));
  EXPECT_THROW((void)metric_form(Metric::grad_k, uv), CapabilityError);
  EXPECT_THROW((void)metric_form(Metric::grad_q, uv), CapabilityError);
}

}  // namespace
}  // namespace esscher
