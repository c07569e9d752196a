// `esscher concentration` and `esscher length` as scripts see them.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

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

// 1 % as a root is 0.01 % as a square: the two questions have one answer, and each says both.
TEST_F(Concentration, LengthByTheRootMeanSquare) {
  ASSERT_EQ(run(std::string("length --json --quiet --error 5% ") + kLayer), 0) << last_.err;
  const Json by_root = last_.json();
  ASSERT_EQ(run(std::string("length --json --quiet --eps 0.0025 --relative ") + kLayer), 0);
  const Json by_square = last_.json();
  EXPECT_EQ(by_root["length"], by_square["length"]);
  EXPECT_EQ(by_root["error"], 0.05);
  EXPECT_TRUE(by_square["error"].is_null());
  const double value = by_root["value"].get<double>();
  // |X|^2 = 0.81^2 z^2, on average 0.6561.
  EXPECT_TRUE(testing::close(by_root["limit_mean_square"].get<double>(), 0.6561, 1e-12));
  EXPECT_TRUE(testing::close(by_root["rms"].get<double>(), std::sqrt(value), 1e-15));
  EXPECT_TRUE(testing::close(by_root["relative_value"].get<double>(), value / 0.6561, 1e-12));
  EXPECT_LE(by_root["relative_rms"].get<double>(), 0.05);
  ASSERT_EQ(run(std::string("length --error 5% ") + kLayer), 0) << last_.err;
  EXPECT_THAT(last_.out, ContainsRegex("relative root mean square = 4.99[0-9]* % <= error = 5 % < "
                                       "5.0[0-9]* % at L-1"));
  EXPECT_THAT(last_.out, HasSubstr("0.25 % of the squared size of the limit"));
  EXPECT_THAT(last_.out, HasSubstr("5 % of the size of the limit"));
  // The digits show what was certified.
  ASSERT_EQ(run(std::string("length --eps 1e-4 ") + kLayer), 0) << last_.err;
  EXPECT_THAT(last_.out, ContainsRegex("D\\(L\\) = 9.9999[0-9]*e-05 <= eps = 0.0001 < 0.00010000"));
  ASSERT_EQ(run(std::string("length --eps 1e-30 ") + kLayer), 0) << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("not up to L = 1e15"));
}

TEST_F(Concentration, LengthAsksOneQuestion) {
  struct Case {
    const char* arguments;
    const char* says;
  };
  for (const Case& bad : {
           Case{"", "neither --eps nor --error given, expected one of them"},
           Case{"--eps 1 --error 1%", "--eps and --error both given, expected one of them"},
           Case{"--error 1% --relative", "--relative belongs to --eps"},
           Case{"--error one", "--error is 'one', expected a fraction of the limit > 0"},
           Case{"--error 1%%", "--error is '1%%'"},
           Case{"--error=-1%", "--error is '-1%'"},
           Case{"--error 1% --tokens none.npy", "measure: given beside --tokens"},
       }) {
    EXPECT_EQ(run(std::string("length ") + bad.arguments + " " + kLayer), 2) << bad.arguments;
    EXPECT_THAT(last_.err, HasSubstr(bad.says)) << bad.arguments;
    EXPECT_EQ(last_.out, "") << bad.arguments;
  }
}

// Tokens of a file are [measure] type = "empirical".
TEST_F(Concentration, TokensOfAFile) {
  write_text(file("tokens.csv"), "1,0\n0,1\n-1,0.5\n");
  const std::string tokens = file("tokens.csv").string();
  for (const std::string verb :
       {"length --error 60% ", "concentration -s sweep.lengths=[4,8] -s sweep.queries=8 "}) {
    const std::string rest = "--json --quiet -s sweep.replicates=2 -s attention.U=0.2 ";
    ASSERT_EQ(run(verb + rest + "--tokens " + tokens), 0) << last_.err;
    const std::string by_option = last_.out;
    ASSERT_EQ(run(verb + rest + "-s measure.type=empirical -s 'measure.file=\"" + tokens + "\"'"),
              0)
        << last_.err;
    EXPECT_EQ(by_option, last_.out);
  }
}

// What a person reads first, and a table without columns that hold nothing.
TEST_F(Concentration, SummaryComesFirst) {
  ASSERT_EQ(run("concentration --set measure.type=gaussian --set measure.dim=1 --set "
                "measure.cov=0.25 --set 'sweep.lengths=[10,1000,1000000]'"),
            0)
      << last_.err;
  const std::string exact = last_.out;
  EXPECT_EQ(exact.find("engine    "), 0u);
  EXPECT_LT(exact.find("regime    lambda < 1/2"), exact.find("rms %"));
  EXPECT_THAT(exact, HasSubstr("constant  output 0.5303, grad_v 0.5303"));
  EXPECT_THAT(exact, HasSubstr("output: 0.9386 at L = 100, "));
  EXPECT_THAT(exact, HasSubstr("its limit is 1\n"));
  EXPECT_THAT(exact, HasSubstr("for 1 %   L = 84153, certified"));
  EXPECT_THAT(exact, Not(HasSubstr("95 %")));
  EXPECT_THAT(exact, Not(HasSubstr("Akaike")));
  EXPECT_EQ(exact.find("tokens that a query effectively averages over"),
            exact.rfind("tokens that a query effectively averages over"));
  ASSERT_EQ(run("concentration --set measure.type=rademacher --set measure.dim=1 --set "
                "'sweep.lengths=[10,20,40]' --set sweep.queries=40"),
            0)
      << last_.err;
  EXPECT_THAT(last_.out, HasSubstr("95 % interval"));
  EXPECT_THAT(last_.out, Not(HasSubstr("shrink")));
  EXPECT_THAT(last_.out, Not(HasSubstr("frozen")));
}

// Numbers without noise have no interval and no weights; scripts find null where they looked.
TEST_F(Concentration, NoIntervalWithoutNoise) {
  const std::string grid = "--set 'sweep.lengths=[10,20,40,80,160]' ";
  ASSERT_EQ(run("concentration --json --quiet " + grid + kLayer), 0) << last_.err;
  const Json fit = last_.json()["fits"][0];
  EXPECT_EQ(fit["noise"], "none");
  EXPECT_TRUE(fit["ci"].is_null());
  EXPECT_TRUE(fit["std_error"].is_null());
  EXPECT_EQ(fit["shapes"].size(), 0u);
  EXPECT_EQ(fit["first_exponent"], fit["local"][0]["exponent"]);
  EXPECT_EQ(fit["last_exponent"], fit["local"][3]["exponent"]);
  EXPECT_EQ(fit["limit_exponent"], last_.json()["regime"]["gamma"]);
  ASSERT_EQ(run("concentration --json --quiet --set sweep.engine=sampled --set sweep.queries=64 " +
                grid + kLayer),
            0)
      << last_.err;
  const Json sampled = last_.json()["fits"][0];
  EXPECT_EQ(sampled["noise"], "sampled");
  EXPECT_EQ(sampled["ci"].size(), 2u);
  EXPECT_EQ(sampled["shapes"].size(), 3u);
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
