#include "esscher/heads/detail/whitening.h"

#include <gtest/gtest.h>

#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

// A matrix is what its eigensystem says, whatever signs its vectors have; the signs are ours, so that
// a solver which rounds otherwise draws the same sample along them.
TEST(Whitening, SignsAreNotThoseOfTheSolver) {
  int turned = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix F = random_matrix(Stream(91, seed), 6, 6);
    const Matrix C = F * F.transpose();
    const Eigensystem ours = oriented_eigensystem(C), solver = eigensystem(C);
    EXPECT_TRUE(
        close(ours.vectors * ours.values.asDiagonal() * ours.vectors.transpose(), C, 1e-12));
    for (Index k = 0; k < 6; ++k) {
      double sum = 0;
      for (Index i = 0; i < 6; ++i) sum += ours.vectors(i, k) / static_cast<double>(i + 1);
      EXPECT_GE(sum, 0) << seed << " " << k;
      turned += ours.vectors.col(k) != solver.vectors.col(k) ? 1 : 0;
    }
  }
  EXPECT_GT(turned, 10);
}

// Scores of rank two in five queries: two white coordinates of variance 1, and back.
TEST(Whitening, LeavesOutWhatIsRounding) {
  const Matrix s =
      centred_rows(random_matrix(Stream(92), 300, 2) * random_matrix(Stream(93), 2, 5));
  const Whitening white = whitening(s.transpose() * s / 300);
  ASSERT_EQ(white.down.cols(), 2);
  const Matrix x = s * white.down;
  EXPECT_TRUE(close(x.transpose() * x / 300, Matrix::Identity(2, 2), 1e-10));
  EXPECT_TRUE(close(x * white.up.transpose(), s, 1e-10));
}

}  // namespace
}  // namespace esscher
