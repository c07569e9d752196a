// Properties that hold for every measure, on random tilts and random parameters.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "esscher/base/eigensystem.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::close;
using testing::gradient_check;
using testing::zoo;
using testing::zoo_matrix;
using testing::zoo_vector;
using testing::ZooEntry;

std::uint64_t random_seed() { return *rc::gen::inRange<std::uint64_t>(100, 1000000); }
Index random_index(Index low, Index high) { return *rc::gen::inRange<Index>(low, high); }
const ZooEntry& random_entry() {
  static const std::vector<ZooEntry> entries = zoo();
  return entries[*rc::gen::inRange<std::size_t>(0, entries.size())];
}

TEST(MeasureProperty, MeanIsGradientAndCovarianceIsJacobian) {
  for (const auto& [label, mu] : zoo()) {
    for (std::uint64_t seed = 20; seed < 23; ++seed) {
      const Vector a = zoo_vector(seed, mu.dim());
      const AnyMeasure& law = mu;
      EXPECT_TRUE(
          gradient_check([&](const Vector& x) { return law.log_mgf(x); }, a, mu.tilted_mean(a)))
          << label;
      const Matrix cov = mu.tilted_cov(a);
      EXPECT_TRUE(close(cov, cov.transpose(), 0)) << label;
      const double low = eigensystem(cov).values(0);
      EXPECT_GE(low, -1e-14 * cov.norm()) << label;
      for (Index i = 0; i < mu.dim(); ++i) {
        EXPECT_TRUE(gradient_check([&](const Vector& x) { return law.tilted_mean(x)(i); }, a,
                                   cov.row(i).transpose()))
            << label << " row " << i;
      }
    }
  }
}

RC_GTEST_PROP(MeasureProperty, MatrixFreeFormsAgreeWithTheMatrices, ()) {
  const AnyMeasure mu = random_entry().measure;
  const Vector a = 3 * zoo_vector(random_seed(), mu.dim());
  const Vector v = zoo_vector(random_seed(), mu.dim());
  RC_ASSERT(close(mu.tilted_cov_times(a, v), mu.tilted_cov(a) * v, 1e-12,
                  mu.tilted_cov(a).norm() * v.norm()));
  RC_ASSERT(close(mu.second_moment_times(v), mu.second_moment() * v, 1e-13,
                  mu.second_moment().norm() * v.norm()));
  RC_ASSERT(close(mu.centred_log_mgf(a), mu.log_mgf(a) - a.dot(mu.mean()), 1e-12, 10.0));
  RC_ASSERT(close(mu.mean_shift(a), mu.tilted_mean(a) - mu.mean(), 1e-12, 10.0));
}

TEST(MeasureProperty, ZeroTiltGivesMeanAndCovariance) {
  for (const auto& [label, mu] : zoo()) {
    const Vector zero = Vector::Zero(mu.dim());
    const Vector m = mu.mean();
    EXPECT_TRUE(close(mu.log_mgf(zero), 0, 0, 1)) << label;
    EXPECT_TRUE(close(mu.tilted_mean(zero), m, 1e-14, 1)) << label;
    EXPECT_TRUE(close(mu.tilted_cov(zero) + m * m.transpose(), mu.second_moment(), 1e-13)) << label;
  }
}

TEST(MeasureProperty, NothingIsEverNaN) {
  for (const auto& [label, mu] : zoo()) {
    if (std::isinf(mu.sub_gaussian())) continue;  // Laplace: a domain error, tested elsewhere
    for (const double size : {1e-300, 1e-100, 1e5, 1e8, 1e20, 1e100, 1e150, 1e300}) {
      const Vector a = size * zoo_vector(31, mu.dim());
      EXPECT_FALSE(std::isnan(mu.log_mgf(a))) << label << " " << size;
      EXPECT_TRUE(mu.tilted_mean(a).allFinite()) << label << " " << size;
      EXPECT_TRUE(mu.tilted_cov(a).allFinite()) << label << " " << size;
      EXPECT_TRUE(mu.tilted_cov_times(a, Vector::Ones(mu.dim())).allFinite()) << label;
    }
  }
}

void expect_same_law(const AnyMeasure& x, const AnyMeasure& y, const Vector& a) {
  RC_ASSERT(close(x.log_mgf(a), y.log_mgf(a), 1e-12, 1.0));
  RC_ASSERT(close(x.mean(), y.mean(), 1e-13, 1.0));
  RC_ASSERT(close(x.second_moment(), y.second_moment(), 1e-12, 1.0));
  RC_ASSERT(close(x.tilted_mean(a), y.tilted_mean(a), 1e-12, 1.0));
  RC_ASSERT(close(x.tilted_cov(a), y.tilted_cov(a), 1e-11, 1.0));
}

Gaussian random_gaussian(Index d, Index rank) {
  const Matrix F = zoo_matrix(random_seed(), d, rank);
  return {zoo_vector(random_seed(), d), F * F.transpose()};
}

RC_GTEST_PROP(MeasureProperty, AffineImageOfGaussianIsGaussian, ()) {
  const Index k = random_index(1, 5);
  const Index d = random_index(1, 5);
  const Gaussian inner = random_gaussian(k, random_index(1, k + 1));
  const Matrix B = zoo_matrix(random_seed(), d, k);
  const Vector c = zoo_vector(random_seed(), d);
  const Affine image(c, B, inner);
  const Gaussian want(c + B * inner.mean(), B * inner.cov() * B.transpose());
  expect_same_law(image, want, zoo_vector(random_seed(), d));
  const auto law = gaussian_law(image);
  RC_ASSERT(law.has_value());
  RC_ASSERT(close(law->mean, want.mean(), 1e-13));
  RC_ASSERT(close(law->cov, want.cov(), 1e-13));
}

RC_GTEST_PROP(MeasureProperty, AffineImagesCompose, ()) {
  const AnyMeasure mu = random_entry().measure;
  const Matrix B = 0.5 * zoo_matrix(random_seed(), 2, mu.dim());
  const Matrix D = 0.5 * zoo_matrix(random_seed(), 4, 2);
  const Vector b = zoo_vector(random_seed(), 2);
  const Vector c = zoo_vector(random_seed(), 4);
  expect_same_law(Affine(c, D, Affine(b, B, mu)), Affine(c + D * b, D * B, mu),
                  0.5 * zoo_vector(random_seed(), 4));
}

RC_GTEST_PROP(MeasureProperty, EmpiricalAffineImageIsEmpiricalOfImages, ()) {
  const Matrix tokens = zoo_matrix(random_seed(), random_index(1, 8), 3);
  const Matrix B = zoo_matrix(random_seed(), 2, 3);
  const Vector c = zoo_vector(random_seed(), 2);
  const Matrix image = (tokens * B.transpose()).rowwise() + c.transpose();
  const Affine got(c, B, Empirical(tokens));
  RC_ASSERT(got.cardinality() == Length(tokens.rows()));
  expect_same_law(got, Empirical(image), zoo_vector(random_seed(), 2));
}

// Product and sum of finite laws: enumerate all pairs of atoms.
RC_GTEST_PROP(MeasureProperty, ProductAndSumEnumerateAllPairs, ()) {
  const Matrix x = zoo_matrix(random_seed(), random_index(1, 5), 2);
  const Matrix y = zoo_matrix(random_seed(), random_index(1, 5), 2);
  Matrix pairs(x.rows() * y.rows(), 4);
  Matrix sums(x.rows() * y.rows(), 2);
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j < y.rows(); ++j) {
      pairs.row(i * y.rows() + j) << x.row(i), y.row(j);
      sums.row(i * y.rows() + j) = x.row(i) + y.row(j);
    }
  }
  expect_same_law(Product({Empirical(x), Empirical(y)}), Empirical(pairs),
                  zoo_vector(random_seed(), 4));
  expect_same_law(Sum({Empirical(x), Empirical(y)}), Empirical(sums), zoo_vector(random_seed(), 2));
}

RC_GTEST_PROP(MeasureProperty, MixtureOfPromptsIsTheirWeightedUnion, ()) {
  const Matrix x = zoo_matrix(random_seed(), random_index(1, 5), 2);
  const Matrix y = zoo_matrix(random_seed(), random_index(1, 5), 2);
  Matrix all(x.rows() + y.rows(), 2);
  all << x, y;
  Vector weights(all.rows());
  weights << Vector::Constant(x.rows(), 0.3 / static_cast<double>(x.rows())),
      Vector::Constant(y.rows(), 0.7 / static_cast<double>(y.rows()));
  Vector p(2);
  p << 0.3, 0.7;
  expect_same_law(Mixture(p, {Empirical(x), Empirical(y)}), Empirical(all, weights),
                  5 * zoo_vector(random_seed(), 2));
}

RC_GTEST_PROP(MeasureProperty, EqualComponentsAreOneComponent, ()) {
  const AnyMeasure mu = random_entry().measure;
  expect_same_law(Mixture(Vector::LinSpaced(3, 1, 2), {mu, mu, mu}), mu,
                  zoo_vector(random_seed(), mu.dim()));
}

RC_GTEST_PROP(MeasureProperty, EqualTokensAreDirac, ()) {
  const Index n = random_index(1, 20);
  const Vector z = zoo_vector(random_seed(), 3);
  const Empirical mu(Matrix(z.transpose().replicate(n, 1)));
  const Vector a = 100 * zoo_vector(random_seed(), 3);
  RC_ASSERT(close(mu.log_mgf(a), a.dot(z), 1e-13, 100.0));
  RC_ASSERT(close(mu.tilted_mean(a), z, 1e-14));
  RC_ASSERT(mu.tilted_cov(a).norm() <= 1e-28);
  RC_ASSERT(close(mu.effective_sample_size(a), static_cast<double>(n), 1e-10));
}

RC_GTEST_PROP(MeasureProperty, OrderOfTokensDoesNotMatter, ()) {
  const Index n = random_index(2, 20);
  const Matrix tokens = zoo_matrix(random_seed(), n, 3);
  const Vector weights = zoo_vector(random_seed(), n).cwiseAbs();
  const std::uint64_t rotation = random_seed();
  Matrix moved(n, 3);
  Vector moved_weights(n);
  for (Index l = 0; l < n; ++l) {
    const Index to = (n - 1 - l + static_cast<Index>(rotation)) % n;
    moved.row(to) = tokens.row(l);
    moved_weights(to) = weights(l);
  }
  expect_same_law(Empirical(tokens, weights), Empirical(moved, moved_weights),
                  4 * zoo_vector(random_seed(), 3));
}

RC_GTEST_PROP(MeasureProperty, ZeroWeightTokensDoNotExist, ()) {
  Matrix tokens = zoo_matrix(random_seed(), 6, 2);
  Vector weights = Vector::Ones(6);
  weights(random_index(0, 6)) = 0;
  Matrix kept(5, 2);
  Index row = 0;
  for (Index l = 0; l < 6; ++l) {
    if (weights(l) > 0) {
      kept.row(row++) = tokens.row(l);
    } else {
      tokens.row(l) *= 1e6;
    }
  }
  const Vector a = 10 * zoo_vector(random_seed(), 2);
  expect_same_law(Empirical(tokens, weights), Empirical(kept), a);
}

TEST(EffectiveSampleSize, RunsFromAllTokensToOne) {
  const Empirical mu(zoo_matrix(40, 50, 2));
  const Vector u = Vector::Ones(2);
  EXPECT_TRUE(close(mu.effective_sample_size(0 * u), 50, 1e-14));
  EXPECT_TRUE(close(mu.effective_sample_size(1e4 * u), 1, 1e-12));
  EXPECT_TRUE(close(mu.tilted_weights(u).sum(), 1, 1e-14));
}

TEST(GaussianView, RecognisesEveryWayOfWritingAGaussian) {
  const Gaussian g(zoo_vector(50, 2), Matrix::Identity(2, 2));
  const AnyMeasure two =
      Mixture(Vector::Ones(2), {g, Affine(Vector::Ones(2), 2 * Matrix::Identity(2, 2), g)});
  const AnyMeasure one = Mixture(Vector::Ones(1), {Sum({g, g})});
  Vector first_only(2);
  first_only << 1, 0;
  EXPECT_TRUE(gaussian_law(one));
  EXPECT_TRUE(gaussian_law(Product({g, one})));
  EXPECT_TRUE(gaussian_law(Mixture(first_only, {g, Rademacher(2)})));
  EXPECT_FALSE(gaussian_law(two));
  EXPECT_FALSE(gaussian_law(Rademacher(2)));
  EXPECT_FALSE(gaussian_law(Sum({g, Rademacher(2)})));
  EXPECT_FALSE(gaussian_mixture_law(Product({two, Rademacher(1)})));

  const AnyMeasure mu =
      Sum({two, Affine(Vector::Zero(2), zoo_matrix(51, 2, 4), Product({two, one}))});
  const auto law = gaussian_mixture_law(mu);
  ASSERT_TRUE(law);
  EXPECT_EQ(law->weights.size(), 4);
  std::vector<AnyMeasure> parts;
  for (const GaussianLaw& part : law->components) parts.emplace_back(Gaussian(part.mean, part.cov));
  const Mixture rebuilt(law->weights, parts);
  const Vector a = zoo_vector(52, 2);
  EXPECT_TRUE(close(rebuilt.log_mgf(a), mu.log_mgf(a), 1e-13));
  EXPECT_TRUE(close(rebuilt.tilted_cov(a), mu.tilted_cov(a), 1e-12));
}

// A user's own class enters through the five required closed forms only.
class Shifted {
 public:
  Index dim() const { return 1; }
  Length cardinality() const { return Length::infinity(); }
  Vector mean() const { return Vector::Ones(1); }
  Matrix second_moment() const { return Matrix::Constant(1, 1, 2); }
  double log_mgf(const VectorView& a) const { return a(0) + Rademacher(1).log_mgf(a); }
  Vector tilted_mean(const VectorView& a) const {
    return Vector::Ones(1) + Rademacher(1).tilted_mean(a);
  }
  Matrix tilted_cov(const VectorView& a) const { return Rademacher(1).tilted_cov(a); }
  Vector tilted_cov_times(const VectorView& a, const VectorView& v) const {
    return tilted_cov(a) * v;
  }
  Empirical sample(const Stream&, Index n) const { return Empirical(Matrix::Ones(n, 1)); }
  double sub_gaussian() const { return 1; }
  std::string name() const { return "shifted"; }
};

TEST(AnyMeasure, HoldsUserTypesAndGivesThemBack) {
  const AnyMeasure mu = Shifted();
  const AnyMeasure copy = mu;
  EXPECT_NE(copy.as<Shifted>(), nullptr);
  EXPECT_EQ(copy.as<Shifted>(), mu.as<Shifted>());  // copies share the object
  EXPECT_EQ(copy.as<Gaussian>(), nullptr);
  const Vector a = Vector::Constant(1, 0.7);
  EXPECT_TRUE(close(mu.centred_log_mgf(a), Rademacher(1).log_mgf(a), 1e-14));
  EXPECT_TRUE(close(mu.mean_shift(a), Rademacher(1).tilted_mean(a), 1e-14));
  EXPECT_FALSE(mu.strictly_sub_gaussian());
}

}  // namespace
}  // namespace esscher
