#include "esscher/universal/score_mixture.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/prompt/exact_mixture.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// Components of weights, means and widths spread over orders of magnitude, values in 3 dimensions.
ScoreMixture random_mixture(const Stream& s, Index K) {
  constexpr Index dv = 3;
  ScoreMixture out{Vector(K), Vector(K), Vector(K), Matrix(K, dv), Matrix(K, dv), Vector(K)};
  const double width = std::exp(-2 + 3.5 * s.uniform(0));
  for (Index k = 0; k < K; ++k) {
    const Stream part = s.split(static_cast<std::uint64_t>(k));
    out.weights[k] = std::exp(-6 * part.uniform(0));
    out.mu[k] = 3 * s.uniform(1) * part.normal(1);
    const double tau = width * std::exp(-3 * part.uniform(2));
    out.tau2[k] = tau * tau;
    for (Index i = 0; i < dv; ++i) {
      out.mean(k, i) = part.normal(static_cast<std::uint64_t>(10 + i));
      out.cross(k, i) = tau * part.normal(static_cast<std::uint64_t>(20 + i));
    }
    out.variance[k] = out.cross.row(k).squaredNorm() / out.tau2[k] + part.uniform(3);
  }
  out.weights /= out.weights.sum();
  return out;
}

// Tokens (s, t) whose score and value these are: the value is read by V from t, and what the score
// does not explain of it is spread evenly.
double exact(const ScoreMixture& mixture, std::int64_t L) {
  const Index dv = mixture.mean.cols();
  GaussianMixtureLaw law{.weights = mixture.weights, .components = {}};
  for (Index k = 0; k < mixture.weights.size(); ++k) {
    const Vector c = mixture.cross.row(k);
    const double rest = mixture.variance[k] - c.squaredNorm() / mixture.tau2[k];
    GaussianLaw part{Vector(1 + dv), Matrix(1 + dv, 1 + dv)};
    part.mean << mixture.mu[k], mixture.mean.row(k).transpose();
    part.cov << Matrix::Constant(1, 1, mixture.tau2[k]), c.transpose(), c,
        c * c.transpose() / mixture.tau2[k] +
            rest / static_cast<double>(dv) * Matrix::Identity(dv, dv);
    law.components.push_back(part);
  }
  Matrix U = Matrix::Zero(1 + dv, 1 + dv);
  U(0, 0) = 1;
  Matrix V = Matrix::Zero(dv, 1 + dv);
  V.rightCols(dv).setIdentity();
  return MixtureErrors(law, Attention::from_uv(U, V), Vector::Unit(1 + dv, 0))
      .error_parts(Metric::output, L)
      .total();
}

TEST(ScoreMixture, IsWithinAMillionthOfTheExactEngine) {
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Stream s(32, id);
    const ScoreMixture mixture = random_mixture(s, 1 + static_cast<Index>(16 * s.uniform(9)));
    const std::int64_t L = std::llround(std::pow(10.0, 9 * s.uniform(8)));
    EXPECT_TRUE(close(mean_square_error(mixture, L), exact(mixture, L), 1e-6))
        << id << " L " << L << " tau2 " << mixture.tau2.transpose();
  }
}

TEST(ScoreMixture, ReachesWideScores) {
  for (const double tau : {10.0, 39.0}) {
    for (const std::int64_t L : {1, 2, 1000, 1000000}) {
      ScoreMixture mixture = random_mixture(Stream(35), 3);
      mixture.cross *= tau;
      mixture.variance *= tau * tau;
      mixture.tau2 *= tau * tau / mixture.tau2.maxCoeff();
      for (Index k = 0; k < 3; ++k) {
        mixture.variance[k] = mixture.cross.row(k).squaredNorm() / mixture.tau2[k] + 1;
      }
      EXPECT_TRUE(close(mean_square_error(mixture, L), exact(mixture, L), 1e-6)) << tau << " " << L;
    }
  }
}

TEST(ScoreMixture, OnlyDifferencesOfScoresAndComponentsWithWeightMatter) {
  const ScoreMixture mixture = random_mixture(Stream(33), 3);
  ScoreMixture moved = mixture;
  moved.mu.array() += 500;
  ScoreMixture more = random_mixture(Stream(34), 4);
  more.weights << mixture.weights, 0.0;
  more.mu.head(3) = mixture.mu;
  more.tau2.head(3) = mixture.tau2;
  more.variance.head(3) = mixture.variance;
  more.mean.topRows(3) = mixture.mean;
  more.cross.topRows(3) = mixture.cross;
  const double want = mean_square_error(mixture, 100);
  EXPECT_TRUE(close(mean_square_error(moved, 100), want, 1e-11));
  EXPECT_TRUE(close(mean_square_error(more, 100), want, 1e-14));
  EXPECT_TRUE(close(limit(more), limit(mixture), 1e-14));
}

}  // namespace
}  // namespace esscher
