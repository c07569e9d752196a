// Prompts of Student tokens: finite ones are exact, and there is no limit.
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <string>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/student.h"
#include "esscher/prompt/averages.h"
#include "esscher/prompt/engine.h"
#include "esscher/prompt/exact_prompt.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::message_of;

Attention identity(Index d) {
  return Attention::from_uv(Matrix::Identity(d, d), Matrix::Identity(d, d));
}

// nu = 5, scores of variance 1 = nu/(nu-2) G; known from simulation and another quadrature.
TEST(StudentPrompt, CheckValuesOfTheTheory) {
  ExactPrompt exact(Prompt::plain(Student(5, 0.6 * Matrix::Identity(1, 1))), identity(1),
                    Vector::Ones(1));
  const std::vector<std::pair<std::int64_t, double>> known = {
      {10, 0.83}, {100, 1.39}, {1000, 2.30}, {10000, 4.65}};
  for (const auto& [L, value] : known) {
    EXPECT_NEAR(exact.expected_output(Length(L))[0], value, 0.006) << L;
  }
}

// Two tokens by the trapezoidal rule in both, t = sinh v.
TEST(StudentPrompt, TwoTokensByADoubleIntegral) {
  constexpr double h = 1.0 / 64, nu = 5;
  constexpr int n = 900;
  const double tau = 1.7;
  const double c = std::exp(std::lgamma(3.0) - std::lgamma(2.5)) / std::sqrt(nu * M_PI);
  Vector s(2 * n + 1), p(2 * n + 1);
  for (int i = -n; i <= n; ++i) {
    const double t = std::sinh(h * i);
    s[i + n] = tau * t;
    p[i + n] = h * std::cosh(h * i) * c * std::pow(1 + t * t / nu, -3.0);
  }
  double H = 0, S = 0, S2 = 0, F = 0;
  for (Index i = 0; i < s.size(); ++i) {
    for (Index j = 0; j < s.size(); ++j) {
      const double w = 1 / (1 + std::exp(s[j] - s[i])), mass = p[i] * p[j];
      const double sum = w * s[i] + (1 - w) * s[j];
      H += mass * (w * w + (1 - w) * (1 - w));
      S += mass * sum;
      S2 += mass * sum * sum;
      F += mass * (std::max(s[i], s[j]) + std::log1p(std::exp(-std::abs(s[i] - s[j]))));
    }
  }
  ExactPrompt exact(Prompt::plain(Student(nu, tau * tau * Matrix::Identity(1, 1))), identity(1),
                    Vector::Ones(1));
  const ScoreFunctions got = exact.score_functions(Length(2));
  EXPECT_TRUE(close(got.H, H, 1e-9));
  EXPECT_TRUE(close(got.M1, S, 1e-9));
  EXPECT_TRUE(close(got.free_energy, F, 1e-9));
  EXPECT_TRUE(close(exact.variance(Length(2)), S2 - S * S, 1e-8));
  EXPECT_TRUE(std::isinf(got.M2c));
}

// One token has the moments of the law, however far its scores reach.
TEST(StudentPrompt, OneTokenHasTheMomentsOfTheLaw) {
  for (const double nu : {2.3, 3.0, 12.0}) {
    const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
    ExactPrompt exact(Prompt::plain(Student(nu, Vector{{1.0, -2.0}}, G)), identity(2),
                      Vector{{0.5, 0.4}});
    EXPECT_TRUE(close(exact.expected_output(Length(1)), Vector{{1.0, -2.0}}, 1e-9));
    EXPECT_TRUE(close(exact.variance(Length(1)), 1.5 * nu / (nu - 2), 1e-9)) << nu;
  }
}

TEST(StudentPrompt, ExactAgreesWithDirectBesideOtherParts) {
  const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
  Prompt prompt = Prompt::plain(Student(6, Vector{{0.2, 0.0}}, G));
  prompt.groups[0].share = 0.5;
  prompt.groups.push_back({.mu = Mixture(Vector{{0.5, 0.5}}, {AnyMeasure(Student(8, 0.5 * G)),
                                                              AnyMeasure(Gaussian(G))}),
                           .share = 0.5,
                           .bias = 0.4});
  prompt.given = Matrix{{1.0, 1.0}};
  prompt.sink_logits = {0.5};
  const Attention attention =
      Attention::from_uv(Matrix{{0.8, 0.1}, {0.0, 0.6}}, Matrix{{1.0, 0.5}, {0.0, 2.0}});
  const Vector z{{1.0, -0.7}};
  const PromptAverages exact = prompt_averages(prompt, attention, z, 21);
  ASSERT_EQ(exact.engine, Engine::exact);
  const PromptAverages drawn =
      prompt_averages(prompt, attention, z, 21, {.engine = Engine::direct, .replicates = 20000});
  for (Index i = 0; i < 2; ++i) {
    EXPECT_TRUE(
        agrees({drawn.output[i], drawn.output_error[i], 20000, Engine::direct}, exact.output[i]));
  }
  for (Index k = 0; k < exact.weights.size(); ++k) {
    const double w = exact.weights[k];
    EXPECT_TRUE(
        agrees({drawn.weights[k], std::sqrt(w * (1 - w) / 20000), 20000, Engine::direct}, w));
  }
  EXPECT_NEAR(exact.weights.sum(), 1, 1e-9);
  EXPECT_NEAR(drawn.weights2, exact.weights2, 0.03 * exact.weights2);
}

// Along a heavier tail the mean of S grows like its largest score: L^{1/nu}.
TEST(StudentPrompt, GrowsLikeItsLargestScore) {
  const double nu = 4;
  ExactPrompt exact(Prompt::plain(Student(nu, Matrix::Identity(1, 1))), identity(1),
                    Vector::Ones(1));
  const double rise =
      exact.expected_output(Length(1000000))[0] / exact.expected_output(Length(100000))[0];
  EXPECT_NEAR(std::log10(rise), 1 / nu, 0.05);
}

// E sum omega s and E (sum omega s)^2 by the trapezoidal rule in log x and, at each x, in s - x. It
// knows nothing of nodes; x <= 0 has no weight in prompts this long.
Vector long_prompt(double nu, double tau, double n) {
  constexpr double h = 1.0 / 4, hr = 1.0 / 32;
  const double c = std::exp(std::lgamma((nu + 1) / 2) - std::lgamma(nu / 2)) / std::sqrt(nu * M_PI);
  Vector sums = Vector::Zero(2);
  for (int i = 0; i < 60 * 32; ++i) {
    const double x = std::exp(hr * i);
    double psi = 0, value = 0, square = 0;
    for (int k = -40 * 4; k <= 6 * 4; ++k) {
      const double v = h * k, s = x + v, t = s / tau, once = h * std::exp(v - std::exp(v));
      const double p = c / tau * std::exp(-0.5 * (nu + 1) * std::log1p(t * t / nu));
      const double half = 0.5 * boost::math::ibeta(nu / 2, 0.5, nu / (nu + t * t));
      psi += once * (t > 0 ? half : 1 - half);  // by parts
      value += once * p * s;
      square += once * std::exp(v) * p * s * s;
    }
    const double phi = 1 - psi, P = hr * x * std::exp(n * std::log1p(-psi));
    sums[0] += P * n * value / phi;
    sums[1] += P * n * (square / phi + (n - 1) * value * value / (phi * phi));
  }
  return sums;
}

// Long prompts and heavy tails: the scores that decide lie far out, and two of them may be close.
TEST(StudentPrompt, LongPromptsOfHeavyTails) {
  for (const double nu : {2.6, 3.0, 8.0}) {
    for (const std::int64_t n : {std::int64_t{100000}, std::int64_t{1000000000000}}) {
      const double tau = 1.3;
      ExactPrompt exact(Prompt::plain(Student(nu, tau * tau * Matrix::Identity(1, 1))), identity(1),
                        Vector::Ones(1));
      const Vector want = long_prompt(nu, tau, static_cast<double>(n));
      EXPECT_TRUE(close(exact.expected_output(Length(n))[0], want[0], 1e-7)) << nu << " " << n;
      EXPECT_TRUE(close(exact.variance(Length(n)), want[1] - want[0] * want[0], 1e-6))
          << nu << " " << n;
    }
  }
}

// Scores of any deviation, and a sink far above the nodes of the law, whose weight is the chance that no
// token scores more.
TEST(StudentPrompt, WideScoresAndFarSinks) {
  for (const double tau : {1e-3, 50.0, 4000.0}) {
    ExactPrompt exact(Prompt::plain(Student(4, tau * tau * Matrix::Identity(1, 1))), identity(1),
                      Vector::Ones(1));
    const ScoreFunctions one = exact.score_functions(Length(1));
    EXPECT_LT(one.error, 1e-11) << tau;
    EXPECT_NEAR(one.M1 / tau, 0, 1e-10) << tau;
    EXPECT_TRUE(close(exact.variance(Length(1)), 2 * tau * tau, 1e-10)) << tau;
    const ScoreFunctions many = exact.score_functions(Length(1000));
    EXPECT_LT(many.error, 1e-10) << tau;
  }
  const double logit = 2000;
  Prompt sink = Prompt::plain(Student(3, Matrix::Identity(1, 1)));
  sink.sink_logits = {logit};
  ExactPrompt exact(sink, identity(1), Vector::Ones(1));
  const std::int64_t n = 1000000000;
  const double more =
      2 * std::sqrt(3.0) / M_PI / std::pow(logit, 3);  // P(t > logit), leading order
  const Vector weights = exact.weights(Length(n + 1));
  EXPECT_NEAR(weights.sum(), 1, 1e-10);
  EXPECT_TRUE(close(weights[1], std::exp(-static_cast<double>(n) * more), 2e-4));
}

TEST(StudentPrompt, RefusalsSayWhy) {
  const Attention T = identity(1);
  const Vector z = Vector::Ones(1);
  const Prompt plain = Prompt::plain(Student(3, Matrix::Identity(1, 1)));
  ExactPrompt exact(plain, T, z);
  EXPECT_NE(message_of<DomainError>([&] {
              return exact.expected_output(Length::infinity());
            }).find("such prompts have no limit"),
            std::string::npos);
  EXPECT_NE(message_of<DomainError>([&] {
              return exact.error_parts(Metric::output, Length(9));
            }).find("such prompts have no limit"),
            std::string::npos);
  Prompt alibi = plain;
  alibi.bias = {.kind = BiasKind::alibi, .slope = 0.1};
  const EngineChoice choice = choose_engine(Engine::automatic, alibi, T, z.transpose(), false);
  EXPECT_EQ(choice.engine, Engine::direct);
  EXPECT_NE(choice.reason.find("alibi and student"), std::string::npos);
}

}  // namespace
}  // namespace esscher
