#include "esscher/report/page_flow.h"

#include <gtest/gtest.h>

#include "esscher/report/page_training.h"

namespace esscher {
namespace {

TEST(FlowPage, LimitVerdictJudgesNumbers) {
  EXPECT_EQ(limit_verdict(FlowStatus::stationary, 1e-9).status, VerdictStatus::holds);
  EXPECT_EQ(limit_verdict(FlowStatus::stationary, 1e-3).status, VerdictStatus::fails);
  EXPECT_EQ(limit_verdict(FlowStatus::t_end, 1e-9).status, VerdictStatus::info);
  EXPECT_NE(limit_verdict(FlowStatus::stationary, 1e-3).text.find("0.001"), std::string::npos);
}

TEST(TrainingPage, BayesLinesMergeWhereLabelsWouldOverlap) {
  const auto rows = [](double here, double limit) {
    return std::vector<RiskRow>{{.L = Length(10), .model = "softmax", .risk = 1},
                                {.L = Length(10), .model = "bayes", .risk = here},
                                {.L = Length::infinity(), .model = "bayes", .risk = limit}};
  };
  EXPECT_EQ(bayes_lines(rows(0.5, 0.1)).size(), 2U);
  ASSERT_EQ(bayes_lines(rows(0.11, 0.1)).size(), 1U);
  EXPECT_EQ(bayes_lines(rows(0.11, 0.1))[0].value, 0.11);
  EXPECT_EQ(bayes_lines(rows(0.5, 0)).size(), 1U);  // a log axis has no place for 0
}

}  // namespace
}  // namespace esscher
