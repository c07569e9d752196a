// The sampled engine is the direct one in law: moments, two-sample comparisons, edge cases.
#include "esscher/prompt/sampled_prompt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/measure/gaussian.h"
#include "esscher/prompt/errors.h"
#include "esscher/universal/universal.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::close;
using testing::random_matrix;

GaussianLaw law_of(std::uint64_t seed, Index d, Index rank, double scale) {
  const Matrix F = scale * random_matrix(Stream(seed), d, rank);
  return {random_matrix(Stream(seed + 1), d, 1).col(0), F * F.transpose()};
}

// The same quantities from real tokens, the plain way.
SampledDraw direct_draw(const GaussianMixtureLaw& law, const Vector& a, const Matrix& R,
                        std::int64_t L, const Stream& stream) {
  const Index d = a.size();
  Matrix z(L, d);
  std::vector<Matrix> roots;
  for (const auto& c : law.components) roots.push_back(psd_sqrt("test", "cov", c.cov));
  const Stream labels = stream.split(0);
  const Stream normals = stream.split(1);
  for (Index l = 0; l < L; ++l) {
    double u = labels.uniform(static_cast<std::uint64_t>(l));
    std::size_t k = 0;
    while (k + 1 < law.components.size() && u > law.weights(static_cast<Index>(k))) {
      u -= law.weights(static_cast<Index>(k++));
    }
    Vector g(d);
    normals.fill_normal(static_cast<std::uint64_t>(l * d),
                        std::span<double>(g.data(), static_cast<std::size_t>(d)));
    z.row(l) = (law.components[k].mean + roots[k] * g).transpose();
  }
  Vector omega = z * a;
  omega = (omega.array() - omega.maxCoeff()).exp();
  omega /= omega.sum();
  SampledDraw draw;
  draw.zbar = z.transpose() * omega;
  const Matrix centred = z.rowwise() - draw.zbar.transpose();
  draw.CR = centred.transpose() * omega.asDiagonal() * centred * R;
  draw.weights2 = omega.squaredNorm();
  return draw;
}

struct Case {
  std::string name;
  GaussianMixtureLaw law;
  Vector a;
  Matrix R;
  std::int64_t L;
};

GaussianMixtureLaw one(const GaussianLaw& law) { return {Vector::Ones(1), {law}}; }

std::vector<Case> cases() {
  std::vector<Case> all;
  const Vector a4 = 0.5 * random_matrix(Stream(31), 4, 1).col(0);
  all.push_back({"pair", one(law_of(1, 4, 4, 0.7)), a4, random_matrix(Stream(32), 4, 1), 12});
  all.push_back({"one token", one(law_of(1, 4, 4, 0.7)), a4, random_matrix(Stream(32), 4, 1), 1});
  all.push_back(
      {"long", one(law_of(2, 3, 3, 0.5)), a4.head(3), random_matrix(Stream(33), 3, 1), 150});
  all.push_back(
      {"singular law", one(law_of(3, 4, 2, 0.8)), a4, random_matrix(Stream(34), 4, 1), 7});
  all.push_back({"parallel", one(law_of(4, 4, 4, 0.7)), a4, -2 * a4, 9});
  all.push_back(
      {"no tilt", one(law_of(5, 4, 4, 0.7)), Vector::Zero(4), random_matrix(Stream(35), 4, 1), 6});
  all.push_back({"three functionals", one(law_of(6, 5, 5, 0.5)),
                 0.6 * random_matrix(Stream(36), 5, 1).col(0), random_matrix(Stream(37), 5, 3),
                 11});
  all.push_back({"dependent functionals", one(law_of(6, 5, 5, 0.5)),
                 0.6 * random_matrix(Stream(36), 5, 1).col(0),
                 random_matrix(Stream(37), 5, 2) * random_matrix(Stream(38), 2, 4), 11});
  all.push_back({"outputs only", one(law_of(7, 4, 4, 0.7)), a4, Matrix(4, 0), 10});
  all.push_back({"one dimension", one(law_of(8, 1, 1, 0.9)), a4.head(1), Matrix::Ones(1, 1), 5});
  GaussianLaw point = law_of(9, 4, 1, 0.0);
  all.push_back({"mixture",
                 {(Vector(3) << 0.5, 0.3, 0.2).finished(),
                  {law_of(10, 4, 4, 0.5), law_of(11, 4, 2, 0.9), point}},
                 a4,
                 random_matrix(Stream(39), 4, 2),
                 8});
  return all;
}

// Scalar functionals of a draw: entries, products of two, products of three.
Vector functionals(const SampledDraw& draw) {
  std::vector<double> base;
  for (Index i = 0; i < draw.zbar.size(); ++i) base.push_back(draw.zbar(i));
  for (Index i = 0; i < draw.CR.size(); ++i) base.push_back(draw.CR.data()[i]);
  base.push_back(draw.weights2);
  Vector out(static_cast<Index>(base.size() * (base.size() + 3)));
  Index k = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    out(k++) = base[i];
    out(k++) = std::tanh(base[i] * base[(i + 1) % base.size()] * base[(i + 2) % base.size()]);
    out(k++) = std::cos(2 * base[i]);
    for (const double other : base) out(k++) = base[i] * other;
  }
  return out;
}

struct Moments {
  Vector mean, std_error;
};

Moments moments(std::int64_t n, const std::function<SampledDraw(const Stream&)>& draw,
                std::uint64_t seed) {
  Vector sum;
  Vector square;
  for (std::int64_t i = 0; i < n; ++i) {
    const Vector f = functionals(draw(Stream(seed).split(static_cast<std::uint64_t>(i))));
    if (i == 0) sum = square = Vector::Zero(f.size());
    sum += f;
    square += f.cwiseAbs2();
  }
  const auto count = static_cast<double>(n);
  const Vector mean = sum / count;
  return {mean, ((square / count - mean.cwiseAbs2()).cwiseMax(0.0) / count).cwiseSqrt()};
}

TEST(Sampled, EqualsDirectSamplingInLaw) {
  constexpr std::int64_t n = 2500;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const SampledPrompt prompt(c.law, c.a, c.R);
    // Asked for as the last of three prefixes: the joint path is what is tested.
    std::vector<std::int64_t> lengths;
    for (const std::int64_t L : {c.L / 3, c.L / 2, c.L}) {
      if (L > 0 && (lengths.empty() || L > lengths.back())) lengths.push_back(L);
    }
    const Moments sampled = moments(
        n, [&](const Stream& s) { return prompt.draw(lengths, s).back(); }, 41);
    const Moments direct = moments(
        n, [&](const Stream& s) { return direct_draw(c.law, c.a, c.R, c.L, s); }, 42);
    for (Index k = 0; k < sampled.mean.size(); ++k) {
      const Estimate x{sampled.mean(k), sampled.std_error(k) + 1e-12, n, Engine::sampled};
      const Estimate y{direct.mean(k), direct.std_error(k) + 1e-12, n, Engine::direct};
      EXPECT_TRUE(agree(x, y)) << k;
    }
  }
}

// Products of the outputs at two lengths: prefixes of one prompt, not independent prompts.
TEST(Sampled, PrefixesAreJointlyExact) {
  const GaussianMixtureLaw law = one(law_of(1, 4, 4, 0.7));
  const Vector a = 0.5 * random_matrix(Stream(31), 4, 1).col(0);
  const Matrix R = random_matrix(Stream(32), 4, 1);
  const SampledPrompt prompt(law, a, R);
  const std::int64_t lengths[] = {4, 9};
  const auto both = [&](const SampledDraw& x, const SampledDraw& y) {
    return SampledDraw{x.zbar.cwiseProduct(y.zbar), x.CR.cwiseProduct(y.CR),
                       x.weights2 * y.weights2};
  };
  constexpr std::int64_t n = 3000;
  const Moments sampled = moments(
      n,
      [&](const Stream& s) {
        const auto draws = prompt.draw(lengths, s);
        return both(draws[0], draws[1]);
      },
      43);
  const Moments direct = moments(
      n,
      [&](const Stream& s) {
        return both(direct_draw(law, a, R, 4, s), direct_draw(law, a, R, 9, s));
      },
      44);
  for (Index k = 0; k < sampled.mean.size(); ++k) {
    const Estimate x{sampled.mean(k), sampled.std_error(k) + 1e-12, n, Engine::sampled};
    EXPECT_TRUE(agree(x, {direct.mean(k), direct.std_error(k) + 1e-12, n, Engine::direct})) << k;
  }
}

TEST(Sampled, NormalsPerToken) {
  const GaussianLaw law = law_of(6, 5, 5, 0.5);
  const Vector a = random_matrix(Stream(36), 5, 1).col(0);
  EXPECT_EQ(SampledPrompt(law, a, Matrix(5, 0)).normals_per_token(), 1);
  EXPECT_EQ(SampledPrompt(law, a, random_matrix(Stream(37), 5, 1)).normals_per_token(), 2);
  EXPECT_EQ(SampledPrompt(law, a, random_matrix(Stream(37), 5, 3)).normals_per_token(), 4);
  EXPECT_EQ(SampledPrompt(law, a, random_matrix(Stream(37), 5, 9)).normals_per_token(), 5);
  EXPECT_EQ(
      SampledPrompt(law_of(6, 5, 3, 1), a, random_matrix(Stream(37), 5, 9)).normals_per_token(), 3);
}

// Output error through the universal functions, at lengths no direct engine would try.
TEST(Sampled, OutputErrorAgreesWithUniversalFunctions) {
  const Index d = 3;
  GaussianLaw law = law_of(12, d, d, 0.6);
  const Matrix U = 0.5 * random_matrix(Stream(51), d, d);
  const Matrix V = random_matrix(Stream(52), 2, d);
  const Vector z = random_matrix(Stream(53), d, 1).col(0);
  const Attention attention = Attention::from_uv(U, V);
  const Vector a = U * z;
  const double tau2 = a.dot(law.cov * a);
  const std::vector<std::int64_t> lengths = {1, 10, 1000, 30000};
  const auto errors =
      query_errors({Metric::output}, Gaussian(law.mean, law.cov), attention, z, lengths,
                   {.engine = Engine::sampled, .replicates = 600, .stream = Stream(54)})[0];
  for (std::size_t j = 0; j < 4; ++j) {
    const Universal u = universal(lengths[j], std::sqrt(tau2));
    const Vector Ga = law.cov * a;
    const Matrix rest = law.cov - Ga * Ga.transpose() / tau2;
    const double exact =
        (V * Ga).squaredNorm() / (tau2 * tau2) * u.M2c + (V * rest * V.transpose()).trace() * u.H;
    EXPECT_TRUE(agrees({errors[j].value, errors[j].std_error, 600, Engine::sampled}, exact))
        << lengths[j];
  }
}

// L E|..|^2 tends to the constants of docs/maths/concentration.md#constants-of-the-gradients.
TEST(Sampled, GradientErrorsReachTheirAsymptoticConstants) {
  const Index d = 3;
  const GaussianLaw law = law_of(13, d, d, 0.5);
  const Matrix& G = law.cov;
  const Matrix K = 0.5 * random_matrix(Stream(61), 2, d);
  const Matrix Q = 0.7 * random_matrix(Stream(62), 2, d);
  const Matrix V = random_matrix(Stream(63), 2, d);
  const Vector z = random_matrix(Stream(64), d, 1).col(0);
  const Attention attention = Attention::from_kqv(K, Q, V, 0.8);
  const Vector a = attention.tilt(z);
  const Vector c = G * a;
  const double tau2 = a.dot(c);
  const Matrix S2 = G + c * c.transpose();
  const Matrix E4 = (G.trace() + c.squaredNorm()) * S2 + 2 * G * G + 2 * G * c * c.transpose() +
                    2 * c * c.transpose() * G;
  const double grad_u =
      std::exp(tau2) * (V * (E4 - S2 * G - G * S2 + G * G) * V.transpose()).trace();
  const double grad_v = 2 * std::exp(tau2) * (G.trace() + c.squaredNorm());
  const std::int64_t L = 20000;
  const auto estimate = [&](Metric m) {
    Estimate e =
        mean_square_error(m, Gaussian(law.mean, law.cov), attention, z, L,
                          {.engine = Engine::sampled, .replicates = 1500, .stream = Stream(65)});
    e.value *= static_cast<double>(L);
    e.std_error = e.std_error * static_cast<double>(L) + 3e-3 * e.value;  // O(1/L) beyond the limit
    return e;
  };
  EXPECT_TRUE(agrees(estimate(Metric::grad_v), grad_v));
  EXPECT_TRUE(agrees(estimate(Metric::grad_u), z.squaredNorm() * grad_u));
  EXPECT_TRUE(agrees(estimate(Metric::grad_k), 0.64 * (Q * z).squaredNorm() * grad_u));
}

TEST(Sampled, SameBitsForAnyThreadCount) {
  const GaussianLaw law = law_of(14, 4, 4, 0.5);
  const Attention attention =
      Attention::from_uv(0.4 * random_matrix(Stream(71), 4, 4), random_matrix(Stream(72), 3, 4));
  const Vector z = random_matrix(Stream(73), 4, 1).col(0);
  std::vector<double> values;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    values.push_back(
        mean_square_error(Metric::grad_u, Gaussian(law.mean, law.cov), attention, z, 500,
                          {.engine = Engine::sampled, .replicates = 64, .stream = Stream(74)})
            .value);
  }
  set_thread_count(0);
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

// Scores far beyond what exp can hold: one token takes all the weight.
TEST(Sampled, HugeTiltsAreFrozenNotBroken) {
  const GaussianLaw law = law_of(15, 3, 3, 1);
  const Vector a = 1e4 * random_matrix(Stream(81), 3, 1).col(0);
  const std::int64_t lengths[] = {1, 50, 5000};
  for (const Index n : {0, 1, 3}) {
    for (const SampledDraw& draw :
         SampledPrompt(law, a, random_matrix(Stream(82), 3, n)).draw(lengths, Stream(83))) {
      EXPECT_TRUE(draw.zbar.allFinite());
      EXPECT_TRUE(draw.CR.allFinite());
      EXPECT_GT(draw.weights2, 0.3);
      EXPECT_LE(draw.weights2, 1 + 1e-12);
    }
  }
}

TEST(Sampled, RefusesBadInput) {
  const GaussianLaw law = law_of(1, 3, 3, 1);
  EXPECT_THROW(SampledPrompt(law, Vector::Zero(2), Matrix(2, 0)), DimensionError);
  EXPECT_THROW(SampledPrompt(law, Vector::Zero(3), Matrix(2, 1)), DimensionError);
  const SampledPrompt prompt(law, Vector::Ones(3), Matrix(3, 0));
  const std::int64_t falling[] = {5, 5};
  const std::int64_t zero[] = {0};
  EXPECT_THROW((void)prompt.draw(falling, Stream(1)), ArgumentError);
  EXPECT_THROW((void)prompt.draw(zero, Stream(1)), ArgumentError);
  EXPECT_TRUE(prompt.draw({}, Stream(1)).empty());
}

}  // namespace
}  // namespace esscher
