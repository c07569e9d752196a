#include "esscher/heads/mixture_fit.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

// Three Gaussians of different widths that overlap.
Matrix overlapping(Index n, Index d) {
  Matrix keys = random_matrix(Stream(41, 1), n, d);
  for (Index l = 0; l < n; ++l) {
    keys.row(l) *= 0.5 + 0.5 * static_cast<double>(l % 3);
    keys(l, l % 3 % d) += 2.0;
  }
  return keys;
}

// log w_c + log N(key; m_c, C_c) [n,k], as it is written.
Matrix log_joint(const MixtureFit& fit, const Matrix& keys) {
  Matrix out(keys.rows(), fit.size());
  for (Index c = 0; c < fit.size(); ++c) {
    const Eigen::LDLT<Matrix> factor(2 * std::numbers::pi * fit.covs[c]);
    for (Index l = 0; l < keys.rows(); ++l) {
      const Vector x = keys.row(l).transpose() - fit.means[c];
      out(l, c) = std::log(fit.weights(c)) - std::numbers::pi * x.dot(factor.solve(x)) -
                  0.5 * factor.vectorD().array().log().sum();
    }
  }
  return out;
}

double mean_log_likelihood(const MixtureFit& fit, const Matrix& keys) {
  return log_joint(fit, keys).array().exp().rowwise().sum().log().mean();
}

// One EM step as it is written.
MixtureFit step(MixtureFit fit, const Matrix& keys) {
  Matrix r = log_joint(fit, keys).array().exp();
  for (Index l = 0; l < r.rows(); ++l) r.row(l) /= r.row(l).sum();
  for (Index c = 0; c < fit.size(); ++c) {
    const double weight = r.col(c).sum();
    fit.weights(c) = weight / static_cast<double>(keys.rows());
    fit.means[c] = keys.transpose() * r.col(c) / weight;
    const Matrix centred = keys.rowwise() - fit.means[c].transpose();
    fit.covs[c] = centred.transpose() * r.col(c).asDiagonal() * centred / weight;
    fit.covs[c].diagonal().array() += fit.floor;
  }
  return fit;
}

TEST(MixtureFit, GoesOnUntilAPlainStepGainsNothing) {
  const Matrix keys = overlapping(900, 3);
  for (const Index k : {2, 3, 5}) {
    const MixtureFit fit = fit_mixture(keys, k, Stream(1), {.max_iterations = 500});
    ASSERT_TRUE(fit.converged) << k;
    EXPECT_TRUE(testing::close(fit.log_likelihood, mean_log_likelihood(fit, keys), 1e-12)) << k;
    EXPECT_LT(mean_log_likelihood(step(fit, keys), keys) - fit.log_likelihood, 2e-3) << k;
    const Matrix joint = log_joint(fit, keys).array().exp();
    const Matrix r = joint.array().colwise() / joint.rowwise().sum().array();
    EXPECT_TRUE(testing::close(responsibilities(fit, keys), r, 1e-10, 1.0)) << k;
  }
}

TEST(MixtureFit, SaysWhenItWasStopped) {
  const Matrix keys = overlapping(900, 3);
  const MixtureFitOptions patient{.max_iterations = 500, .tolerance = 1e-5};
  const MixtureFit full = fit_mixture(keys, 5, Stream(1), patient);
  double last = -std::numeric_limits<double>::infinity();
  for (const int most : {1, 3, 7}) {
    const MixtureFit fit =
        fit_mixture(keys, 5, Stream(1), {.max_iterations = most, .tolerance = 1e-5});
    EXPECT_FALSE(fit.converged) << most;
    EXPECT_EQ(fit.steps, most);
    EXPECT_GT(fit.log_likelihood, last);
    last = fit.log_likelihood;
  }
  EXPECT_TRUE(full.converged);
  EXPECT_GT(full.log_likelihood, last);
  EXPECT_GT(full.steps, 7);
}

// Clusters that do not touch are found, and there is nothing left to do.
TEST(MixtureFit, FindsClusters) {
  Matrix keys = 0.1 * random_matrix(Stream(41, 2), 600, 2);
  for (Index l = 0; l < keys.rows(); ++l) keys(l, 0) += 5.0 * static_cast<double>(l % 3);
  const MixtureFit fit = fit_mixture(keys, 3, Stream(3));
  EXPECT_TRUE(fit.converged);
  for (Index c = 0; c < 3; ++c) {
    EXPECT_NEAR(fit.weights(c), 1.0 / 3, 1e-9);
    EXPECT_NEAR(std::remainder(fit.means[c](0), 5.0), 0, 0.03);
    EXPECT_NEAR(fit.covs[c](1, 1), 0.01 + fit.floor, 0.003);
  }
}

TEST(MixtureFit, RefusesMoreComponentsThanKeys) {
  EXPECT_THROW(fit_mixture(random_matrix(Stream(41, 1), 3, 2), 4, Stream(1)), ArgumentError);
  EXPECT_THROW(fit_mixture(random_matrix(Stream(41, 1), 3, 2), 0, Stream(1)), ArgumentError);
}

}  // namespace
}  // namespace esscher
