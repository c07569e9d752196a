#include "cli/process/progress.h"

#include <gtest/gtest.h>

namespace esscher::cli {
namespace {

TEST(Progress, Texts) {
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(200), "3m 20s");
  EXPECT_EQ(duration_text(7500), "2h 05m");
  EXPECT_EQ(duration_text(100000), "1d 03h");
  EXPECT_EQ(progress_text(10, 110, 2), "10/110 cells  2/s  50s left");
  EXPECT_EQ(progress_text(5, 5, 123.4), "5/5 cells  123/s");
  EXPECT_EQ(progress_text(5, 9, 0, "steps"), "5/9 steps");
}

}  // namespace
}  // namespace esscher::cli
