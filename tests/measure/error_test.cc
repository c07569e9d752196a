// Typed errors that name the argument and the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::zoo;

TEST(MeasureError, LaplaceOutsideItsDomainAlsoInsideCombinators) {
  const AnyMeasure mu = Laplace(2, 0.5);
  Vector a(2);
  a << 0.1, -2.0;
  const std::string text = message_of<DomainError>([&] { (void)mu.log_mgf(a); });
  EXPECT_THAT(text, HasSubstr("laplace: a[1] is -2"));
  EXPECT_THAT(text, HasSubstr("1/b = 2"));
  const std::vector<AnyMeasure> wrapped = {mu, Affine(Vector::Zero(2), Matrix::Identity(2, 2), mu),
                                           Product({mu}), Sum({mu, Rademacher(2)}),
                                           Mixture(Vector::Ones(2), {Rademacher(2), mu})};
  for (const AnyMeasure& law : wrapped) {
    EXPECT_THROW((void)law.log_mgf(a), DomainError) << law.name();
    EXPECT_THROW((void)law.tilted_mean(a), DomainError) << law.name();
    EXPECT_THROW((void)law.tilted_cov(a), DomainError) << law.name();
    EXPECT_THROW((void)law.tilted_cov_times(a, a), DomainError) << law.name();
    EXPECT_NO_THROW((void)law.log_mgf(0.99 * a)) << law.name();
  }
}

TEST(MeasureError, WrongDimensionAndNonFiniteTilts) {
  for (const auto& [label, mu] : zoo()) {
    const Vector longer = Vector::Zero(mu.dim() + 1);
    const Vector zero = Vector::Zero(mu.dim());
    EXPECT_THROW((void)mu.log_mgf(longer), DimensionError) << label;
    EXPECT_THROW((void)mu.tilted_mean(longer), DimensionError) << label;
    EXPECT_THROW((void)mu.tilted_cov(longer), DimensionError) << label;
    EXPECT_THROW((void)mu.tilted_cov_times(zero, longer), DimensionError) << label;
    EXPECT_THROW((void)mu.sample(Stream(1), 0), ArgumentError) << label;
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Vector a = zero;
      a(1) = bad;
      const std::string text = message_of<ArgumentError>([&] { (void)mu.tilted_mean(a); });
      EXPECT_THAT(text, HasSubstr("a[1] is ")) << label;
    }
  }
}

TEST(MeasureError, BadParameters) {
  Matrix bad(2, 2);
  bad << 1, 0, 0, -1;
  EXPECT_THAT(message_of<ArgumentError>([&] { Gaussian g(bad); }), HasSubstr("gaussian: cov"));
  EXPECT_THAT(message_of<ArgumentError>([&] { Gaussian g(bad); }),
              HasSubstr("smallest eigenvalue is -1"));
  bad << 1, 2, 0, 1;
  EXPECT_THROW(Gaussian{bad}, ArgumentError);
  EXPECT_THROW(Gaussian(Vector::Zero(3), Matrix::Identity(2, 2)), DimensionError);
  EXPECT_THROW(Gaussian(Matrix::Identity(2, 3)), DimensionError);
  EXPECT_THROW(Rademacher(0), ArgumentError);
  EXPECT_THAT(message_of<ArgumentError>([] { Laplace l(2, -1.5); }), HasSubstr("b is -1.5"));
  EXPECT_THAT(message_of<ArgumentError>([] { Sphere s(2, 0); }), HasSubstr("radius is 0"));
  EXPECT_THROW(Ball(2, std::numeric_limits<double>::infinity()), ArgumentError);
  Vector weights(2);
  weights << 1, -0.25;
  EXPECT_THAT(message_of<ArgumentError>([&] { Categorical c(weights); }),
              HasSubstr("probs[1] is -0.25"));
  EXPECT_THROW(Categorical(Vector::Zero(2)), ArgumentError);
  EXPECT_THROW(Empirical(Matrix(0, 3)), ArgumentError);
  EXPECT_THROW(Empirical(Matrix::Ones(3, 2), weights), DimensionError);
  Matrix nan = Matrix::Ones(2, 2);
  nan(1, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(message_of<ArgumentError>([&] { Empirical e(nan); }),
              HasSubstr("tokens[1,0] is nan"));
  EXPECT_THROW(Mixture(weights, {Rademacher(2), Rademacher(2)}), ArgumentError);
  EXPECT_THROW(Mixture(Vector::Ones(2), {Rademacher(2), Rademacher(3)}), DimensionError);
  EXPECT_THROW(Mixture(Vector::Ones(1), {Rademacher(2), Rademacher(2)}), DimensionError);
  EXPECT_THROW(Sum({Rademacher(2), Rademacher(3)}), DimensionError);
  EXPECT_THROW(Sum({}), ArgumentError);
  EXPECT_THROW(Product({}), ArgumentError);
  EXPECT_THROW(Affine(Vector::Zero(2), Matrix::Identity(2, 3), Rademacher(2)), DimensionError);
  EXPECT_THROW(Affine(Vector::Zero(3), Matrix::Identity(2, 2), Rademacher(2)), DimensionError);
}

}  // namespace
}  // namespace esscher
