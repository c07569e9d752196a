#include "esscher/base/length_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"

namespace esscher {
namespace {

using ::testing::ElementsAre;

TEST(LengthGrid, HasBothEndsAndNoLengthTwice) {
  EXPECT_THAT(length_grid(10, 1000, 2), ElementsAre(10, 32, 100, 316, 1000));
  EXPECT_THAT(length_grid(10, 50, 4), ElementsAre(10, 17, 29, 50));
  EXPECT_THAT(length_grid(1, 4, 10), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(length_grid(7, 7, 3), ElementsAre(7));
}

TEST(LengthGrid, RefusesWhatIsNoRange) {
  EXPECT_THROW(length_grid(5, 4, 1), ArgumentError);
  EXPECT_THROW(length_grid(0, 4, 1), ArgumentError);
  EXPECT_THROW(length_grid(1, 4, 0), ArgumentError);
}

}  // namespace
}  // namespace esscher
