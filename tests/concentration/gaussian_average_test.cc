#include "esscher/concentration/gaussian_average.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/concentration/constant.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian.h"
#include "esscher/random/stream.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::random_matrix;
using testing::random_psd;

GaussianAverage one_dimension(double sigma, std::vector<Metric> metrics) {
  const Matrix one = Matrix::Ones(1, 1);
  return {std::move(metrics), GaussianLaw{Vector::Zero(1), sigma * sigma * one},
          Attention::from_uv(one, one), GaussianLaw{Vector::Zero(1), one}};
}

// Values and exponents that were computed independently of this code, one dimension, sigma = 0.9.
TEST(GaussianAverage, TheoryTable) {
  const GaussianAverage D = one_dimension(0.9, {Metric::output});
  const auto at = [&](std::int64_t L) { return D.at(L)[0].value; };
  EXPECT_TRUE(close(at(1000000), 7.25e-5, 1e-3));
  EXPECT_TRUE(close(at(1000000000000), 4.94e-9, 1e-3));
  const double sigmas[] = {0.5, 0.6, 0.70710678, 0.9};
  const double exponents[] = {1.000, 0.998, 0.942, 0.698};
  for (int i = 0; i < 4; ++i) {
    const GaussianAverage E = one_dimension(sigmas[i], {Metric::output});
    const double slope =
        std::log(E.at(10000000000)[0].value / E.at(1000000000000)[0].value) / std::log(100.0);
    EXPECT_NEAR(slope, exponents[i], 6e-4);
  }
}

// A plain fine sum over z in one dimension, with the formulas of docs/maths/prompts.md per query.
TEST(GaussianAverage, OneDimensionAgainstPlainQuadrature) {
  for (double sigma : {0.3, 0.9}) {
    const GaussianAverage D = one_dimension(sigma, {Metric::output, Metric::grad_u});
    for (std::int64_t L : {1L, 30L, 100000L}) {
      double output = 0, grad_u = 0, bias = 0, H = 0;
      for (double z = 0.05; z <= 14; z += 0.1) {
        const double p = 0.2 * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
        const Universal4 u = universal4(L, sigma * std::abs(z));
        output += p * sigma * sigma * u.M2c_ratio;
        bias += p * std::pow(u.H * sigma * sigma * z, 2);
        grad_u += p * z * z * std::pow(sigma, 4) * u.v2_ratio;
        H += p * u.H;
      }
      const auto got = D.at(L);
      EXPECT_TRUE(close(got[0].value, output, 1e-8)) << sigma << " " << L;
      EXPECT_TRUE(close(got[0].bias2, bias, 1e-8)) << sigma << " " << L;
      EXPECT_TRUE(close(got[0].bias2 + got[0].variance, got[0].value, 1e-12));
      EXPECT_TRUE(close(got[1].value, grad_u, 1e-8)) << sigma << " " << L;
      EXPECT_TRUE(close(D.effective_sample_size(L), 1 / H, 1e-8));
    }
  }
}

// Scores so sharp that softmax is frozen at nearly every query: tau up to 390.
TEST(GaussianAverage, SharpScoresAgainstPlainQuadrature) {
  const double sigma = 60;
  const GaussianAverage D = one_dimension(sigma, {Metric::output, Metric::grad_u});
  EXPECT_TRUE(close(D.at(1)[0].value, sigma * sigma * (1 + sigma * sigma), 1e-9));
  EXPECT_TRUE(close(D.effective_sample_size(1), 1.0, 1e-9));
  const std::int64_t L = 30;
  const double step = 0.0065;
  double output = 0, grad_u = 0, bias = 0, H = 0;
  for (double z = step / 2; z < 6.5; z += step) {
    const double p = 2 * step * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
    const Universal4 u = universal4(L, sigma * z);
    output += p * sigma * sigma * u.M2c_ratio;
    bias += p * std::pow(u.H * sigma * sigma * z, 2);
    grad_u += p * z * z * std::pow(sigma, 4) * u.v2_ratio;
    H += p * u.H;
  }
  EXPECT_TRUE(close(D.at(L)[0].value, output, 1e-8));
  EXPECT_TRUE(close(D.at(L)[0].bias2, bias, 1e-8));
  EXPECT_TRUE(close(D.at(L)[1].value, grad_u, 1e-8));
  EXPECT_TRUE(close(D.effective_sample_size(L), 1 / H, 1e-8));
}

struct Layer {
  GaussianLaw mu, nu;
  Attention attention;
};

// lambda_max(B) = lambda.
Layer setup(Index d, double lambda, std::uint64_t id) {
  GaussianLaw mu{random_matrix(Stream(23, id), d, 1), random_psd(Stream(23, id + 1), d)};
  GaussianLaw nu{Vector::Zero(d), random_psd(Stream(23, id + 2), d)};
  const Matrix K = random_matrix(Stream(23, id + 3), 2, d),
               V = random_matrix(Stream(23, id + 5), 2, d);
  Matrix Q = random_matrix(Stream(23, id + 4), 2, d);
  const Matrix U = K.transpose() * Q;
  const double now = TauLaw(U.transpose() * mu.cov * U, nu.mean, nu.cov).lambda();
  Q *= std::sqrt(lambda / now) / 0.7;
  return {mu, nu, Attention::from_kqv(K, Q, V, 0.7)};
}

const std::vector<Metric> kAll = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                                  Metric::grad_q};

// Real prompts, real queries, both regimes: nothing shared with the formulas.
TEST(GaussianAverage, AgreesWithSimulation) {
  for (Index d = 1; d <= 8; ++d) {
    for (double lambda : {0.2, 0.8}) {
      const Layer s = setup(d, lambda, static_cast<std::uint64_t>(100 * d));
      const GaussianAverage D(kAll, s.mu, s.attention, s.nu);
      const Gaussian mu(s.mu.mean, s.mu.cov), nu(s.nu.mean, s.nu.cov);
      const std::int64_t L = 12;
      std::vector<Moments> got(5);
      const Matrix &V = s.attention.V(), &K = s.attention.K(), &Q = s.attention.Q();
      for (std::uint64_t i = 0; i < 2500; ++i) {
        const Vector z = nu.sample(Stream(1, 2 * i), 1).tokens().row(0).transpose();
        const Vector a = s.attention.tilt(z);
        const Empirical prompt = mu.sample(Stream(1, 2 * i + 1), L);
        const Vector dm = prompt.tilted_mean(a) - mu.tilted_mean(a);
        const Matrix dC = prompt.tilted_cov(a) - mu.tilted_cov(a);
        const double c2 = 0.7 * 0.7;
        got[0].add((V * dm).squaredNorm());
        got[1].add(2 * dm.squaredNorm());
        got[2].add(z.squaredNorm() * (V * dC).squaredNorm());
        got[3].add(c2 * (Q * z).squaredNorm() * (V * dC).squaredNorm());
        got[4].add(c2 * z.squaredNorm() * (V * dC * K.transpose()).squaredNorm());
      }
      const auto exact = D.at(L);
      for (std::size_t k = 0; k < 5; ++k) {
        EXPECT_TRUE(agrees(got[k].estimate(Engine::direct), exact[k].value)) << d << lambda << k;
      }
    }
  }
}

TEST(GaussianAverage, ClosedConstantIsTheLimit) {
  for (Index d : {1, 4, 8}) {
    const Layer s = setup(d, 0.2, static_cast<std::uint64_t>(100 * d));
    const GaussianAverage D(kAll, s.mu, s.attention, s.nu);
    const std::int64_t L = 1000000000000;
    const auto at = D.at(L);
    for (std::size_t k = 0; k < 5; ++k) {
      EXPECT_TRUE(close(1e12 * at[k].value, D.constant(k), 2e-5)) << d << " " << k;
    }
  }
  const Layer slow = setup(3, 0.6, 7);
  EXPECT_TRUE(
      std::isinf(GaussianAverage({Metric::output}, slow.mu, slow.attention, slow.nu).constant(0)));
}

// The averaged bracket against a Monte Carlo mean of the constants per query (lambda = 0.1: finite
// variance).
TEST(GaussianAverage, AveragedConstantAgainstPerQueryConstants) {
  const Layer s = setup(3, 0.1, 40);
  const GaussianAverage D(kAll, s.mu, s.attention, s.nu);
  const AnyMeasure mu = Gaussian(s.mu.mean, s.mu.cov);
  const Matrix z = Gaussian(s.nu.mean, s.nu.cov).sample(Stream(2), 4000).tokens();
  for (std::size_t k = 0; k < 5; ++k) {
    Moments m;
    for (Index i = 0; i < z.rows(); ++i) {
      m.add(asymptotic_constant(kAll[k], mu, s.attention, z.row(i).transpose()));
    }
    EXPECT_TRUE(agrees(m.estimate(Engine::exact), D.constant(k))) << k;
  }
}

TEST(GaussianAverage, PredictedExponent) {
  EXPECT_EQ(predicted_exponent(0.3), 1);
  EXPECT_TRUE(close(predicted_exponent(0.5), 1.0, 1e-15));
  EXPECT_TRUE(close(predicted_exponent(0.81), 0.718, 1e-3));
}

TEST(GaussianAverage, FrozenFractionAndRefusal) {
  const GaussianAverage D = one_dimension(0.9, {Metric::output});
  EXPECT_TRUE(close(D.frozen_fraction(100),
                    std::erfc(std::sqrt(std::log(100.0)) / 0.9 / std::sqrt(2.0)), 1e-9));
  EXPECT_THROW(static_cast<void>(one_dimension(600, {Metric::output}).at(10)), CapabilityError);
}

// The largest tau that can matter is read from weights alone; where it says that the exact engine
// reaches, the average does not refuse.
TEST(GaussianAverage, LargestTauForetellsRefusals) {
  const Matrix one = Matrix::Ones(1, 1);
  const GaussianLaw law{Vector::Zero(1), one};
  int served = 0, refused = 0;
  for (const double scale : {1.0, 30.0, 45.0, 55.0, 65.0, 75.0, 90.0, 300.0}) {
    const GaussianAverage D({Metric::output}, law, Attention::from_uv(scale * one, one), law);
    for (const std::int64_t L : {std::int64_t{10}, std::int64_t{1000000000000}}) {
      if (D.largest_tau(L) <= kMaxTau) {
        ++served;
        EXPECT_NO_THROW((void)D.at(L)) << scale << " " << L;
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GE(served, 4);
  EXPECT_GE(refused, 4);
}

}  // namespace
}  // namespace esscher
