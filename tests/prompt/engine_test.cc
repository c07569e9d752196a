#include "esscher/prompt/engine.h"

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/mixture.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_mixture.h"
#include "tests/testing.h"

namespace esscher {
namespace {

const std::vector<Engine> kSamplers = {Engine::sampled, Engine::direct};

using testing::agrees;
using testing::close;
using testing::random_matrix;

// Shifted Gaussian of the given rank, and an operator from K and Q.
Gaussian random_gaussian(const Stream& s, Index d, Index rank) {
  const Matrix F = random_matrix(s.split(0), d, rank, 1 / std::sqrt(static_cast<double>(rank)));
  return Gaussian(Vector(random_matrix(s.split(1), d, 1, 0.7)), Matrix(F * F.transpose()));
}

Attention random_attention(const Stream& s, Index d) {
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  return Attention::from_kqv(random_matrix(s.split(2), d, d, scale),
                             random_matrix(s.split(3), d, d, scale),
                             random_matrix(s.split(4), 2, d, scale), 0.7);
}

// A query whose scores have deviation tau under the first component.
Vector query(const Stream& s, const AnyMeasure& mu, const Attention& attention, double tau) {
  Vector z = random_matrix(s.split(5), attention.dim(), 1, 1);
  const auto law = gaussian_mixture_law(mu);
  const double now = score_deviation(law->components[0], attention, z);
  return z * (tau / now);
}

constexpr Metric kMetrics[] = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                               Metric::grad_q};

TEST(Engine, ThreeWayAgreementOnGaussians) {
  struct {
    Index d, rank;
    std::int64_t L;
    double tau;
    std::int64_t n;
  } const cases[] = {{1, 1, 1, 0.5, 2000},   {2, 2, 3, 6.0, 2000},  {3, 2, 10, 0.0, 2000},
                     {5, 5, 100, 1.0, 1000}, {8, 3, 30, 3.0, 1000}, {64, 64, 50, 1.5, 150},
                     {4, 4, 100000, 1.0, 20}};
  std::uint64_t seed = 100;
  for (const auto& c : cases) {
    const Stream s(seed++);
    const AnyMeasure mu = random_gaussian(s, c.d, c.rank);
    const Attention attention = random_attention(s, c.d);
    const Vector z = query(s, mu, attention, c.tau);
    for (Metric metric : kMetrics) {
      const double exact =
          mean_square_error(metric, mu, attention, z, c.L, {.engine = Engine::exact}).value;
      for (Engine engine : kSamplers) {
        const Estimate got =
            mean_square_error(metric, mu, attention, z, c.L,
                              {.engine = engine,
                               .replicates = c.n,
                               .stream = Stream(seed).split(engine == Engine::direct)});
        EXPECT_EQ(got.engine, engine);
        EXPECT_EQ(got.n, c.n);
        if (c.tau == 0 && reads_covariance(metric)) {
          EXPECT_EQ(got.value, 0);  // z = 0: no gradient in U
          EXPECT_EQ(exact, 0);
          continue;
        }
        const bool certain = c.L == 1 && reads_covariance(metric);
        EXPECT_TRUE(certain ? close(got.value, exact, 1e-11) : agrees(got, exact))
            << name(engine) << " " << name(metric) << " d " << c.d << " L " << c.L << " tau "
            << c.tau;
      }
    }
  }
}

AnyMeasure random_mixture(const Stream& s, Index d) {
  Vector weights(3);
  weights << 0.5, 0.3, 0.2;
  std::vector<AnyMeasure> parts;
  for (std::uint64_t k = 0; k < 3; ++k) parts.emplace_back(random_gaussian(s.split(10 + k), d, d));
  return Mixture(weights, parts);
}

TEST(Engine, ThreeWayAgreementOnMixtures) {
  for (const auto& [L, d] :
       {std::pair<std::int64_t, Index>{1, 3}, {2, 1}, {3, 2}, {17, 4}, {300, 3}}) {
    const Stream s(static_cast<std::uint64_t>(40 + L));
    const AnyMeasure mu = random_mixture(s, d);
    const Attention attention = random_attention(s, d);
    const Vector z = query(s, mu, attention, 1.2);
    for (Metric metric : kMetrics) {
      const Estimate exact = mean_square_error(metric, mu, attention, z, L);
      EXPECT_EQ(exact.engine, Engine::exact);
      const bool certain = L == 1 && reads_covariance(metric);
      for (Engine engine : kSamplers) {
        const Estimate got =
            mean_square_error(metric, mu, attention, z, L,
                              {.engine = engine, .replicates = 3000, .stream = Stream(3)});
        EXPECT_TRUE(certain ? close(got.value, exact.value, 1e-9) : agrees(got, exact.value))
            << name(engine) << " " << name(metric) << " L " << L;
      }
    }
  }
}

// Two equal components are one Gaussian: the mixture integrals against the universal functions.
TEST(Engine, MixtureOfEqualsIsGaussian) {
  const Stream s(7);
  const Gaussian g = random_gaussian(s, 3, 2);
  const Attention attention = random_attention(s, 3);
  const AnyMeasure one = g, two = Mixture(Vector::Constant(2, 0.5), {g, g});
  const GaussianMixtureLaw law = *gaussian_mixture_law(two);
  ASSERT_EQ(law.components.size(), 2U);
  for (double L : {1.0, 2.0, 3.0, 50.0, 1e6, 1e12}) {
    for (double tau : {0.01, 1.0, 4.0, 9.0, 30.0}) {
      const Vector z = query(s, one, attention, tau);
      const auto length = static_cast<std::int64_t>(L);
      MixtureErrors errors(law, attention, z);
      for (Metric metric : kMetrics) {
        const ErrorParts want =
            error_parts(metric, law.components[0], attention, z, Length(length));
        const ErrorParts got = errors.error_parts(metric, Length(length));
        EXPECT_TRUE(close(got.total(), want.total(), 1e-10)) << name(metric) << L << " " << tau;
        EXPECT_TRUE(close(got.bias2, want.bias2, 1e-9)) << name(metric) << L << " " << tau;
      }
      EXPECT_TRUE(close(errors.expected_output(Length(length)),
                        expected_output(law.components[0], attention, z, Length(length)), 1e-11));
    }
  }
}

// Any measure with Lambda finite at 2a: L E|T_hat - T|^2 -> e^{Lambda(2a) - 2 Lambda(a)} [..].
TEST(Engine, MixturesReachTheAsymptoticConstant) {
  const Stream s(11);
  const AnyMeasure mu = random_mixture(s, 3);
  const Attention attention = random_attention(s, 3);
  const Vector z = query(s, mu, attention, 1.0);
  const Vector a = attention.tilt(z);
  const Matrix& V = attention.V();
  const double constant = std::exp(mu.log_mgf(2 * a) - 2 * mu.log_mgf(a)) *
                          ((V * mu.tilted_cov(2 * a) * V.transpose()).trace() +
                           (V * (mu.tilted_mean(2 * a) - mu.tilted_mean(a))).squaredNorm());
  const double L = 1e13;
  const Estimate got = mean_square_error(Metric::output, mu, attention, z,
                                         static_cast<std::int64_t>(L), {.engine = Engine::exact});
  EXPECT_TRUE(close(L * got.value, constant, 1e-8));
}

TEST(Engine, AutomaticChoosesAndRefusalsName) {
  const Stream s(5);
  const Attention attention = random_attention(s, 2);
  const AnyMeasure gaussian = random_gaussian(s, 2, 2), mixture = random_mixture(s, 2);
  const Vector z = query(s, gaussian, attention, 1.0);
  const AnyMeasure tokens = gaussian.sample(Stream(1), 20);
  const auto chosen = [&](const AnyMeasure& mu, const Vector& at) {
    return choose_engine(Engine::automatic, mu, largest_tau(mu, attention, at.transpose())).engine;
  };
  EXPECT_EQ(chosen(gaussian, z), Engine::exact);
  EXPECT_EQ(chosen(gaussian, 2000 * z), Engine::sampled);
  EXPECT_EQ(chosen(mixture, z), Engine::exact);
  EXPECT_EQ(chosen(mixture, 2000 * z), Engine::sampled);
  EXPECT_EQ(chosen(tokens, z), Engine::exact);
  EXPECT_EQ(choose_engine(Engine::automatic, tokens, 0, true).engine, Engine::direct);

  Vector at = z;
  const auto message = [&](Engine engine, Metric metric, const AnyMeasure& mu, std::int64_t L) {
    try {
      (void)mean_square_error(metric, mu, attention, at, L, {.engine = engine, .replicates = 2});
    } catch (const CapabilityError& e) {
      return std::string(e.what());
    }
    return std::string("served");
  };
  EXPECT_NE(message(Engine::exact, Metric::grad_u, tokens, 9).find("direct"), std::string::npos);
  EXPECT_NE(message(Engine::sampled, Metric::output, tokens, 9).find("direct"), std::string::npos);
  EXPECT_EQ(message(Engine::exact, Metric::grad_u, mixture, 9), "served");
  at = 2000 * z;
  EXPECT_NE(message(Engine::exact, Metric::grad_u, mixture, 9).find("sampled"), std::string::npos);
  at = z;
  EXPECT_NE(message(Engine::direct, Metric::output, gaussian, 1L << 40).find("sampled"),
            std::string::npos);
  EXPECT_EQ(message(Engine::automatic, Metric::output, tokens, 9), "served");
  EXPECT_THROW((void)mean_square_error(Metric::output, tokens, attention, z, 9, {.replicates = 1}),
               ArgumentError);
  EXPECT_EQ(mean_square_error(Metric::output, tokens, attention, z, Length::infinity()).value, 0);
}

// The choice is made from the measure and one number, before any work, and says why.
TEST(Engine, TheChoiceSaysWhy) {
  const AnyMeasure one = random_gaussian(Stream(5), 2, 2), many = random_mixture(Stream(5), 2);
  EXPECT_EQ(choose_engine(Engine::automatic, one, kMaxTau).engine, Engine::exact);
  EXPECT_EQ(choose_engine(Engine::automatic, many, kMaxTau).engine, Engine::sampled);
  EXPECT_EQ(choose_engine(Engine::automatic, many, kMaxMixtureTau).engine, Engine::exact);
  const EngineChoice sharp = choose_engine(Engine::automatic, one, 601);
  EXPECT_EQ(sharp.engine, Engine::sampled);
  EXPECT_NE(sharp.reason.find("beyond tau = 600"), std::string::npos) << sharp.reason;
  EXPECT_EQ(choose_engine(Engine::direct, one, 601).engine, Engine::direct);
  EXPECT_EQ(choose_engine(Engine::sampled, one, 0).engine, Engine::sampled);
  EXPECT_THROW(choose_engine(Engine::exact, one, 601), CapabilityError);
  EXPECT_THROW(choose_engine(Engine::exact, one, HUGE_VAL), CapabilityError);
}

// tau^2 = a'Ga, the largest over queries and components.
TEST(Engine, LargestTauIsOverQueriesAndComponents) {
  const Matrix I = Matrix::Identity(2, 2);
  const AnyMeasure mu = Mixture(Vector{{0.5, 0.5}}, {Gaussian(I), Gaussian(Matrix(9.0 * I))});
  const Attention attention = Attention::from_uv(0.5 * I, I);
  EXPECT_TRUE(close(largest_tau(mu, attention, Matrix{{1.0, 0.0}, {0.0, -4.0}}), 6.0, 1e-14));
  EXPECT_TRUE(std::isinf(largest_tau(mu, attention, Matrix{{1e200, 0.0}})));
  EXPECT_EQ(largest_tau(mu.sample(Stream(1), 5), attention, Matrix::Ones(1, 2)), 0);
}

}  // namespace
}  // namespace esscher
