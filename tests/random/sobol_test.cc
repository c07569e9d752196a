#include "esscher/random/sobol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/testing.h"

namespace esscher {
namespace {

TEST(Sobol, IsStratifiedInEveryCoordinate) {
  for (const Scrambling kind : {Scrambling::linear, Scrambling::nested}) {
    const Matrix points = scrambled_sobol(12, 8, Stream(1), kind);
    for (Index j = 0; j < points.cols(); ++j) {
      Vector column = points.col(j);
      std::sort(column.begin(), column.end());
      for (Index i = 0; i < column.size(); ++i) {
        ASSERT_EQ(std::floor(column(i) * 256), double(i)) << "coordinate " << j;
      }
    }
    // The first two coordinates form a (0, 8, 2)-net: one point per 16 x 16 box.
    Matrix boxes = Matrix::Zero(16, 16);
    for (Index i = 0; i < 256; ++i) boxes(Index(points(i, 0) * 16), Index(points(i, 1) * 16)) += 1;
    EXPECT_EQ(boxes, Matrix::Ones(16, 16));
    EXPECT_NE(points, scrambled_sobol(12, 8, Stream(2), kind));
    EXPECT_EQ(scrambled_sobol(3, 0, Stream(4), kind).rows(), 1);
  }
}

// Nested scrambling leaves a point uniform in its interval and independent of the others: the mean of
// e^u over n points has the variance sum Var_k/n^2 of a stratified sample, (e^2 - 1)/(24 n^3). The mean of
// e^{u+v} over a net in the plane is nearly normal as well, where linear scrambling has a few nets
// that are far off.
TEST(Sobol, MeansOverNestedNetsAreNearlyNormal) {
  struct Spread {
    double variance = 0, kurtosis = 0;
  };
  const auto spread = [](Index dims, int m, Scrambling kind) {
    constexpr int kNets = 2000;
    const double mean = std::pow(std::exp(1.0) - 1, static_cast<double>(dims));
    double squares = 0, fourth = 0;
    for (std::uint64_t i = 0; i < kNets; ++i) {
      const Matrix u = scrambled_sobol(dims, m, Stream(5).split(i), kind);
      const double error = u.rowwise().sum().array().exp().mean() - mean;
      squares += error * error / kNets;
      fourth += std::pow(error, 4) / kNets;
    }
    return Spread{squares, fourth / (squares * squares)};
  };
  const double n = 64, stratified = (std::exp(2.0) - 1) / (24 * n * n * n);
  const Spread line = spread(1, 6, Scrambling::nested), plane = spread(2, 8, Scrambling::nested);
  EXPECT_TRUE(testing::close(line.variance, stratified, 0.19));  // six errors of 2000 squares
  EXPECT_NEAR(line.kurtosis, 3, 0.6);
  EXPECT_NEAR(plane.kurtosis, 3, 0.6);
  EXPECT_GT(spread(1, 6, Scrambling::linear).kurtosis, 5);
  EXPECT_GT(spread(2, 8, Scrambling::linear).kurtosis, 5);
}

// The first two points of the sequence, 0 and 1/2, differ in their first digit, so that their second
// ones are flipped by bits of their own: they stay equal half of the time.
TEST(Sobol, NestedFlipsDependOnTheDigitsBefore) {
  int equal = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const Matrix u = scrambled_sobol(1, 2, Stream(6).split(i), Scrambling::nested);
    const auto second = [&](Index point) { return static_cast<int>(4 * u(point, 0)) % 2; };
    equal += second(0) == second(1) ? 1 : 0;
  }
  EXPECT_NEAR(equal, 200, 60);  // six errors
}

// E exp((x_1 + .. + x_4)/2) = e^{1/2} for standard normals: a net of 4096 points is far closer than
// the 2 % of as many draws, and different scramblings err differently.
TEST(Sobol, NormalsIntegrateSmoothFunctions) {
  for (const Scrambling kind : {Scrambling::linear, Scrambling::nested}) {
    double total = 0, squares = 0;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const Matrix x = sobol_normals(4, 12, Stream(3).split(i), kind);
      const double value = (0.5 * x.rowwise().sum().array() - 0.5).exp().mean();
      total += value / 16;
      squares += (value - 1) * (value - 1) / 16;
    }
    EXPECT_LT(std::sqrt(squares), 3e-3);
    EXPECT_TRUE(testing::agrees({total, std::sqrt(squares / 16), 16, Engine::exact}, 1.0));
  }
}

}  // namespace
}  // namespace esscher
