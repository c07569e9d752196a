// What every verdict must be able to do: fail, whichever of its figures is wrong.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/paper/judged.h"

namespace esscher::paper {

// Each figure notices a factor of 1.2 in both directions, and NaN.
inline void expect_each_figure_can_fail(const Checks& checks) {
  EXPECT_EQ(trouble_of(checks), "");
  EXPECT_FALSE(checks.controls.empty());
  for (std::size_t i = 0; i < checks.figures.size(); ++i) {
    EXPECT_LE(checks.figures[i].noticed(), kNoticed) << checks.figures[i].what;
    for (const double factor : {1.2001, 1 / 1.2001, -1.0, std::nan("")}) {
      Checks planted = checks;
      planted.figures[i] = checks.figures[i].planted(factor);
      EXPECT_THAT(trouble_of(planted), ::testing::HasSubstr(checks.figures[i].what)) << factor;
    }
  }
  for (std::size_t i = 0; i < checks.conditions.size(); ++i) {
    Checks planted = checks;
    planted.conditions[i].holds = false;
    EXPECT_EQ(trouble_of(planted), checks.conditions[i].what);
  }
  for (std::size_t i = 0; i < checks.controls.size(); ++i) {
    Checks planted = checks;
    planted.controls[i].value = planted.controls[i].expected;
    EXPECT_THAT(trouble_of(planted), ::testing::HasSubstr("the check cannot fail"));
  }
}

}  // namespace esscher::paper
