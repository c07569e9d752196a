#include "esscher/concentration/constant.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/sum.h"
#include "esscher/prompt/errors.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;
using testing::with_norm;

// L * E|X_hat - X|^2 at a long prompt against the constant, for every measure with a closed form.
TEST(Constant, IsTheLimitOfSimulatedErrors) {
  const Attention attention = Attention::from_uv(
      0.6 * with_norm(random_matrix(Stream(31, 1), 3, 3), 1), random_matrix(Stream(31, 2), 2, 3));
  const Vector z = Vector{{0.8, -0.5, 0.4}};
  const std::vector<AnyMeasure> measures = {
      Gaussian(Vector{{0.2, 0.0, -0.3}}, 0.5 * Matrix::Identity(3, 3)),
      Rademacher(3),
      Uniform(3),
      Sphere(3, 1.5),
      Mixture(Vector{{0.3, 0.7}},
              {Gaussian(0.3 * Matrix::Identity(3, 3)),
               Affine(Vector::Ones(3), 0.5 * Matrix::Identity(3, 3), Uniform(3))}),
      Empirical(random_matrix(Stream(31, 3), 7, 3))};
  const std::int64_t L = 3000;
  const std::vector<Metric> metrics = {Metric::output, Metric::grad_v, Metric::grad_u};
  for (const AnyMeasure& mu : measures) {
    const auto errors =
        query_errors(metrics, mu, attention, z, {L},
                     {.engine = Engine::direct, .replicates = 250, .stream = Stream(5)});
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      const double scale = static_cast<double>(L);
      // The next term of the expansion is of relative order 1/L: allowed for by 30/L.
      const double want = asymptotic_constant(metrics[k], mu, attention, z);
      const double got = scale * errors[k][0].value, se = scale * errors[k][0].std_error;
      EXPECT_LE(std::abs(got - want), testing::kSigmas * se + 30 / scale * want)
          << mu.name() << " " << k;
      EXPECT_LT(se, 0.15 * want) << mu.name();
    }
  }
}

// The same without noise, for every law with a score law.
TEST(Constant, IsTheLimitOfExactErrorsOfScoreLaws) {
  const Attention attention = Attention::from_uv(
      0.4 * with_norm(random_matrix(Stream(31, 1), 3, 3), 1), random_matrix(Stream(31, 2), 2, 3));
  const Vector z = Vector{{0.8, -0.5, 0.4}};
  const Matrix I = Matrix::Identity(3, 3);
  const Matrix G = testing::random_psd(Stream(31, 4), 2);
  const std::vector<AnyMeasure> measures = {
      Rademacher(3),
      Uniform(3),
      Laplace(3, 0.3),
      Sphere(3, 1.5),
      Ball(3, 1.5),
      Categorical(Vector{{0.2, 0.5, 0.3}}),
      Empirical(random_matrix(Stream(31, 3), 7, 3)),
      Affine(Vector::Ones(3), 0.5 * random_matrix(Stream(31, 5), 3, 5), Rademacher(5)),
      Sum({Sphere(3, 1), Gaussian(0.3 * I)}),
      Elliptical(0.5 * I, {Vector{{0.3, 1.5}}, Vector{{0.6, 0.4}}}),
      SingleIndex(G, Vector{{1.0, -0.6}}, Link(LinkName::tanh), 0.1),
      SingleIndex(G, Vector{{1.0, 0.4}}, Link(LinkName::sign)),
      Mixture(Vector{{0.3, 0.7}}, {Gaussian(0.3 * I), Uniform(3)})};
  const std::int64_t L = 1000000000;
  const std::vector<Metric> metrics = {Metric::output, Metric::grad_v};
  for (const AnyMeasure& mu : measures) {
    const auto errors = query_errors(metrics, mu, attention, z, {L}, {.engine = Engine::exact});
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      const double want = asymptotic_constant(metrics[k], mu, attention, z);
      EXPECT_TRUE(close(static_cast<double>(L) * errors[k][0].value, want, 1e-7)) << mu.name();
    }
  }
}

// The exact engine has no noise: the constant is reached up to terms of order 1/L.
TEST(Constant, IsTheLimitOfExactMixtureErrors) {
  const Attention attention =
      Attention::from_kqv(random_matrix(Stream(31, 21), 2, 3), random_matrix(Stream(31, 22), 2, 3),
                          random_matrix(Stream(31, 23), 2, 3), 0.3);
  const Vector z = Vector{{0.8, -0.5, 0.4}};
  const AnyMeasure mu = Mixture(Vector{{0.3, 0.7}},
                                {Gaussian(Vector{{0.2, 1.0, -0.3}}, 0.5 * Matrix::Identity(3, 3)),
                                 Gaussian(Vector{{-1.0, 0.4, 0.3}}, 0.2 * Matrix::Identity(3, 3))});
  const std::vector<Metric> all = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                                   Metric::grad_q};
  const std::int64_t L = 1000000000000;
  const auto errors = query_errors(all, mu, attention, z, {L}, {.engine = Engine::exact});
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_TRUE(close(static_cast<double>(L) * errors[k][0].value,
                      asymptotic_constant(all[k], mu, attention, z), 1e-9))
        << name(all[k]);
  }
}

// E [w^2 |influence|^2] over the atoms z_l, w = e^{<a,z_l> - Lambda(a)} and influence
// V ((z_l - m_a)(z_l - m_a)' - C_a) (x) z: the delta method by its definition.
double enumerated_constant(const Matrix& atoms, const Attention& T, const Vector& z) {
  const Vector a = T.tilt(z), score = atoms * a;
  const double n = static_cast<double>(atoms.rows());
  const Vector e = (score.array() - score.maxCoeff()).exp();
  const Vector r = e / e.sum();
  const Vector m = atoms.transpose() * r;
  const Matrix x = atoms.rowwise() - m.transpose();
  const Matrix C = x.transpose() * r.asDiagonal() * x;
  double sum = 0;
  for (Index l = 0; l < atoms.rows(); ++l) {
    const Matrix D = x.row(l).transpose() * x.row(l) - C;
    sum += n * r(l) * r(l) * (T.V() * D).squaredNorm() * z.squaredNorm();
  }
  return sum;
}

TEST(Constant, GradientsOfDiscreteLawsByEnumeration) {
  const Attention plain = Attention::from_uv(Matrix::Ones(1, 1), Matrix::Ones(1, 1));
  const double coin = asymptotic_constant(Metric::grad_u, Rademacher(1), plain, Vector{{2.5}});
  EXPECT_TRUE(close(coin, 0.01721, 1e-3));
  EXPECT_TRUE(close(coin, enumerated_constant(Matrix{{1.0}, {-1.0}}, plain, Vector{{2.5}}), 1e-12));
  const Attention T =
      Attention::from_uv(Matrix::Identity(3, 3), random_matrix(Stream(31, 32), 2, 3));
  const Matrix atoms = random_matrix(Stream(31, 31), 6, 3);
  Matrix cube(8, 3);
  cube << 1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, -1, 1, 1, -1, 1, -1, -1, -1, 1, -1, -1, -1;
  for (const double size : {0.5, 4.0, 8.0}) {
    const Vector z = size * Vector{{0.6, -0.64, 0.48}};
    EXPECT_TRUE(close(asymptotic_constant(Metric::grad_u, Empirical(atoms), T, z),
                      enumerated_constant(atoms, T, z), 1e-10))
        << size;
    EXPECT_TRUE(close(asymptotic_constant(Metric::grad_u, Rademacher(3), T, z),
                      enumerated_constant(cube, T, z), 1e-10))
        << size;
  }
}

TEST(Constant, InfiniteOutsideTheDomain) {
  const Attention attention = Attention::from_uv(Matrix::Ones(1, 1), Matrix::Ones(1, 1));
  const AnyMeasure laplace = Laplace(1, 1.0);
  EXPECT_TRUE(
      std::isfinite(asymptotic_constant(Metric::output, laplace, attention, Vector{{0.4}})));
  EXPECT_TRUE(std::isinf(asymptotic_constant(Metric::output, laplace, attention, Vector{{0.6}})));
}

}  // namespace
}  // namespace esscher
