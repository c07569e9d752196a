#include "esscher/simd/gemm.h"

#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

Matrix random_matrix(Index rows, Index cols, std::uint64_t id) {
  Matrix out(rows, cols);
  Stream(7, id).fill_normal(0, {out.data(), static_cast<std::size_t>(out.size())});
  return out;
}

// Every remainder of the 4-row, 3-vector and depth blocks is met; a sum of k products of standard
// normals is far from its rounding bound k * eps * sqrt(k).
TEST(Gemm, AddsTheProductForAllShapes) {
  for (const Index m : {0, 1, 3, 4, 5, 9}) {
    for (const Index k : {0, 1, 7, 255, 257}) {
      for (const Index n : {0, 1, 3, 4, 5, 12, 13, 23}) {
        const Matrix A = random_matrix(m, k, 1);
        const Matrix B = random_matrix(k, n, 2);
        const Matrix start = random_matrix(m, n, 3);
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
  const Matrix A = random_matrix(9, 11, 1);
  Matrix C = Matrix::Zero(5, 6);
  add_product(A.block(1, 2, 5, 4), A.block(3, 1, 4, 6), C);
  EXPECT_TRUE(testing::close(C, A.block(1, 2, 5, 4) * A.block(3, 1, 4, 6), 1e-14));
}

TEST(Gemm, WhitenedSquaresAreSquaredNormsForAllShapes) {
  for (const Index m : {0, 1, 4, 7}) {
    for (const Index d : {1, 3, 4, 12, 13, 17, 64}) {
      const Matrix A = random_matrix(m + 2, d + 3, 4).block(1, 2, m, d);
      const Matrix W = random_matrix(d, d, 5).triangularView<Eigen::Upper>();
      const Vector centre = random_matrix(d, 1, 6);
      Vector out = Vector::Ones(m);
      add_whitened_squares(A, W, centre, out);
      const Matrix white = (A * W).rowwise() - centre.transpose();
      const Vector expected = white.rowwise().squaredNorm().array() + 1.0;
      EXPECT_TRUE(testing::close(out, expected, 1e-13)) << m << " " << d;
    }
  }
}

TEST(Gemm, RefusesShapesThatDisagree) {
  Matrix C = Matrix::Zero(2, 2);
  EXPECT_THROW(add_product(Matrix::Zero(2, 3), Matrix::Zero(2, 2), C), DimensionError);
  EXPECT_THROW(add_gram(Matrix::Zero(3, 2), Matrix::Zero(3, 3), C), DimensionError);
  Vector out = Vector::Zero(2);
  EXPECT_THROW(add_whitened_squares(C, C, Vector::Zero(3), out), DimensionError);
  EXPECT_THROW(add_whitened_squares(Matrix::Zero(3, 2), C, Vector::Zero(2), out), DimensionError);
}

}  // namespace
}  // namespace esscher
