#include "esscher/simd/dot.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/simd/targets.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

constexpr Index kStride = 70;

TEST(Dot, EqualsThePlainSumsWithTheSameBitsOnEveryTarget) {
  const Matrix y = random_matrix(Stream(1), simd::kMostDots, kStride);
  const Vector w = random_matrix(Stream(2), kStride, 1);
  std::vector<Vector> first;
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    std::size_t at = 0;
    for (int columns = 1; columns <= simd::kMostDots; ++columns) {
      for (const Index count : {0, 1, 3, 7, 8, 9, 15, 16, 17, 64, 69}) {
        Vector out(columns);
        simd::dot_columns(y.data(), kStride, columns, w.data(), count, out.data());
        const Vector plain = y.topLeftCorner(columns, count) * w.head(count);
        EXPECT_TRUE(close(out, plain, 1e-14, 1)) << columns << " of " << count;
        EXPECT_EQ(simd::dot(y.data(), w.data(), count), out(0));
        if (first.size() == at) first.push_back(out);
        EXPECT_EQ(out, first[at++]) << columns << " of " << count;
      }
    }
  }
  simd::force_target("");
}

TEST(Dot, RefusesMoreColumnsThanItHasSums) {
  double out[8] = {};
  EXPECT_THROW(simd::dot_columns(out, 1, 6, out, 1, out), ArgumentError);
  EXPECT_THROW(simd::dot_columns(out, 1, 0, out, 1, out), ArgumentError);
}

}  // namespace
}  // namespace esscher
