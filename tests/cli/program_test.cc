// The program as scripts see it: exit codes, what is on stdout and stderr, the documents of --json.
#include "tests/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/io/npy.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kGaussian = R"(
[measure]
type = "gaussian"
mean = [1.0, 0.0]
cov = [[2.0, 0.5], [0.5, 1.0]]
[attention]
U = [[0.5, 0.0], [0.1, 0.3]]
V = [[1.0, 2.0]]
[query]
points = [[1.0, -1.0], [0.0, 0.0]]
)";

TEST_F(Program, LimitIsTheClosedForm) {
  const Outcome got = run("limit --json " + config(kGaussian));
  ASSERT_EQ(got.code, 0) << got.err;
  const Json row = got.json().at("rows").at(0);
  // a = U z = (0.5, -0.2); m_a = m + G a = (1.9, 0.05); T = V m_a; tau2 = a'Ga; Lambda = a'm +
  // tau2/2.
  EXPECT_TRUE(testing::close(row.at("output").at(0).get<double>(), 2.0, 1e-14));
  EXPECT_TRUE(testing::close(row.at("tilted_mean").at(1).get<double>(), 0.05, 1e-13));
  EXPECT_TRUE(testing::close(row.at("tau2").get<double>(), 0.44, 1e-14));
  EXPECT_TRUE(testing::close(row.at("log_mgf").get<double>(), 0.72, 1e-14));
  // Second moment [[3, .5], [.5, 1]]: S a = (1.4, 0.05).
  EXPECT_TRUE(testing::close(row.at("output_linear").at(0).get<double>(), 1.5, 1e-14));
  EXPECT_EQ(row.at("tilted_cov").at(0).at(1), 0.5);
  EXPECT_FALSE(row.contains("effective_sample_size"));
  EXPECT_EQ(got.json().at("rows").at(1).at("output").at(0), 1.0);
}

TEST_F(Program, SetOverridesAndDerivativesAreGiven) {
  const Outcome got =
      run("limit --json --quiet --derivatives --set 'query.points=[[2,0]]' " + config(kGaussian));
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_THAT(got.err, IsEmpty());
  const Json row = got.json().at("rows").at(0);
  // V C_a U = (3, 2.5) U.
  EXPECT_TRUE(testing::close(row.at("jacobian_z").at(0).at(0).get<double>(), 1.75, 1e-14));
  EXPECT_TRUE(testing::close(row.at("jacobian_z").at(0).at(1).get<double>(), 0.75, 1e-14));
  EXPECT_EQ(row.at("jacobian_U").at(0).size(), 4U);
}

// N((2,0), I): S = diag(5,1). Tokens +-(1,2): S = [[1,2],[2,4]].
TEST_F(Program, DerivativesOfLinearAttentionAreItsOwn) {
  const Outcome limit =
      run("limit --json --derivatives --set measure.type=gaussian --set 'measure.mean=[2,0]' "
          "--set measure.dim=2 --set 'query.z=[1,0.5]' --set attention.kind=linear");
  ASSERT_EQ(limit.code, 0) << limit.err;
  const Json row = limit.json().at("rows").at(0);
  EXPECT_EQ(row.at("output"), Json({5.0, 0.5}));
  EXPECT_EQ(row.at("jacobian_z"), Json({{5.0, 0.0}, {0.0, 1.0}}));
  EXPECT_EQ(row.at("jacobian_U"), Json({{5.0, 2.5, 0.0, 0.0}, {0.0, 0.0, 1.0, 0.5}}));
  EXPECT_EQ(row.at("jacobian_V"), Json({{5.0, 0.5, 0.0, 0.0}, {0.0, 0.0, 5.0, 0.5}}));
  write_npy(file("pair.npy"), (Matrix(2, 2) << 1, 2, -1, -2).finished());
  const Outcome attend =
      run("attend --json --derivatives --set attention.kind=linear --set "
          "'query.z=[1,1]' --tokens " +
          file("pair.npy").string());
  ASSERT_EQ(attend.code, 0) << attend.err;
  const Json prompt = attend.json().at("rows").at(0);
  EXPECT_EQ(prompt.at("output"), Json({3.0, 6.0}));
  EXPECT_EQ(prompt.at("jacobian_z"), Json({{1.0, 2.0}, {2.0, 4.0}}));
  EXPECT_EQ(prompt.at("jacobian_V").at(0), Json({3.0, 6.0, 0.0, 0.0}));
}

TEST_F(Program, PeopleGetATableAndScriptsOneDocument) {
  const Outcome people = run("limit " + config(kGaussian));
  EXPECT_EQ(people.code, 0);
  EXPECT_THAT(people.out, HasSubstr("tau2"));
  EXPECT_THAT(people.err, IsEmpty());
  const Outcome scripts = run("limit --json " + config(kGaussian));
  EXPECT_THAT(scripts.err, IsEmpty());
  EXPECT_TRUE(scripts.json().contains("rows"));
}

TEST_F(Program, NestedMeasures) {
  const Outcome got = run("limit --json --set 'query.z=[0.3]' " + config(R"(
[measure]
type = "mixture"
weights = [1, 1]
[[measure.parts]]
type = "affine"
shift = [1.0]
[[measure.parts.parts]]
type = "rademacher"
dim = 1
[[measure.parts]]
type = "gaussian"
cov = { kind = "diagonal", values = [2.0] }
)"));
  ASSERT_EQ(got.code, 0) << got.err;
  const double mgf = (0.5 + 0.5 * std::exp(0.6)) / 2 + std::exp(0.09) / 2;
  EXPECT_TRUE(testing::close(got.json().at("rows").at(0).at("log_mgf").get<double>(), std::log(mgf),
                             1e-13));
}

TEST_F(Program, AttendComparesTokensWithTheirGaussian) {
  write_npy(file("tokens.npy"), (Matrix(4, 1) << -1, 1, 2, 2).finished());
  const Outcome got =
      run("attend --json --set 'query.z=[1]' --tokens " + file("tokens.npy").string());
  ASSERT_EQ(got.code, 0) << got.err;
  const Json row = got.json().at("rows").at(0);
  const double e1 = std::exp(-1.0), e2 = std::exp(1.0), e3 = std::exp(2.0);
  const double sum = e1 + e2 + 2 * e3;
  const double output = (-e1 + e2 + 4 * e3) / sum;
  EXPECT_TRUE(testing::close(row.at("output").at(0).get<double>(), output, 1e-14));
  EXPECT_TRUE(testing::close(row.at("limit").at("output").at(0).get<double>(), 1 + 1.5, 1e-14));
  EXPECT_TRUE(testing::close(row.at("error").get<double>(), 2.5 - output, 1e-13));
  EXPECT_TRUE(testing::close(row.at("effective_sample_size").get<double>(),
                             sum * sum / (e1 * e1 + e2 * e2 + 2 * e3 * e3), 1e-13));
  const Outcome other =
      run("attend --json --set 'query.z=[1]' --set reference.type=rademacher --set reference.dim=1 "
          "--tokens " +
          file("tokens.npy").string());
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(
      testing::close(other.json().at("rows").at(0).at("limit").at("output").at(0).get<double>(),
                     std::tanh(1.0), 1e-14));
}

TEST_F(Program, Universal) {
  const Outcome got = run("universal --length 100 --tau 1 --json");
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_TRUE(testing::close(got.json().at("M1").get<double>(), 0.97446152, 1e-8));
  EXPECT_TRUE(testing::close(got.json().at("H").get<double>(), 0.02553848, 1e-6));
  EXPECT_EQ(run("universal --length inf --tau 2 --json").json().at("M1"), 4.0);
  EXPECT_EQ(run("universal --length 0 --tau 2").code, 2);
  EXPECT_EQ(run("universal --length 10 --tau -1").code, 2);
  EXPECT_EQ(run("universal --length 10 --tau x").code, 2);
}

TEST_F(Program, HelpOfAVerbAndItsTemplate) {
  EXPECT_EQ(run("help length").out, run("length --help").out);
  EXPECT_EQ(run("help").out, run("--help").out);
  const Outcome made = run("config concentration");
  EXPECT_EQ(made.code, 0);
  write_text(file("exp.toml"), made.out);
  const std::string study = "concentration -c " + file("exp.toml").string() +
                            " -s sweep.lengths=[10] -o " + file("run").string();
  const Outcome first = run(study);
  EXPECT_EQ(first.code, 0) << first.err;
  const std::string last = "report: " + file("run/report.html").string() + "\n";
  EXPECT_TRUE(first.out.ends_with(last)) << first.out;
  EXPECT_TRUE(parse_json("schema", run("config --schema").out).contains("$defs"));
}

TEST_F(Program, BadConfigurationIsExitTwoWithPathAndValue) {
  struct Case {
    const char* set;
    const char* says;
  };
  for (const Case& bad : {
           Case{"measure.maen=3", "unknown key measure.maen"},
           Case{"mesure.dim=3", "unknown key mesure"},
           Case{"measure.type=gausian", "measure.type is \"gausian\", expected one of"},
           Case{"measure.mean=3", "measure.mean is 3, expected an array"},
           Case{"measure.mean=[1,nan]", "measure.mean[1] is nan"},
           Case{"measure.mean=[1,2,3]", "measure.cov: shape is [2,2], expected [3,3]"},
           Case{"measure.cov=-1",
                "measure.cov: covariance: matrix is not a covariance: its smallest eigenvalue is "
                "-1,"},
           Case{"measure.cov=[[1,2],[2,1]]", "its smallest eigenvalue is -1, expected"},
           Case{"measure.cov=[[1,0],[1,1]]", "symmetric"},
           Case{"measure.cov={kind=\"kcm\"}", "measure.cov.rho is missing"},
           Case{"measure.cov={kind=\"file\",path=\"none.npy\"}", "none.npy"},
           Case{"attention.U=[[1,0]]", "attention.U: shape is [1,2], expected [2,2]"},
           Case{"attention.K=1", "attention.U"},
           Case{"query.points=[[1,2,3]]", "query.points: dimension is 3, expected 2"},
           Case{"query.z=[1,2]", "a measure with its type; given were points and z"},
           Case{"measure", "expected key.path=value"},
       }) {
    const Outcome got = run("limit --json --out " + file("out").string() + " --set '" + bad.set +
                            "' " + config(kGaussian));
    EXPECT_EQ(got.code, 2) << bad.set;
    EXPECT_THAT(got.err, HasSubstr(bad.says)) << bad.set;
    EXPECT_THAT(got.out, IsEmpty()) << bad.set;
    EXPECT_FALSE(std::filesystem::exists(file("out"))) << bad.set;
  }
}

TEST_F(Program, BadInputFilesAreExitTwo) {
  write_text(file("bad.csv"), "1,2\n3,nan\n");
  const Outcome got = run("attend --set 'query.z=[1,2]' --tokens " + file("bad.csv").string());
  EXPECT_EQ(got.code, 2);
  EXPECT_THAT(got.err, HasSubstr("bad.csv:2: column 2 is \"nan\""));
  EXPECT_EQ(run("attend --set 'query.z=[1]' --tokens none.npy").code, 2);
  EXPECT_EQ(run("limit --config none.toml").code, 2);
}

TEST_F(Program, OutsideTheDomainIsExitTwo) {
  const Outcome got =
      run("limit --set measure.type=laplace --set measure.dim=1 --set 'query.z=[2]'");
  EXPECT_EQ(got.code, 2);
  EXPECT_THAT(got.out, IsEmpty());
}

TEST_F(Program, TheWorstQueryOfABall) {
  const std::string law = " --set measure.type=gaussian --set measure.dim=1 --set attention.U=0.5";
  const Outcome got =
      run("concentration --metric sup --radius 1 --json --quiet --set "
          "'sweep.lengths=[10,40]' --set sweep.replicates=5" +
          law);
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json().at("rows").size(), 2U);
  EXPECT_GT(got.json().at("rows")[0].at("value").get<double>(), 0);
  EXPECT_THAT(run("concentration --metric sup" + law).err, HasSubstr("needs --radius"));
  EXPECT_THAT(run("concentration --radius 1" + law).err, HasSubstr("--metric sup"));
  EXPECT_THAT(run("concentration --metric sup --radius 1 --set 'query.z=[1]'" + law).err,
              HasSubstr("leave [query] away"));
}

TEST_F(Program, DependentTokensAreSimulatedAndSayKappa) {
  const std::string law =
      " --set measure.type=stationary --set measure.ar=0.5 --set measure.of.type=gaussian --set "
      "measure.of.dim=1 --set attention.U=0.5 --set 'query.z=[1]' --set 'sweep.lengths=[20,40]' "
      "--set 'sweep.metrics=[\"output\"]' --json --quiet";
  const Outcome got = run("concentration" + law);
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_GT(got.json().at("regime").at("kappa").get<double>(), 2);
  EXPECT_EQ(got.json().at("rows")[0].at("engine"), "direct");
  EXPECT_THAT(run("concentration --set sweep.engine=exact" + law).err,
              HasSubstr("depend on each other"));
}

TEST_F(Program, UsageAndHelp) {
  EXPECT_EQ(run("").code, 2);
  EXPECT_EQ(run("no-such-verb").code, 2);
  EXPECT_EQ(run("limit --no-such-option").code, 2);
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_THAT(run("limit --help").out, HasSubstr("Examples:"));
  EXPECT_THAT(run("--version").out, HasSubstr("esscher 0."));
  EXPECT_GE(run("targets --json").json().at("targets").size(), 1U);
}

TEST_F(Program, OutWritesTheDocument) {
  const Outcome got = run("limit --json --out " + file("out").string() + " " + config(kGaussian));
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(read_text(file("out") / "limit.json"), got.out);
}

TEST_F(Program, ClosedOrFullStdoutIsExitOne) {
  EXPECT_EQ(run("targets", " >&-").code, 1);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(run("targets", " >/dev/full").code, 1);
  }
}

TEST_F(Program, QueriesFromAMeasureDependOnTheSeedOnly) {
  const std::string arguments =
      "limit --json --quiet --set measure.type=sphere --set measure.dim=2 --set "
      "query.type=gaussian --set query.dim=2 --queries 3 ";
  const Outcome one = run(arguments + "--seed 1 --threads 1");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.json().at("rows").size(), 3U);
  EXPECT_EQ(one.out, run(arguments + "--seed 1 --threads 2").out);
  EXPECT_NE(one.out, run(arguments + "--seed 2").out);
}

TEST_F(Program, AttendBesideAFittedMixture) {
  const std::string tokens =
      "--set measure.type=empirical --set 'measure.tokens=[[-2,0],[-2.2,0.1],[-1.9,-0.2],[2,0.3],"
      "[2.1,0],[1.8,0.1]]' --set attention.U=1.0 --set query.z=[1,0.5] --json ";
  const Outcome got = run("attend --reference mixture-fit --components 2 " + tokens);
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json().at("limit").at("origin"), "mixture-fit");
  // One component is the Gaussian but for the floor of its covariance; two are much nearer to the prompt.
  const auto error = [&](const std::string& options) {
    return run("attend " + options + tokens).json().at("error").get<double>();
  };
  EXPECT_LT(got.json().at("error").get<double>(), 0.1);
  EXPECT_GT(error(""), 1);
  EXPECT_NEAR(error("--reference mixture-fit --components 1 "), error(""), 0.1);
  const Outcome weighted =
      run("attend --reference mixture-fit --set 'measure.weights=[1,1,1,1,1,2]' " + tokens);
  EXPECT_EQ(weighted.code, 2);
  EXPECT_THAT(weighted.err, HasSubstr("mixture-fit: the tokens have weights, expected equal ones"));
}

// The page is made by scripts/explorer; a program without it says so and writes nothing.
TEST_F(Program, ExploreWritesThePageOrSaysHowToBuildIt) {
  const std::filesystem::path built = testing::binary_dir() + "/../explore/explore.html";
  const Outcome got = run("explore --json --page " + file("page.html").string());
  if (std::filesystem::exists(built)) {
    ASSERT_EQ(got.code, 0) << got.err;
    EXPECT_EQ(read_text(file("page.html")), read_text(built));
    EXPECT_EQ(got.json().at("bytes"), std::filesystem::file_size(built));
  } else {
    EXPECT_EQ(got.code, 2);
    EXPECT_THAT(got.err, HasSubstr("scripts/explorer builds it"));
    EXPECT_FALSE(std::filesystem::exists(file("page.html")));
  }
}

}  // namespace
}  // namespace esscher
