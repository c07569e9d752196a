#include "esscher/training/runge_kutta.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// y'' = -y, whose solution is known.
void rotate(const VectorView& y, Eigen::Ref<Vector> out) {
  out(0) = y(1);
  out(1) = -y(0);
}

Vector start() { return Vector::Unit(2, 0); }

// The error of the end point and of the interpolant at the middle of the steps.
struct Errors {
  double end = 0, inside = 0;
};
Errors errors_at(double rtol) {
  RungeKutta solver(rotate, start(), rtol, 1e-3 * rtol);
  Errors errors;
  while (solver.t() < 10) {
    const double before = solver.t();
    EXPECT_TRUE(solver.step(10));
    const double middle = 0.5 * (before + solver.t());
    errors.inside = std::max(errors.inside, std::abs(solver.at(middle)(0) - std::cos(middle)));
  }
  EXPECT_EQ(solver.t(), 10);
  errors.end = std::abs(solver.y()(0) - std::cos(10.0));
  return errors;
}

TEST(RungeKutta, ErrorsFollowTheTolerance) {
  for (double rtol : {1e-4, 1e-6, 1e-8, 1e-10}) {
    const Errors errors = errors_at(rtol);
    EXPECT_LT(errors.end, 30 * rtol) << rtol;
    EXPECT_LT(errors.inside, 100 * rtol) << rtol;
    EXPECT_GT(errors.end, 1e-4 * rtol) << rtol;  // steps are no shorter than the tolerance asks
  }
}

// The order is seen from the number of evaluations: a tolerance 10^5 times finer costs ten times more.
TEST(RungeKutta, HasOrderFive) {
  const auto evaluations = [](double rtol) {
    RungeKutta solver(rotate, start(), rtol, 1e-3 * rtol);
    while (solver.t() < 50) solver.step(50);
    return static_cast<double>(solver.evaluations());
  };
  EXPECT_NEAR(evaluations(1e-10) / evaluations(1e-5), 10, 2.5);
}

TEST(RungeKutta, ARefusedFieldAsksForAShorterStep) {
  // y' = -1/(2y) ends at y = 0, t = 1; the field refuses y <= 0.
  const auto field = [](const VectorView& y, Eigen::Ref<Vector> out) {
    if (!(y(0) > 0)) throw DomainError("y is not positive");
    out(0) = -0.5 / y(0);
  };
  RungeKutta solver(field, Vector::Ones(1), 1e-8, 1e-10);
  while (solver.t() < 0.999) ASSERT_TRUE(solver.step(0.999));
  EXPECT_NEAR(solver.y()(0), std::sqrt(1 - 0.999), 1e-6);
  bool alive = true;
  while (alive && solver.steps() < 10000) alive = solver.step(2);
  EXPECT_FALSE(alive);
  EXPECT_LT(solver.t(), 1.0001);
  EXPECT_EQ(solver.message(), "y is not positive");
}

TEST(RungeKutta, AnExceptionOfTheFieldPasses) {
  const auto field = [](const VectorView&, Eigen::Ref<Vector>) { throw RuntimeFailure("no"); };
  RungeKutta solver(field, Vector::Ones(1), 1e-8, 1e-10);
  EXPECT_THROW(solver.step(1), RuntimeFailure);
}

}  // namespace
}  // namespace esscher
