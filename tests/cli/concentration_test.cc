// `esscher concentration` and `esscher length` as scripts see them.
#include <gmock/gmock.h>

#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLayer =
    "--set measure.type=gaussian --set measure.dim=1 --set measure.cov=0.81 "
    "--set 'sweep.metrics=[\"output\"]' ";

class Concentration : public Program {
 protected:
  // Exit code; the rest of the outcome is kept.
  int run(const std::string& arguments) {
    last_ = Program::run(arguments);
    return last_.code;
  }

  Outcome last_;
};

TEST_F(Concentration, Document) {
  ASSERT_EQ(run(std::string("concentration --json ") + kLayer +
                "--set 'sweep.lengths=[10,1000,1000000,1000000000000]' --bound prop3.1 "
                "--sigma-sweep 0.5"),
            2)
      << "too few lengths in the last two decades for a sweep";
  ASSERT_EQ(run(std::string("concentration --json ") + kLayer +
                "--set 'sweep.lengths=[10,1000,1000000,1000000000000]' --bound prop3.1"),
            0)
      << last_.err;
  const Json j = last_.json();
  ASSERT_EQ(j.at("rows").size(), 4u);
  EXPECT_TRUE(testing::close(j["rows"][2]["value"].get<double>(), 7.25e-5, 1e-3));
  EXPECT_TRUE(testing::close(j["rows"][3]["value"].get<double>(), 4.94e-9, 1e-3));
  EXPECT_EQ(j["rows"][0]["engine"], "exact");
  EXPECT_EQ(j["rows"][0]["std_error"], 0.0);
  EXPECT_TRUE(j["rows"][0]["asymptotic"].is_null());
  EXPECT_TRUE(j["regime"]["constant"].is_null());
  EXPECT_TRUE(testing::close(j["regime"]["lambda"].get<double>(), 0.81, 1e-12));
  EXPECT_TRUE(testing::close(j["regime"]["gamma"].get<double>(), 0.718, 1e-3));
  EXPECT_LT(j["fits"][0]["slope"].get<double>(), -0.6);
  EXPECT_EQ(j["bound"]["hypotheses"].size(), 15u);
}

TEST_F(Concentration, RunResumesAndReports) {
  const std::string dir = file("run").string();
  const std::string study =
      std::string("concentration --json --quiet ") + kLayer +
      "--set 'sweep.lengths=[4,8,16]' --set sweep.engine=direct --set sweep.queries=40 --out " +
      dir;
  ASSERT_EQ(run(study), 0) << last_.err;
  const std::string first = last_.out;
  EXPECT_TRUE(std::filesystem::exists(file("run") / "report.html"));
  ASSERT_EQ(run(study), 0) << last_.err;
  EXPECT_EQ(last_.out, first);
  ASSERT_EQ(run(study + "2 --threads 1"), 0) << last_.err;
  EXPECT_EQ(last_.out, first) << "one thread, another folder, the same numbers";
}

TEST_F(Concentration, Length) {
  ASSERT_EQ(run(std::string("length --json --eps 1e-3 ") + kLayer), 0) << last_.err;
  const Json j = last_.json();
  EXPECT_EQ(j["status"], "certified");
  EXPECT_GT(j["length"].get<std::int64_t>(), 1000);
  EXPECT_LE(j["value"].get<double>(), 1e-3);
  EXPECT_GT(j["value_before"].get<double>(), 1e-3);
  ASSERT_EQ(run(std::string("length --json --eps 1e-30 ") + kLayer), 0) << last_.err;
  EXPECT_TRUE(last_.json()["length"].is_null());
  EXPECT_EQ(last_.json()["status"], "never");
}

TEST_F(Concentration, BadInputIsRefused) {
  EXPECT_EQ(run(std::string("length ") + kLayer), 2);
  EXPECT_EQ(run(std::string("length --eps -1 ") + kLayer), 2);
  EXPECT_EQ(run("concentration"), 2);
  EXPECT_EQ(run(std::string("concentration --bound prop9 ") + kLayer), 2);
  EXPECT_EQ(run(std::string("concentration --set sweep.lenghts=[1] ") + kLayer), 2);
  EXPECT_THAT(last_.err, HasSubstr("lenghts"));
  EXPECT_EQ(run("concentration --set measure.type=rademacher --set measure.dim=1 --set "
                "sweep.engine=exact"),
            2);
  EXPECT_THAT(last_.err, HasSubstr("direct"));
}

}  // namespace
}  // namespace esscher
