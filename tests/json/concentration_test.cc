#include "esscher/json/concentration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "esscher/json/rows.h"
#include "tests/concentration/problems.h"

namespace esscher {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What a cell computed is what a store gives back, to the last bit, infinity and NaN included.
TEST(ConcentrationJson, RowsOfCellsSurviveTheStore) {
  const std::vector<PointRow> rows = {
      {.L = 10, .value = 0.1, .asymptotic = HUGE_VAL, .ess = 3.5, .bias2 = kNaN, .frozen = -0.0},
      {.L = 20,
       .metric = Metric::grad_q,
       .query = 7,
       .value = kNaN,
       .std_error = 1e-300,
       .engine = Engine::sampled,
       .weights2 = 0.3,
       .cov = std::vector<double>{1.0 / 3, -HUGE_VAL, 5e-324}}};
  const std::string text = rows_text(table_of(std::span<const PointRow>(rows)));
  const auto back = rows_of<PointRow>("test", parse_rows("test", columns_of<PointRow>(), text));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(std::isinf(back[0].asymptotic));
  EXPECT_TRUE(std::isnan(back[0].bias2));
  EXPECT_EQ(back[0].ess, 3.5);
  EXPECT_FALSE(back[0].query || back[0].weights2 || back[0].cov);
  EXPECT_TRUE(std::isnan(back[1].value));
  EXPECT_EQ(back[1].query, 7);
  EXPECT_EQ(back[1].metric, Metric::grad_q);
  EXPECT_EQ(back[1].cov, rows[1].cov);
}

TEST(ConcentrationJson, DocumentsSayWhatIsNotFinite) {
  const StudyResult r = study(testing::gaussian_problem(1, 0.9), {.lengths = {10, 100, 1000}});
  const Json document = to_json(r);
  const Json& row = document.at("rows").at(0);
  EXPECT_TRUE(row.at("asymptotic").is_null());
  EXPECT_EQ(row.at("not_finite").at("asymptotic"), "inf");
  EXPECT_EQ(row.at("bias2").get<double>(), r.rows[0].bias2);
  EXPECT_FALSE(row.contains("bias"));
  EXPECT_FALSE(row.contains("flag"));
  EXPECT_EQ(row.at("ci").at(1).get<double>(), r.rows[0].ci.hi);
  EXPECT_EQ(document.at("regime").at("not_finite").at("constant"), "inf");
  EXPECT_EQ(document.at("fits").at(0).at("local").size(), 2u);
  EXPECT_EQ(document.at("fits").at(0).at("slope").get<double>(), r.fits[0].power.slope);
}

TEST(ConcentrationJson, LengthsHaveABracketOfIntegers) {
  LengthAnswer answer{.length = 12, .status = LengthStatus::estimated, .value_before = kNaN};
  answer.bracket_lo = 10, answer.bracket_hi = 15;
  EXPECT_EQ(to_json(answer).at("bracket").dump(), "[10,15]");
  EXPECT_EQ(to_json(answer).at("status"), "estimated");
  EXPECT_EQ(to_json(answer).at("not_finite").at("value_before"), "nan");
  EXPECT_TRUE(to_json(LengthAnswer{}).at("bracket").is_null());
  EXPECT_TRUE(to_json(LengthAnswer{}).at("length").is_null());
}

TEST(ConcentrationJson, BoundsNameTheirStatus) {
  BoundReport report;
  report.fits = {{.holds = true}};
  report.verdict = bound_verdict({}, report.fits);
  const Json document = to_json(report);
  EXPECT_EQ(document.at("proposition"), "3.1");
  EXPECT_EQ(document.at("status"), "holds");
  EXPECT_TRUE(document.at("fits").at(0).at("first_violation").is_null());
}

}  // namespace
}  // namespace esscher
