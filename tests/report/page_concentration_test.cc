#include "esscher/report/page_concentration.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/measure/gaussian.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Problem line(double scale) {
  const Matrix one = Matrix::Ones(1, 1);
  return {Gaussian(one), Attention::from_uv(scale * one, one), AnyMeasure(Gaussian(one))};
}

const StudyOptions kSweep{.lengths = {10, 100, 1000, 10000, 100000}};

const Section& section(const Page& page, const std::string& id) {
  for (const Section& s : page.sections) {
    if (s.id == id) return s;
  }
  throw ArgumentError("no section " + id);
}

std::string caption(const Page& page, const std::string& id) {
  return section(page, id).figures.at(0).caption;
}

TEST(ConcentrationPage, SaysWhichRegimeAndNothingAboutAnAsymptoteThatIsNotThere) {
  const Page below = concentration_page(study(line(0.5), kSweep), {}, {});
  EXPECT_THAT(caption(below, "curve"), HasSubstr("constant/L"));
  EXPECT_THAT(caption(below, "curve"), HasSubstr("L = 1e+05 the curves lie between "));
  EXPECT_THAT(section(below, "curve").text, HasSubstr("λ = 0.25"));
  const Page above = concentration_page(study(line(0.9), kSweep), {}, {});
  EXPECT_THAT(caption(above, "curve"), Not(HasSubstr("Dashed")));
  EXPECT_THAT(section(above, "curve").text, HasSubstr("γ = 0.7184"));
  EXPECT_THAT(caption(above, "queries"), HasSubstr("--quantile"));
}

// A metric that the proposition does not speak of may cross its bound: it is not in the figure.
TEST(ConcentrationPage, TheBoundIsDrawnAgainstItsOwnMetrics) {
  const Problem problem = line(0.5);
  const StudyResult result = study(problem, kSweep);
  const auto metrics = [&](Proposition p) {
    const Page page = concentration_page(result, {}, check_bound(p, problem, result, 1));
    std::set<std::string> names;
    for (const char* data : {"bounded", "bound"}) {
      const Sheet& sheet = page.datasets.at(data);
      EXPECT_EQ(sheet.columns.at(1), "metric");
      for (const Record& row : sheet.rows) names.insert(std::get<std::string>(row.at(1)));
    }
    return names;
  };
  EXPECT_EQ(metrics(Proposition::prop31), (std::set<std::string>{"output"}));
  EXPECT_EQ(metrics(Proposition::prop34),
            (std::set<std::string>{"gradient in U", "gradient in V"}));
}

// ESS, bias, shrink and frozen fraction of every length of the first metric.
TEST(ConcentrationPage, TheTableSaysWhy) {
  const StudyResult result = study(line(0.5), kSweep);
  const Page page = concentration_page(result, {}, {});
  EXPECT_THAT(caption(page, "why"),
              HasSubstr("L = 1e+05 the curves are at " + brief(result.rows[4].bias2, 3) +
                        " (bias) and " + brief(result.rows[4].variance, 3) + " (variance)."));
  const Sheet& table = section(page, "why").tables.at(0).sheet;
  ASSERT_EQ(table.rows.size(), kSweep.lengths.size());
  const Record& row = table.rows.at(2);
  EXPECT_EQ(std::get<std::int64_t>(row.at(0)), 1000);
  EXPECT_EQ(std::get<std::string>(row.at(2)), brief(result.rows[2].ess));
  EXPECT_EQ(std::get<std::string>(row.at(4)), brief(1 - 1 / result.rows[2].ess));
}

// Verdicts and advice are functions of numbers.
TEST(ConcentrationPage, VerdictsNeedNoPage) {
  EXPECT_EQ(page_verdict({BoundStatus::holds, "a"}), (Verdict{VerdictStatus::holds_fitted, "A."}));
  EXPECT_EQ(page_verdict({BoundStatus::fails, "b"}), (Verdict{VerdictStatus::fails, "B."}));
  EXPECT_EQ(page_verdict({BoundStatus::no_fit, "c"}), (Verdict{VerdictStatus::info, "C."}));
  EXPECT_THAT(std::string(curve_advice(true)), HasSubstr("cannot be trusted"));
  EXPECT_THAT(std::string(curve_advice(false)), HasSubstr("--eps"));
  EXPECT_THAT(std::string(query_advice(0.31)), HasSubstr("--quantile"));
  EXPECT_THAT(std::string(query_advice(0.3)), HasSubstr("--eps"));
}

TEST(ConcentrationPage, TheWorstQueriesAreCounted) {
  Vector values = Vector::Ones(42);  // 40 that count, of which the worst 5 % are two
  values[3] = 10;
  values[5] = 0;
  values[7] = std::nan("");
  const QueryShare share = query_share(values);
  EXPECT_EQ(share.errors.size(), 40u);
  EXPECT_DOUBLE_EQ(share.worst, 11.0 / 49);
  EXPECT_TRUE(query_share(Vector()).errors.empty());
}

}  // namespace
}  // namespace esscher
