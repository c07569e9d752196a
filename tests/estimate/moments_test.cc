#include "esscher/estimate/moments.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

Moments of(const std::vector<double>& x) {
  Moments m;
  for (double v : x) m.add(v);
  return m;
}

TEST(Moments, KnownAnswer) {
  const Moments m = of({1, 2, 3, 4});
  EXPECT_EQ(m.count(), 4);
  EXPECT_DOUBLE_EQ(m.mean(), 2.5);
  EXPECT_DOUBLE_EQ(m.variance(), 5.0 / 3);
  EXPECT_DOUBLE_EQ(m.std_error(), std::sqrt(5.0 / 12));
}

TEST(Moments, KeepsPrecisionFarFromZero) {
  const Moments m = of({1e9 + 1, 1e9 + 2, 1e9 + 3});
  EXPECT_TRUE(close(m.variance(), 1.0, 1e-9));
}

TEST(Moments, OneObservationShowsNoSpread) { EXPECT_TRUE(std::isinf(of({3}).std_error())); }

TEST(Moments, EmptyIsNeutral) {
  Moments a = of({1, 5}), empty;
  a.merge(empty);
  EXPECT_DOUBLE_EQ(a.mean(), 3);
  empty.merge(a);
  EXPECT_DOUBLE_EQ(empty.variance(), 8);
  EXPECT_EQ(empty.count(), 2);
}

TEST(CoMoments, DiagonalIsMomentsAndMergeEqualsOnePass) {
  rc::check([](const std::vector<std::pair<std::int16_t, std::int16_t>>& left,
               const std::vector<std::pair<std::int16_t, std::int16_t>>& right) {
    CoMoments a, b, all;
    Moments first, second, sum;
    for (bool is_left : {true, false}) {
      for (const auto& [x, y] : is_left ? left : right) {
        const Vector v = Vector{{double(x), double(y)}};
        (is_left ? a : b).add(v);
        all.add(v);
        first.add(x);
        second.add(y);
        sum.add(double(x) + double(y));
      }
    }
    a.merge(b);
    RC_ASSERT(a.count() == all.count());
    if (a.count() < 2) return;
    const Matrix C = a.covariance_of_mean();
    const double n = static_cast<double>(a.count());
    RC_ASSERT(close(C, all.covariance_of_mean(), 1e-11, 1.0));
    RC_ASSERT(close(a.mean()[1], second.mean(), 1e-12, 1e3));
    RC_ASSERT(close(C(0, 0), first.variance() / n, 1e-11, 1.0));
    RC_ASSERT(close(C(0, 0) + 2 * C(0, 1) + C(1, 1), sum.variance() / n, 1e-10, 1.0));
  });
}

TEST(Moments, MergeEqualsOnePass) {
  rc::check([](const std::vector<std::int16_t>& left, const std::vector<std::int16_t>& right) {
    Moments a, b, all;
    for (double v : left) a.add(v), all.add(v);
    for (double v : right) b.add(v), all.add(v);
    a.merge(b);
    RC_ASSERT(a.count() == all.count());
    RC_ASSERT(close(a.mean(), all.mean(), 1e-12, 1e3));
    RC_ASSERT(close(a.variance(), all.variance(), 1e-11, 1.0));
  });
}

TEST(Moments, OfNumbersThatAreThere) {
  const Moments m = moments_of(std::vector<double>{1, 2, 6});
  EXPECT_EQ(m.count(), 3);
  EXPECT_TRUE(testing::close(m.mean(), 3, 1e-15));
  EXPECT_TRUE(testing::close(m.std_error(), std::sqrt(7.0 / 3), 1e-15));
}

}  // namespace
}  // namespace esscher
