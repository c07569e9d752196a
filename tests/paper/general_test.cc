// The verdicts of `paper --which general`, from numbers alone.
#include "esscher/paper/general.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paper/can_fail.h"

namespace esscher::paper {
namespace {

GeneralNumbers good(const std::string& key) {
  const std::string what = "general " + key;
  GeneralNumbers n{.name = key,
                   .key = key,
                   .risk = independent(what + " risk", 0, 0).value,
                   .start = 1e-12,
                   .linear = 0.1,
                   .length = independent(what + " length", kGeneralEps, 0).value};
  for (const std::int64_t L : {10L, 100L, 1000L, 1000000L, 1000000000L}) {
    n.at.push_back({L, independent(what + " sup", 0, L).value, 0});
  }
  return n;
}

std::vector<GeneralNumbers> all_good() {
  std::vector<GeneralNumbers> out;
  for (const char* key : {"pool", "two classes", "coin features", "uniform features"}) {
    out.push_back(good(key));
  }
  out.push_back(good("tanh labels"));
  out.back().exponent = 0.496;
  return out;
}

TEST(GeneralVerdicts, EachFigureCanFail) {
  expect_each_figure_can_fail(general_checks(all_good()));
  EXPECT_EQ(judge_general(all_good()).status, VerdictStatus::holds);
}

TEST(GeneralVerdicts, SayWhatIsWrong) {
  EXPECT_EQ(judge_general({}).status, VerdictStatus::fails);
  std::vector<GeneralNumbers> n = all_good();
  n[1].length = *n[1].length + 1;
  EXPECT_THAT(judge_general(n).text, ::testing::HasSubstr("L(ε), two classes"));
  n = all_good();
  n.back().exponent = 1;
  EXPECT_THAT(judge_general(n).text, ::testing::HasSubstr("the exponent of the largest gap, tanh"));
  n = all_good();
  n[0].at.resize(1);
  EXPECT_THAT(judge_general(n).text, ::testing::HasSubstr("fewer than two lengths"));
}

}  // namespace
}  // namespace esscher::paper
