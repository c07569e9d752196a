// `esscher scaling` as scripts and people see it.
#include <gmock/gmock.h>

#include <algorithm>

#include "esscher/base/number_text.h"
#include "tests/cli/program.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

// The document of the issue that asked for it, and a text with each number beside its prediction.
TEST_F(Program, ScalingHasExactNumbersBesidePredictions) {
  const std::string command =
      "scaling --schedule sqrt-log --c 2 --lengths 1e2,1e4,1e12 --draws 101";
  const Json rows = run(command + " --json").json().at("rows");
  ASSERT_EQ(rows.size(), 3u);
  const std::string text = run(command).out;
  for (const Json& row : rows) {
    for (const char* key : {"L", "schedule", "factor", "tau", "H", "H_median", "ess", "shrink",
                            "entropy", "needle", "phase", "predicted_H"}) {
      EXPECT_FALSE(row.at(key).is_null()) << key;
    }
    for (const char* key :
         {"H", "crossover_H", "predicted_H", "ess", "entropy", "crossover_entropy", "needle",
          "crossover_needle", "error", "crossover_error"}) {
      EXPECT_THAT(text, HasSubstr(" " + brief(row.at(key).get<double>()))) << key;
    }
    EXPECT_EQ(row.at("phase"), "frozen");
  }
}

// Factors go through a file: they keep under --schedule table what they promised.
TEST_F(Program, KeptFactorsAreATableThatSchedulesRead) {
  const std::string table = file("factors.csv").string();
  const Json kept = run("scaling --keep ess --train 1000 --tau 1.5 --lengths 4000,1e6 --json "
                        "--write-table " +
                        table)
                        .json();
  const Json rows = run("scaling --schedule table --table " + table +
                        " --tau 1.5 --lengths 4000,1e6 --json --draws 0")
                        .json()
                        .at("rows");
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const double target = kept.at("rows")[i].at("target");
    EXPECT_NEAR(rows[i].at("ess").get<double>() / target, 1, 1e-6);
  }
  EXPECT_EQ(kept.at("families").size(), 8u);
}

TEST_F(Program, TokenLawsMakeARunThatResumes) {
  for (const std::string preset : {"chen-2510.05554", "bruno-2605.08505"}) {
    const std::string command = "scaling --preset " + preset +
                                " --set tokens.lengths=[100,10000] --json --quiet --out " +
                                file(preset).string();
    const Outcome got = run(command);
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(got.json().at("rows").size(), 14u);
    EXPECT_TRUE(std::filesystem::exists(file(preset) / "report.html"));
    EXPECT_EQ(run(command).out, got.out);
  }
  EXPECT_THAT(run("scaling --set tokens.kind=sphere --set tokens.kappa=[]").err,
              HasSubstr("tokens.kappa"));
}

}  // namespace
}  // namespace esscher
