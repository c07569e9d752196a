#include "esscher/estimate/quantile.h"

#include <gtest/gtest.h>

namespace esscher {
namespace {

TEST(Quantile, IsTheNearestRank) {
  const std::vector<double> x = {30, 10, 50, 20, 40};
  EXPECT_EQ(quantile(x, 0), 10);
  EXPECT_EQ(quantile(x, 0.24), 20);  // rank 0.96
  EXPECT_EQ(quantile(x, 0.5), 30);
  EXPECT_EQ(quantile(x, 0.9), 50);  // rank 3.6
  EXPECT_EQ(quantile(x, 1), 50);
}

TEST(Quantile, LevelsOutsideAreTheEnds) {
  EXPECT_EQ(quantile({1, 2, 3}, -0.1), 1);
  EXPECT_EQ(quantile({1, 2, 3}, 1.5), 3);
}

TEST(Quantile, MedianOfAnEvenCountIsTheMiddle) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({4, 1, 3}), 3);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace esscher
