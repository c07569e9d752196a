#include "esscher/report/page_risk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace esscher {
namespace {

RiskRow row(std::optional<Length> trained, Length tested, double risk) {
  return {.L = tested, .model = trained ? "softmax" : "bayes", .risk = risk, .trained = trained};
}

std::vector<RiskRow> table() {
  return {row(Length(10), 10, 0.3),
          row({}, 10, 0.2),
          row(Length(10), Length::infinity(), 0.25),
          row({}, Length::infinity(), 0.0),
          row(Length(100), 10, 0.45),
          row(Length(100), Length::infinity(), 0.05)};
}

TEST(RiskPage, SaysWhereLengthsMatterMost) {
  const Page page = risk_page(table());
  EXPECT_EQ(page.lead,
            "Lengths matter most at L = inf: the softmax model that was trained at L = 10 has the "
            "risk 0.25 there, the one from L = 100 0.05.");
  const Page one = risk_page({table()[0], table()[1]});
  EXPECT_THAT(one.lead, ::testing::HasSubstr("at L = 10 its risk is 0.3"));
}

TEST(RiskPage, AModelWithoutALengthOfTrainingHasItsRisks) {
  const Page page =
      risk_page({row({}, 10, 0.3), row({}, 1000, 0.2), row({}, Length::infinity(), 0)});
  EXPECT_EQ(page.lead, "At L = 1000 the risk is 0.2 (Bayes).");
  EXPECT_EQ(page.datasets.at("curves").rows.size(), 2U);
  EXPECT_EQ(page.sections.at(0).tables.at(0).sheet.rows.size(), 3U);
  const Page limit = risk_page({row({}, Length::infinity(), 0.1)});
  EXPECT_EQ(limit.lead, "At L = inf the risk is 0.1 (Bayes).");
  EXPECT_TRUE(limit.sections.at(0).figures.empty());
}

// Ratios are to the smallest risk of the same length, and references are no models.
TEST(RiskPage, MapsRatiosAndDrawsFiniteLengths) {
  const Page page = risk_page(table());
  const Sheet& map = page.datasets.at("map");
  ASSERT_EQ(map.rows.size(), 4U);
  EXPECT_EQ(std::get<double>(map.rows[0].at(3)), 1);
  EXPECT_EQ(std::get<double>(map.rows[1].at(3)), 5);
  EXPECT_EQ(std::get<double>(map.rows[2].at(3)), 1.5);
  EXPECT_EQ(page.datasets.at("curves").rows.size(), 3U);
}

}  // namespace
}  // namespace esscher
