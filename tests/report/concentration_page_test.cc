#include "esscher/report/concentration_page.h"

#include <gmock/gmock.h>

#include <set>

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

Json section(const Json& page, const std::string& id) {
  for (const Json& s : page.at("sections")) {
    if (s.at("id") == id) return s;
  }
  return {};
}

std::string caption(const Json& page, const std::string& id, std::size_t figure = 0) {
  return section(page, id).at("figures").at(figure).at("caption").get<std::string>();
}

TEST(ConcentrationPage, SaysWhichRegimeAndNothingAboutAnAsymptoteThatIsNotThere) {
  const Json below = concentration_page(study(line(0.5), kSweep), {}, {});
  EXPECT_THAT(caption(below, "curve"), HasSubstr("constant/L"));
  EXPECT_THAT(section(below, "curve")["text"].get<std::string>(), HasSubstr("lambda = 0.25"));
  const Json above = concentration_page(study(line(0.9), kSweep), {}, {});
  EXPECT_THAT(caption(above, "curve"), Not(HasSubstr("Dashed")));
  EXPECT_THAT(section(above, "curve")["text"].get<std::string>(), HasSubstr("gamma = 0.7184"));
  EXPECT_THAT(caption(above, "queries"), HasSubstr("--quantile"));
}

// A metric that the proposition does not speak of may cross its bound: it is not in the figure.
TEST(ConcentrationPage, TheBoundIsDrawnAgainstItsOwnMetrics) {
  const Problem problem = line(0.5);
  const StudyResult result = study(problem, kSweep);
  const auto metrics = [&](Proposition p) {
    const Json page = concentration_page(result, {}, check_bound(p, problem, result, 1));
    std::set<std::string> names;
    for (const char* data : {"bounded", "bound"}) {
      for (const Json& row : page.at("datasets").at(data)) names.insert(row.at("metric"));
    }
    return names;
  };
  EXPECT_EQ(metrics(Proposition::prop31), (std::set<std::string>{"output"}));
  EXPECT_EQ(metrics(Proposition::prop34), (std::set<std::string>{"grad_u", "grad_v"}));
}

// ESS, bias, shrink and frozen fraction of every length of the first metric.
TEST(ConcentrationPage, TheTableSaysWhy) {
  const StudyResult result = study(line(0.5), kSweep);
  const Json table = section(concentration_page(result, {}, {}), "why").at("tables").at(0);
  ASSERT_EQ(table.at("rows").size(), kSweep.lengths.size());
  const Json& row = table.at("rows").at(2);
  EXPECT_EQ(row.at(0), 1000);
  EXPECT_NEAR(std::stod(row.at(2).get<std::string>()), result.rows[2].ess, 0.5);
  EXPECT_NEAR(std::stod(row.at(4).get<std::string>()), 1 - 1 / result.rows[2].ess, 1e-3);
}

}  // namespace
}  // namespace esscher
