// The solvers that are compiled once for everybody, against what they solve.
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/basis.h"
#include "esscher/base/cholesky.h"
#include "tests/testing.h"

namespace esscher {
namespace {

Matrix some(Index rows, Index cols) {
  Matrix out(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) out(i, j) = std::sin(1.0 + 3.0 * i + 7.0 * j * j);
  }
  return out;
}

TEST(Cholesky, FactorsAndSolves) {
  const Matrix A = some(4, 4), B = some(4, 3);
  const Matrix G = A * A.transpose() + Matrix::Identity(4, 4);
  const Matrix L = cholesky(G).value();
  EXPECT_TRUE(testing::close(L * L.transpose(), G, 1e-14));
  for (Index i = 0; i < 4; ++i) {
    for (Index j = i + 1; j < 4; ++j) EXPECT_EQ(L(i, j), 0);
  }
  EXPECT_TRUE(testing::close(L * solve_lower(L, B), B, 1e-13));
  EXPECT_TRUE(testing::close(G * solve_positive(G, B).value(), B, 1e-13));
}

TEST(Cholesky, HasNoFactorOfWhatIsNotPositive) {
  const Matrix G = (Matrix(2, 2) << 1, 2, 2, 1).finished();
  EXPECT_FALSE(cholesky(G).has_value());
  EXPECT_FALSE(solve_positive(G, Matrix::Identity(2, 2)).has_value());
}

TEST(LeastSquares, LeavesAnErrorOrthogonalToTheColumns) {
  const Matrix A = some(6, 2);
  const Vector b = some(6, 1);
  const Vector x = least_squares(A, b);
  EXPECT_LT((A.transpose() * (b - A * x)).norm(), 1e-14 * A.norm() * b.norm());
}

TEST(Basis, IsOrthonormalAndSpansTheColumns) {
  const Matrix A = some(5, 2);
  const Matrix Q = orthonormal_basis(A, 0.0, 2);
  ASSERT_EQ(Q.cols(), 2);
  EXPECT_TRUE(testing::close(Q.transpose() * Q, Matrix::Identity(2, 2), 1e-14));
  EXPECT_TRUE(testing::close(Q * (Q.transpose() * A), A, 1e-14));
}

}  // namespace
}  // namespace esscher
