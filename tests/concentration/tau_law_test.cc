#include "esscher/concentration/tau_law.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/non_central_chi_squared.hpp>
#include <cmath>
#include <complex>

#include "esscher/estimate/moments.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::random_matrix;
using testing::random_psd;

struct Case {
  Matrix A, S;
  Vector m;
};

Case make_case(Index d, bool centred, std::uint64_t id) {
  return {0.3 * random_psd(Stream(17, id), d), random_psd(Stream(17, id + 1), d),
          centred ? Vector::Zero(d) : Vector(0.7 * random_matrix(Stream(17, id + 2), d, 1))};
}

template <class F>
Estimate monte_carlo(const Case& c, F f, std::uint64_t n) {
  const Matrix R = psd_factor("test", "S", c.S);
  Moments moments;
  Vector x(R.cols());
  for (std::uint64_t i = 0; i < n; ++i) {
    Stream(3, i).fill_normal(0, {x.data(), static_cast<std::size_t>(x.size())});
    const Vector z = c.m + R * x;
    moments.add(f(z, std::sqrt(z.dot(c.A * z))));
  }
  return moments.estimate(Engine::direct);
}

TEST(Quadratic, CumulantFormulaAgainstSampling) {
  const std::vector<Matrix> forms = {random_psd(Stream(17, 1), 3), random_psd(Stream(17, 2), 3),
                                     random_psd(Stream(17, 3), 3)};
  const Vector sigma = Vector{{0.5, 1.5, 0.8}}, mu = Vector{{0.3, -0.6, 1.0}};
  const QuadraticMoments<double> q(forms, sigma, mu);
  for (const FormProduct& p : std::vector<FormProduct>{{0}, {0, 1}, {0, 0}, {0, 1, 2}, {1, 1, 2}}) {
    Moments m;
    for (std::uint64_t i = 0; i < 100000; ++i) {
      Vector x(3);
      Stream(5, i).fill_normal(0, {x.data(), 3});
      x = mu + sigma.cwiseSqrt().cwiseProduct(x);
      double value = 1;
      for (int k : p) value *= x.dot(forms[static_cast<std::size_t>(k)] * x);
      m.add(value);
    }
    EXPECT_TRUE(agrees(m.estimate(Engine::direct), q.expect(p))) << p.size();
  }
}

TEST(TauLaw, TailIsChiSquared) {
  for (Index d : {1, 2, 5, 50}) {
    const TauLaw law(0.4 * Matrix::Identity(d, d), Vector::Zero(d), Matrix::Identity(d, d));
    const boost::math::chi_squared chi(static_cast<double>(d));
    for (double x : {0.01, 0.5, 3.0, 30.0, 80.0}) {
      const double want = cdf(complement(chi, x / 0.4));
      EXPECT_TRUE(close(law.tail(x), want, 1e-10)) << d << " " << x;
    }
  }
}

TEST(TauLaw, TailIsNonCentral) {
  const Vector m = Vector{{0.5, -1.0}};
  const TauLaw law(0.4 * Matrix::Identity(2, 2), m, Matrix::Identity(2, 2));
  const boost::math::non_central_chi_squared chi(2, m.squaredNorm());
  for (double x : {0.05, 1.0, 9.0}) {
    EXPECT_TRUE(close(law.tail(x), cdf(complement(chi, x / 0.4)), 1e-9)) << x;
  }
}

TEST(TauLaw, RuleGivesPolynomialMomentsExactly) {
  for (Index d : {1, 2, 3, 8}) {
    for (bool centred : {true, false}) {
      const Case c = make_case(d, centred, static_cast<std::uint64_t>(10 * d));
      const TauLaw law(c.A, c.m, c.S);
      const std::vector<Matrix> forms = {random_psd(Stream(17, 91), d),
                                         random_psd(Stream(17, 92), d),
                                         random_psd(Stream(17, 93), d)};
      const std::vector<FormProduct> products = {{}, {0}, {1, 2}, {0, 1, 2}};
      const TauLaw::Rule rule = law.rule(forms, products);
      for (std::size_t j = 0; j < products.size(); ++j) {
        const double want = law.tilted_moment(forms, products[j], 0);
        EXPECT_TRUE(close(rule.weights.col(static_cast<Index>(j)).sum(), want, 1e-10)) << d << j;
        const double theta = 0.2 / law.lambda();
        double got = 0;
        for (Index k = 0; k < rule.tau.size(); ++k) {
          got +=
              rule.weights(k, static_cast<Index>(j)) * std::exp(theta * rule.tau[k] * rule.tau[k]);
        }
        EXPECT_TRUE(close(got, law.tilted_moment(forms, products[j], theta), 1e-10)) << d << j;
      }
    }
  }
}

TEST(TauLaw, RuleAgreesWithSampling) {
  const Case c = make_case(4, false, 60);
  const TauLaw law(c.A, c.m, c.S);
  const Matrix N = random_psd(Stream(17, 61), 4);
  const auto f = [](double tau) { return 1 / (1 + tau * tau * tau); };
  const TauLaw::Rule rule = law.rule({N}, {{0}});
  double got = 0;
  for (Index k = 0; k < rule.tau.size(); ++k) got += rule.weights(k, 0) * f(rule.tau[k]);
  EXPECT_TRUE(
      agrees(monte_carlo(
                 c, [&](const Vector& z, double tau) { return z.dot(N * z) * f(tau); }, 100000),
             got));
  EXPECT_TRUE(
      agrees(monte_carlo(
                 c, [&](const Vector&, double tau) { return tau > 1.5 ? 1.0 : 0.0; }, 100000),
             law.tail(2.25)));
}

// e^{tau^2}/L far in the tail: one dimension, where the integral is elementary.
TEST(TauLaw, HeavyTailKeepsRelativeAccuracy) {
  const double lambda = 0.81, L = 1e12;
  const TauLaw law(Matrix::Constant(1, 1, lambda), Vector::Zero(1), Matrix::Ones(1, 1));
  const TauLaw::Rule rule = law.rule({}, {{}});
  const auto f = [&](double tau) { return 1 / (1 + L * std::exp(-tau * tau)); };
  double got = 0, want = 0;
  for (Index k = 0; k < rule.tau.size(); ++k) got += rule.weights(k, 0) * f(rule.tau[k]);
  for (double x = -18; x < 18; x += 1e-3) {
    want += 1e-3 * std::exp(-x * x / 2) / std::sqrt(2 * M_PI) * f(std::sqrt(lambda) * x);
  }
  EXPECT_TRUE(close(got, want, 1e-9));
}

TEST(TauLaw, DegenerateCases) {
  const TauLaw frozen(Matrix::Zero(2, 2), Vector::Ones(2), Matrix::Identity(2, 2));
  EXPECT_EQ(frozen.lambda(), 0);
  EXPECT_EQ(frozen.tail(0.1), 0);
  const TauLaw::Rule rule = frozen.rule({Matrix::Identity(2, 2)}, {{}, {0}});
  EXPECT_TRUE(close(rule.weights(0, 1), 4.0, 1e-14));  // E|z|^2 = |m|^2 + d
  // A constant part c0 that no query noise moves: m orthogonal to the range of S.
  Matrix S = Matrix::Zero(2, 2);
  S(0, 0) = 1;
  const TauLaw shifted(Matrix::Identity(2, 2), Vector{{0.0, 2.0}}, S);
  EXPECT_EQ(shifted.tail(3.9), 1);
  EXPECT_TRUE(close(shifted.mean(), 5.0, 1e-12));
  const boost::math::chi_squared chi(1);
  EXPECT_TRUE(close(shifted.tail(6.0), cdf(complement(chi, 2.0)), 1e-10));
}

}  // namespace
}  // namespace esscher
