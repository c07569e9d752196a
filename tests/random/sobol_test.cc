#include "esscher/random/sobol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/testing.h"

namespace esscher {
namespace {

TEST(Sobol, IsStratifiedInEveryCoordinate) {
  const Matrix points = scrambled_sobol(12, 8, Stream(1));
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
  EXPECT_NE(points, scrambled_sobol(12, 8, Stream(2)));
}

// E exp((x_1 + .. + x_4)/2) = e^{1/2} for standard normals: a net of 4096 points is far closer than
// the 2 % of as many draws, and different scramblings err differently.
TEST(Sobol, NormalsIntegrateSmoothFunctions) {
  double total = 0, squares = 0;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const Matrix x = sobol_normals(4, 12, Stream(3).split(i));
    const double value = (0.5 * x.rowwise().sum().array() - 0.5).exp().mean();
    total += value / 16;
    squares += (value - 1) * (value - 1) / 16;
  }
  EXPECT_LT(std::sqrt(squares), 3e-3);
  EXPECT_TRUE(testing::agrees({total, std::sqrt(squares / 16), 16, Engine::exact}, 1.0));
}

}  // namespace
}  // namespace esscher
