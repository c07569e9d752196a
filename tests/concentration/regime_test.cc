#include "esscher/concentration/regime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "esscher/concentration/length.h"
#include "esscher/concentration/study.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sum.h"
#include "tests/testing.h"

namespace esscher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Regime, IsJudgedByLambdaWhereThereIsOne) {
  EXPECT_EQ(regime_of(0.49, HUGE_VAL), Regime::inverse);
  EXPECT_EQ(regime_of(0.5, 1.0), Regime::slow);
  EXPECT_EQ(regime_of(kNaN, 3.0), Regime::inverse_at_queries);
  EXPECT_EQ(regime_of(kNaN, HUGE_VAL), Regime::slower_somewhere);
}

TEST(Regime, TheReportKeepsWhatIsNotFinite) {
  const RegimeReport slow = regime_report(0.81, {HUGE_VAL, HUGE_VAL});
  EXPECT_TRUE(testing::close(slow.gamma, (std::sqrt(1 + 4 / 0.81) - 1) / 2, 1e-14));
  EXPECT_TRUE(std::isinf(slow.constants[1]));
  EXPECT_NE(slow.text.find("heuristic"), std::string::npos);
  const RegimeReport fast = regime_report(0.25, {2.0});
  EXPECT_EQ(fast.gamma, 1);
  EXPECT_NE(fast.text.find("closed form"), std::string::npos);
  const RegimeReport queries = regime_report(kNaN, {2.0});
  EXPECT_EQ(queries.gamma, 1);
  EXPECT_NE(queries.text.find("delta method"), std::string::npos);
  const RegimeReport none = regime_report(kNaN, {HUGE_VAL});
  EXPECT_TRUE(std::isnan(none.gamma));
  EXPECT_NE(none.text.find("slower than 1/L"), std::string::npos);
}

Matrix number(double x) { return Matrix::Constant(1, 1, x); }

Problem one_dimensional(AnyMeasure mu, AnyMeasure nu = Gaussian(Matrix(Matrix::Identity(1, 1)))) {
  return {.mu = std::move(mu),
          .attention = Attention::from_uv(number(1), number(1)),
          .nu = std::move(nu)};
}

// One law in several guises. E e^{Lambda(2z) - 2 Lambda(z)} = E e^{4 z^2} is infinite for z ~ N(0,1).
TEST(Regime, IsTheSameHoweverTheLawIsWritten) {
  const AnyMeasure wide = Gaussian(number(4));
  const std::vector<AnyMeasure> guises = {
      wide, Mixture(Vector{{0.5, 0.5}}, {wide, wide}), Sum({wide, Rademacher(1)}),
      Affine(Vector::Zero(1), number(2),
             Mixture(Vector{{0.9, 0.1}}, {Uniform(1), Gaussian(number(1))})),
      Sum({Gaussian(number(3)), Gaussian(number(1)), Rademacher(1)})};
  for (const AnyMeasure& mu : guises) {
    const StudyResult r = study(one_dimensional(mu),
                                {.lengths = {10, 20}, .metrics = {Metric::output}, .queries = 16});
    EXPECT_EQ(r.regime.regime, Regime::slow) << mu.name();
    EXPECT_TRUE(testing::close(r.regime.lambda, 4, 1e-12)) << mu.name();
    EXPECT_TRUE(testing::close(r.regime.gamma, 0.2071067811865476, 1e-12)) << mu.name();
    EXPECT_TRUE(std::isinf(r.regime.constants.at(0))) << mu.name();
    EXPECT_TRUE(std::isinf(r.rows.back().asymptotic)) << mu.name();
    EXPECT_NE(r.regime.text.find("no constant"), std::string::npos) << mu.name();
  }
}

TEST(Regime, TheSharpestComponentDecides) {
  // Components diag(0.3, 0) and diag(0, 0.4): lambda is 0.4, not that of the covariance.
  Problem p{.mu = Mixture(Vector{{0.5, 0.5}}, {Gaussian(Matrix(Vector{{0.3, 0.0}}.asDiagonal())),
                                               Gaussian(Matrix(Vector{{0.0, 0.4}}.asDiagonal()))}),
            .attention = Attention::from_uv(Matrix::Identity(2, 2), Matrix::Identity(2, 2)),
            .nu = Gaussian(Matrix(Matrix::Identity(2, 2)))};
  EXPECT_TRUE(testing::close(query_average(p).lambda, 0.4, 1e-12));
  EXPECT_FALSE(query_average(p).infinite);
  // Queries that are a mixture have the tails of their widest component.
  p.nu = Mixture(Vector{{0.99, 0.01}}, {Gaussian(Matrix(Matrix::Identity(2, 2))),
                                        Gaussian(Matrix(1.5 * Matrix::Identity(2, 2)))});
  EXPECT_TRUE(testing::close(query_average(p).lambda, 0.6, 1e-12));
  EXPECT_TRUE(query_average(p).infinite);
  // Blocks of a product do not add up.
  p.mu = Product({Gaussian(number(0.3)), Gaussian(number(0.2))});
  p.nu = Gaussian(Matrix(Matrix::Identity(2, 2)));
  EXPECT_TRUE(testing::close(query_average(p).lambda, 0.3, 1e-12));
}

TEST(Regime, TailsOfOtherLaws) {
  EXPECT_TRUE(std::isnan(query_average(one_dimensional(Rademacher(1))).lambda));
  EXPECT_FALSE(query_average(one_dimensional(Rademacher(1))).infinite);
  EXPECT_FALSE(query_average(one_dimensional(Gaussian(number(4)), Uniform(1))).infinite);
  // Laplace tokens: Lambda is infinite beyond 1/b, which Gaussian queries reach and bounded ones
  // need not.
  EXPECT_TRUE(query_average(one_dimensional(Laplace(1, 0.05))).infinite);
  EXPECT_FALSE(query_average(one_dimensional(Laplace(1, 0.05), Rademacher(1))).infinite);
  // Laplace queries on Gaussian tokens: E e^{g z^2} is infinite for every g > 0.
  EXPECT_TRUE(query_average(one_dimensional(Gaussian(number(0.01)), Laplace(1, 0.1))).infinite);
  Problem still = one_dimensional(Laplace(1, 0.05));
  still.attention = Attention::from_uv(number(0), number(1));
  EXPECT_FALSE(query_average(still).infinite);
}

TEST(Regime, LengthHasNoCentralLimitWhereThereIsNoConstant) {
  const AnyMeasure wide = Gaussian(number(1));
  const Problem twin = one_dimensional(Mixture(Vector{{0.5, 0.5}}, {wide, wide}));
  EXPECT_TRUE(std::isinf(shortest_length(twin, {.eps = 0.5, .queries = 64}).clt));
  const LengthAnswer never =
      shortest_length(one_dimensional(Laplace(1, 1.0)), {.eps = 0.1, .queries = 64});
  EXPECT_EQ(never.status, LengthStatus::never);
  EXPECT_TRUE(std::isinf(never.clt));
}

}  // namespace
}  // namespace esscher
