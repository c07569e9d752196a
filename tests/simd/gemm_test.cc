#include "esscher/simd/gemm.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

// Every remainder of the 4-row, 3-vector and depth blocks is met; a sum of k products of standard
// normals is far from its rounding bound k * eps * sqrt(k).
TEST(Gemm, AddsTheProductForAllShapes) {
  for (const Index m : {0, 1, 3, 4, 5, 9}) {
    for (const Index k : {0, 1, 7, 255, 257}) {
      for (const Index n : {0, 1, 3, 4, 5, 12, 13, 23}) {
        const Matrix A = random_matrix(Stream(7, 1), m, k);
        const Matrix B = random_matrix(Stream(7, 2), k, n);
        const Matrix start = random_matrix(Stream(7, 3), m, n);
        Matrix C = start;
        add_product(A, B, C);
        EXPECT_TRUE(testing::close(C, start + A * B, 1e-13, 1.0)) << m << " " << k << " " << n;
        Matrix G = start;
        add_gram(Matrix(A.transpose()), B, G);
        EXPECT_TRUE(testing::close(G, C, 1e-15, 1.0));
        const Matrix symmetric = start.transpose() * start;
        Matrix S = symmetric;
        add_gram(B, S);
        EXPECT_TRUE(testing::close(S, symmetric + B.transpose() * B, 1e-13, 1.0));
      }
    }
  }
}

TEST(Gemm, ReadsBlocksOfLargerMatrices) {
  const Matrix A = random_matrix(Stream(7, 1), 9, 11);
  Matrix C = Matrix::Zero(5, 6);
  add_product(A.block(1, 2, 5, 4), A.block(3, 1, 4, 6), C);
  EXPECT_TRUE(testing::close(C, A.block(1, 2, 5, 4) * A.block(3, 1, 4, 6), 1e-14));
}

TEST(Gemm, WhitenedSquaresAreSquaredNormsForAllShapes) {
  for (const Index m : {0, 1, 4, 7}) {
    for (const Index d : {1, 3, 4, 12, 13, 17, 64}) {
      const Matrix larger = random_matrix(Stream(7, 4), m + 2, d + 3);
      const auto A = larger.block(1, 2, m, d);
      const Matrix W = random_matrix(Stream(7, 5), d, d).triangularView<Eigen::Upper>();
      const Vector centre = random_matrix(Stream(7, 6), d, 1);
      const Matrix white = (A * W).rowwise() - centre.transpose();
      const Vector expected = white.rowwise().squaredNorm();
      EXPECT_TRUE(testing::close(whitened_squares(A, W, centre), expected, 1e-13)) << m << " " << d;
      std::vector<Index> rows;
      for (Index i = m - 1; i >= 0; i -= 2) rows.push_back(i);
      const Vector some = whitened_squares(A, rows, W, centre);
      ASSERT_EQ(some.size(), static_cast<Index>(rows.size()));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_TRUE(testing::close(some(static_cast<Index>(i)), expected(rows[i]), 1e-13));
      }
    }
  }
}

TEST(Gemm, WeightedGramsAddTheListedRows) {
  for (const Index d : {1, 3, 12, 17}) {
    const Matrix larger = random_matrix(Stream(7, 7), 160, d + 3);
    const auto A = larger.block(1, 2, 150, d);
    const Matrix start = random_matrix(Stream(7, 8), d, d);
    for (const std::size_t count : {0, 1, 64, 100}) {
      std::vector<Index> rows;
      std::vector<double> weights;
      Matrix C = start + start.transpose();
      Matrix want = C;
      Vector sum = start.col(0);
      Vector want_sum = sum;
      for (std::size_t i = 0; i < count; ++i) {
        rows.push_back(static_cast<Index>(7 * i % 150));
        weights.push_back(Stream(9).uniform(i));
        want += weights[i] * A.row(rows[i]).transpose() * A.row(rows[i]);
        want_sum += weights[i] * A.row(rows[i]).transpose();
      }
      add_weighted_gram(A, rows, weights, C, sum);
      EXPECT_TRUE(testing::close(C, want, 1e-13, 1.0)) << d << " " << count;
      EXPECT_TRUE(testing::close(sum, want_sum, 1e-13, 1.0)) << d << " " << count;
    }
  }
}

TEST(Gemm, InverseFactorsWhiten) {
  for (const Index d : {1, 2, 3, 4, 5, 13, 64}) {
    const Matrix root = random_matrix(Stream(7, 10), d, d);
    const Matrix C = root * root.transpose() + Matrix::Identity(d, d);
    double log_determinant = 0;
    const Matrix W = inverse_factor(C, log_determinant);
    EXPECT_EQ(Matrix(W.triangularView<Eigen::StrictlyLower>()).norm(), 0) << d;
    EXPECT_TRUE(testing::close(W.transpose() * C * W, Matrix::Identity(d, d), 1e-12, 1.0)) << d;
    EXPECT_TRUE(testing::close(log_determinant, std::log(C.determinant()), 1e-12)) << d;
  }
}

TEST(Gemm, RefusesShapesThatDisagree) {
  Matrix C = Matrix::Zero(2, 2);
  EXPECT_THROW(add_product(Matrix::Zero(2, 3), Matrix::Zero(2, 2), C), DimensionError);
  EXPECT_THROW(add_gram(Matrix::Zero(3, 2), Matrix::Zero(3, 3), C), DimensionError);
  Vector sum = Vector::Zero(2);
  const std::vector<Index> rows = {0, 1};
  const std::vector<double> weights = {1, 1};
  EXPECT_THROW(whitened_squares(C, C, Vector::Zero(3)), DimensionError);
  EXPECT_THROW(whitened_squares(Matrix::Zero(2, 3), C, Vector::Zero(2)), DimensionError);
  EXPECT_THROW(add_weighted_gram(C, rows, {weights.data(), 1}, C, sum), DimensionError);
  EXPECT_THROW(add_weighted_gram(Matrix::Zero(2, 3), rows, weights, C, sum), DimensionError);
}

}  // namespace
}  // namespace esscher
