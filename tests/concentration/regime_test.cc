#include "esscher/concentration/regime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/testing.h"

namespace esscher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Regime, IsJudgedByLambdaWhereThereIsOne) {
  EXPECT_EQ(regime_of(0.49, HUGE_VAL), Regime::inverse);
  EXPECT_EQ(regime_of(0.5, 1.0), Regime::slow);
  EXPECT_EQ(regime_of(kNaN, 3.0), Regime::inverse_at_queries);
  EXPECT_EQ(regime_of(kNaN, HUGE_VAL), Regime::slower_somewhere);
}

TEST(Regime, TheReportKeepsWhatIsNotFinite) {
  const RegimeReport slow = regime_report(0.81, {HUGE_VAL, HUGE_VAL});
  EXPECT_TRUE(testing::close(slow.gamma, (std::sqrt(1 + 4 / 0.81) - 1) / 2, 1e-14));
  EXPECT_TRUE(std::isinf(slow.constants[1]));
  EXPECT_NE(slow.text.find("heuristic"), std::string::npos);
  const RegimeReport fast = regime_report(0.25, {2.0});
  EXPECT_EQ(fast.gamma, 1);
  EXPECT_NE(fast.text.find("closed form"), std::string::npos);
  const RegimeReport queries = regime_report(kNaN, {2.0});
  EXPECT_EQ(queries.gamma, 1);
  EXPECT_NE(queries.text.find("delta method"), std::string::npos);
  const RegimeReport none = regime_report(kNaN, {HUGE_VAL});
  EXPECT_TRUE(std::isnan(none.gamma));
  EXPECT_NE(none.text.find("slower than 1/L"), std::string::npos);
}

}  // namespace
}  // namespace esscher
