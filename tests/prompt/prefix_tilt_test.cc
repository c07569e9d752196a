// The running sums of the direct engine against the same sums written plainly.
#include "esscher/prompt/detail/prefix_tilt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "esscher/random/stream.h"
#include "esscher/simd/targets.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using detail::PrefixTilt;

void expect_plain(const PrefixTilt& got, const Matrix& tokens, const Vector& a,
                  const Vector& centre) {
  const Vector s = tokens * a;
  Vector omega = (s.array() - s.maxCoeff()).exp();
  omega /= omega.sum();
  const Matrix x = tokens.rowwise() - centre.transpose();
  const Vector mean = x.transpose() * omega;
  const Matrix cov = x.transpose() * omega.asDiagonal() * x - mean * mean.transpose();
  const double size = tokens.cwiseAbs().maxCoeff();
  EXPECT_TRUE(testing::close(got.mean(), mean, 1e-12, size));
  EXPECT_TRUE(testing::close(got.cov(), cov, 1e-11, size * size));
  EXPECT_TRUE(testing::close(got.weights2(), omega.squaredNorm(), 1e-12));
}

// Pieces of every size, so that blocks end within vectors and prefixes within blocks.
TEST(PrefixTilt, EqualsThePlainSumsOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    for (const Index d : {1L, 3L, 6L, 9L, 17L}) {
      for (const double scale : {0.0, 0.3, 20.0}) {
        SCOPED_TRACE("d " + std::to_string(d) + " scale " + std::to_string(scale));
        Matrix tokens(1000, d);
        Stream(8).fill_normal(0, {tokens.data(), static_cast<std::size_t>(tokens.size())});
        const Vector a = scale * Vector::LinSpaced(d, 0.5, 1);
        const Vector centre = Vector::LinSpaced(d, -0.2, 1.2);
        PrefixTilt tilt(a, centre, true);
        Index done = 0;
        for (const Index piece : {1L, 2L, 5L, 248L, 1L, 256L, 300L, 187L}) {
          tilt.add(tokens.row(done).data(), piece);
          done += piece;
          expect_plain(tilt, tokens.topRows(done), a, centre);
        }
        ASSERT_EQ(done, tokens.rows());
      }
    }
  }
  simd::force_target("");
}

}  // namespace
}  // namespace esscher
