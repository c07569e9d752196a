#include "esscher/prompt/exact_gaussian.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

struct Problem {
  GaussianLaw law;
  Attention attention;
  Vector z;
};

// rank < d makes G singular; z is scaled so that the scores have deviation tau.
Problem make_problem(std::uint64_t seed, Index d, Index rank, double tau) {
  const Stream s(seed);
  const Matrix F = random_matrix(s.split(0), d, rank, 1 / std::sqrt(static_cast<double>(rank)));
  GaussianLaw law{random_matrix(s.split(1), d, 1, 0.7), F * F.transpose()};
  const Index dk = std::max<Index>(1, d - 1);
  auto attention = Attention::from_kqv(random_matrix(s.split(2), dk, d, 0.6),
                                       random_matrix(s.split(3), dk, d, 0.6),
                                       random_matrix(s.split(4), 2, d, 1), 0.8);
  Vector z = random_matrix(s.split(5), d, 1, 1);
  z *= tau / score_deviation(law, attention, z);
  return {std::move(law), std::move(attention), std::move(z)};
}

// The definitions, on sampled tokens: squared distance of each quantity from its limit.
double squared_error(Metric metric, const Problem& p, const Empirical& prompt) {
  const Gaussian limit(p.law.mean, p.law.cov);
  const Attention& T = p.attention;
  const Vector a = T.tilt(p.z);
  const Matrix dC = prompt.tilted_cov(a) - p.law.cov;
  switch (metric) {
    case Metric::output: return (T(prompt, p.z) - T(limit, p.z)).squaredNorm();
    case Metric::grad_v:
      return (T.jacobian_V(prompt, p.z) - T.jacobian_V(limit, p.z)).squaredNorm();
    case Metric::grad_u:
      return (T.jacobian_U(prompt, p.z) - T.jacobian_U(limit, p.z)).squaredNorm();
    default: break;
  }
  // Column by column through the vector-Jacobian products.
  double total = 0;
  for (Index i = 0; i < T.output_dim(); ++i) {
    const Vector e = Vector::Unit(T.output_dim(), i);
    const auto got = T.vjp(prompt, p.z, e), want = T.vjp(limit, p.z, e);
    total +=
        metric == Metric::grad_k ? (got.K - want.K).squaredNorm() : (got.Q - want.Q).squaredNorm();
  }
  return total;
}

Estimate sampled_error(Metric metric, const Problem& p, Index L, int n) {
  double sum = 0, squares = 0;
  const Gaussian tokens(p.law.mean, p.law.cov);
  for (int i = 0; i < n; ++i) {
    const double x =
        squared_error(metric, p, tokens.sample(Stream(77).split(static_cast<std::uint64_t>(i)), L));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean) / n), n, Engine::direct};
}

constexpr Metric kMetrics[] = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                               Metric::grad_q};

TEST(Exact, AgreesWithSampledTokens) {
  struct {
    Index d, rank, L;
    double tau;
    int n;
  } const cases[] = {{1, 1, 1, 1.0, 2000}, {3, 3, 2, 1.5, 4000},  {3, 2, 7, 0.8, 4000},
                     {4, 1, 5, 1.2, 4000}, {2, 2, 40, 2.0, 4000}, {5, 5, 20, 4.0, 3000}};
  std::uint64_t seed = 1;
  for (const auto& c : cases) {
    const Problem p = make_problem(seed++, c.d, c.rank, c.tau);
    for (Metric metric : kMetrics) {
      const Estimate got = sampled_error(metric, p, c.L, c.n);
      const double want = mean_square_error(metric, p.law, p.attention, p.z, c.L);
      const bool certain = c.L == 1 && metric != Metric::output && metric != Metric::grad_v;
      EXPECT_TRUE(certain ? close(got.value, want, 1e-11) : testing::agrees(got, want))
          << name(metric) << " d " << c.d << " rank " << c.rank << " L " << c.L << " tau " << c.tau;
    }
  }
}

TEST(Exact, BiasIsThatOfSampledOutputs) {
  const Problem p = make_problem(9, 3, 3, 1.5);
  const Gaussian tokens(p.law.mean, p.law.cov);
  const Index L = 6;
  const int n = 20000;
  Vector sum = Vector::Zero(2), squares = sum;
  Matrix C = Matrix::Zero(3, 3);
  for (int i = 0; i < n; ++i) {
    const Empirical prompt = tokens.sample(Stream(5).split(static_cast<std::uint64_t>(i)), L);
    const Vector T = p.attention(prompt, p.z);
    sum += T;
    squares += T.cwiseProduct(T);
    C += prompt.tilted_cov(p.attention.tilt(p.z)) / n;
  }
  const Vector want = expected_output(p.law, p.attention, p.z, L);
  for (Index i = 0; i < 2; ++i) {
    const double mean = sum[i] / n;
    EXPECT_TRUE(testing::agrees(
        {mean, std::sqrt((squares[i] / n - mean * mean) / n), n, Engine::direct}, want[i]));
  }
  const Vector limit = p.attention(tokens, p.z);
  EXPECT_TRUE(close(error_parts(Metric::output, p.law, p.attention, p.z, L).bias2,
                    (want - limit).squaredNorm(), 1e-12));
  // The mean of Chat enters the bias of grad_U; sampling noise of C is about 1/sqrt(n).
  const double bias2 = p.z.squaredNorm() * (p.attention.V() * (C - p.law.cov)).squaredNorm();
  EXPECT_TRUE(close(error_parts(Metric::grad_u, p.law, p.attention, p.z, L).bias2, bias2, 0.05));
}

TEST(Exact, LongPromptsReachTheAsymptoticConstants) {
  const Problem p = make_problem(3, 4, 4, 1.1);
  const double L = 1e14, tau2 = 1.21;
  const Vector c = p.law.cov * p.attention.tilt(p.z);
  const Matrix &V = p.attention.V(), &G = p.law.cov;
  const auto at = [&](Metric m) {
    return L * mean_square_error(m, p.law, p.attention, p.z, static_cast<std::int64_t>(L));
  };
  EXPECT_TRUE(close(at(Metric::output),
                    std::exp(tau2) * ((V * G * V.transpose()).trace() + (V * c).squaredNorm()),
                    1e-9));
  EXPECT_TRUE(close(at(Metric::grad_v), 2 * std::exp(tau2) * (G.trace() + c.squaredNorm()), 1e-9));
  const Matrix cc = c * c.transpose(), S2 = G + cc;
  const Matrix E4 = (G.trace() + c.squaredNorm()) * S2 + 2 * G * G + 2 * G * cc + 2 * cc * G;
  const Matrix inner = E4 - S2 * G - G * S2 + G * G;
  EXPECT_TRUE(close(at(Metric::grad_u),
                    p.z.squaredNorm() * std::exp(tau2) * (V * inner * V.transpose()).trace(),
                    1e-9));
}

TEST(Exact, DegenerateScoresAndInfiniteLength) {
  Problem p = make_problem(4, 3, 3, 1.0);
  EXPECT_EQ(mean_square_error(Metric::grad_u, p.law, p.attention, p.z, Length::infinity()), 0);
  EXPECT_TRUE(std::isinf(effective_sample_size(p.law, p.attention, p.z, Length::infinity())));
  const Gaussian limit(p.law.mean, p.law.cov);
  EXPECT_TRUE(close(expected_output(p.law, p.attention, p.z, Length::infinity()),
                    p.attention(limit, p.z), 1e-14));
  // z -> 0 is continuous and at z = 0 the prompt is averaged evenly.
  const double tiny = mean_square_error(Metric::output, p.law, p.attention, Vector(1e-9 * p.z), 10);
  const double zero = mean_square_error(Metric::output, p.law, p.attention, Vector(0 * p.z), 10);
  EXPECT_TRUE(close(tiny, zero, 1e-9));
  const Matrix& V = p.attention.V();
  EXPECT_TRUE(close(zero, (V * p.law.cov * V.transpose()).trace() / 10, 1e-12));
  EXPECT_TRUE(close(effective_sample_size(p.law, p.attention, Vector(0 * p.z), 10), 10, 1e-12));
  p.law.cov.setZero();
  for (Metric m : kMetrics) EXPECT_EQ(mean_square_error(m, p.law, p.attention, p.z, 5), 0);
}

TEST(Exact, RefusesWhatItCannotServe) {
  const Problem p = make_problem(6, 2, 2, 1.0);
  EXPECT_THROW((void)mean_square_error(Metric::output, p.law, p.attention, Vector(601 * p.z), 10),
               CapabilityError);
  EXPECT_THROW((void)mean_square_error(Metric::output, p.law, p.attention, Vector::Zero(3), 10),
               DimensionError);
  const Attention uv = Attention::from_uv(Matrix::Identity(2, 2), Matrix::Identity(2, 2));
  EXPECT_THROW((void)mean_square_error(Metric::grad_k, p.law, uv, p.z, 10), CapabilityError);
}

}  // namespace
}  // namespace esscher
