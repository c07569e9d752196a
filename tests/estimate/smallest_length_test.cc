#include "esscher/estimate/smallest_length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "esscher/base/error.h"

namespace esscher {
namespace {

double power(std::int64_t L) { return 1 / std::sqrt(static_cast<double>(L)); }
// Falls, but is no power law anywhere.
double steps(std::int64_t L) { return 100 - std::floor(std::log2(static_cast<double>(L))); }
double late(std::int64_t L) { return L < 777 ? HUGE_VAL : 1 / static_cast<double>(L); }

// The definition, one length after the other.
std::int64_t scan(double (*f)(std::int64_t), double target, std::int64_t from) {
  while (f(from) > target) ++from;
  return from;
}

TEST(SmallestLength, IsWhatAScanFinds) {
  for (double (*f)(std::int64_t) : {power, steps, late}) {
    for (const double target : {f(1), f(2), f(3), f(776), f(777), 0.9 * f(800), f(5000)}) {
      for (const std::int64_t from : {1, 2, 900}) {
        const std::int64_t want = scan(f, target, from);
        for (const Narrowing narrowing : {Narrowing::power_law, Narrowing::halves}) {
          for (const std::int64_t first : {0, 2, 64}) {
            const SmallestLength got = smallest_length(
                f, target,
                {.from = from, .to = 1 << 20, .first = first, .growth = 4, .narrowing = narrowing});
            ASSERT_TRUE(got.length);
            EXPECT_EQ(*got.length, want) << target << " from " << from;
            EXPECT_EQ(got.value, f(want));
            if (want > from) {
              EXPECT_EQ(got.before, f(want - 1));
            } else {
              EXPECT_TRUE(std::isnan(got.before));
            }
          }
        }
      }
    }
  }
}

TEST(SmallestLength, EvaluatesALengthOnceAndFewOfThem) {
  std::map<std::int64_t, int> seen;
  const auto f = [&](std::int64_t L) {
    ++seen[L];
    return 1 / static_cast<double>(L);
  };
  EXPECT_EQ(smallest_length(f, 1e-12, {.to = 1000000000000000}).length, 1000000000000);
  for (const auto& [L, times] : seen) EXPECT_EQ(times, 1) << L;
  EXPECT_LT(seen.size(), 30u);
}

TEST(SmallestLength, SaysWhereItStandsIfThereIsNone) {
  const SmallestLength got = smallest_length(power, 1e-3, {.to = 100});
  EXPECT_FALSE(got.length);
  EXPECT_EQ(got.value, power(100));
}

TEST(SmallestLength, StopsAtTheResolution) {
  const SmallestLength got = smallest_length(
      power, 1e-3, {.to = 1 << 30, .narrowing = Narrowing::halves, .resolution = 1000});
  ASSERT_TRUE(got.length);
  EXPECT_GE(*got.length, 1000000);
  EXPECT_LE(*got.length, 1001000);
}

TEST(SmallestLength, RefusesAnEmptyRange) {
  EXPECT_THROW((void)smallest_length(power, 1, {.from = 5, .to = 4}), ArgumentError);
  EXPECT_THROW((void)smallest_length(power, 1, {.from = 0, .to = 4}), ArgumentError);
}

}  // namespace
}  // namespace esscher
