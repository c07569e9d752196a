// [prompt] and the functions of scores, as scripts see them.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <functional>

#include "esscher/io/npy.h"
#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using ::testing::HasSubstr;

class PromptProgram : public Program {};

// Two signs, a given token, the query's own token and a sink, in one dimension: all four prompts.
constexpr double kZ = 0.7, kGiven = 0.5, kSink = 0.2, kU = 1.3;
constexpr const char* kSigns = R"(
[attention]
U = 1.3
[query]
z = [0.7]
[prompt]
given = [[0.5]]
include_query = true
sink_logits = [0.2]
[[prompt.groups]]
measure = { type = "rademacher", dim = 1 }
count = 2
name = "signs"
)";

struct Brute {
  double output = 0, square = 0, weights2 = 0;
  std::array<double, 4> weights = {};  // given, signs, self, sink
};

Brute all_prompts() {
  Brute out;
  const double a = kU * kZ;
  for (const double x : {-1.0, 1.0}) {
    for (const double y : {-1.0, 1.0}) {
      const std::array<double, 5> token{kGiven, x, y, kZ, 0};
      const std::array<std::size_t, 5> part{0, 1, 1, 2, 3};
      std::array<double, 5> w{};
      double sum = 0, T = 0;
      for (std::size_t i = 0; i < 5; ++i) sum += w[i] = std::exp(i < 4 ? a * token[i] : kSink);
      for (std::size_t i = 0; i < 5; ++i) {
        w[i] /= sum;
        T += w[i] * token[i];
        out.weights2 += w[i] * w[i] / 4;
        out.weights[part[i]] += w[i] / 4;
      }
      out.output += T / 4;
      out.square += T * T / 4;
    }
  }
  return out;
}

const std::array<std::string, 4> kNames{"given:0", "signs", "self", "sink:0"};

void expect_weights(const Json& weights, const std::array<double, 4>& want, double tolerance) {
  ASSERT_EQ(weights.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(weights[k].at("group"), kNames[k]);
    EXPECT_TRUE(close(weights[k].at("mean").get<double>(), want[k], tolerance)) << kNames[k];
  }
}

TEST_F(PromptProgram, AttendAveragesOverGroupsAsEnumerationDoes) {
  const Outcome got = run("attend --json " + config(kSigns));
  ASSERT_EQ(got.code, 0) << got.err;
  const Brute want = all_prompts();
  EXPECT_EQ(got.json().at("engine"), "exact");
  EXPECT_EQ(got.json().at("length"), 4);
  EXPECT_EQ(got.json().at("limit").at("origin"), "saturation");
  const Json row = got.json().at("rows").at(0);
  EXPECT_TRUE(close(row.at("output")[0].get<double>(), want.output, 1e-12));
  EXPECT_TRUE(
      close(row.at("variance").get<double>(), want.square - want.output * want.output, 1e-11));
  EXPECT_TRUE(close(row.at("effective_sample_size").get<double>(), 1 / want.weights2, 1e-12));
  expect_weights(row.at("weights"), want.weights, 1e-12);
}

TEST_F(PromptProgram, RowsOfAStudyHaveTheWeightOfEveryPart) {
  const std::string study =
      std::string(kSigns) + "[sweep]\nlengths = [4]\nmetrics = [\"output\"]\nreplicates = 4000\n";
  const Brute want = all_prompts();
  for (const std::string engine : {"exact", "direct"}) {
    const Outcome got =
        run("concentration --json --quiet --set sweep.engine=" + engine + " " + config(study));
    ASSERT_EQ(got.code, 0) << got.err;
    const Json row = got.json().at("rows").at(0);
    EXPECT_EQ(row.at("engine"), engine);
    // 4000 prompts of weights in [0, 1] with deviations below 0.1.
    expect_weights(row.at("weights"), want.weights, engine == "exact" ? 1e-12 : 0.05);
    if (engine == "exact") {
      EXPECT_TRUE(
          close(row.at("variance").get<double>(), want.square - want.output * want.output, 1e-11));
    }
  }
}

TEST_F(PromptProgram, AStudyWithoutAPromptHasNoWeights) {
  const Outcome got =
      run("concentration --json --quiet --set measure.type=sphere --set measure.dim=2 --set "
          "'query.z=[1,0]' --set 'sweep.lengths=[5]' --set 'sweep.metrics=[\"output\"]'");
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_FALSE(got.json().at("rows").at(0).contains("weights"));
}

// Tokens of a file stand as they are, behind those of the prompt.
TEST_F(PromptProgram, AttendReadsSinksPositionsAndTheQueryBesideTokens) {
  write_npy(file("tokens.npy"), (Matrix(2, 1) << -1, 2).finished());
  const std::string tokens = " --tokens " + file("tokens.npy").string() + " --set 'query.z=[0.7]'";
  const Outcome got = run("attend --json " + config(R"(
[prompt]
given = [[0.5]]
include_query = true
sink_logits = [0.2, -inf]
bias = { kind = "alibi", slope = 0.5 }
)") + tokens);
  ASSERT_EQ(got.code, 0) << got.err;
  const std::array<double, 5> token{0.5, -1, 2, kZ, 0}, bias{-1.5, -1, -0.5, 0, kSink};
  double sum = 0, output = 0;
  std::array<double, 5> w{};
  for (std::size_t i = 0; i < 5; ++i) sum += w[i] = std::exp(kZ * token[i] + bias[i]);
  for (std::size_t i = 0; i < 5; ++i) output += w[i] / sum * token[i];
  const Json row = got.json().at("rows").at(0);
  EXPECT_EQ(got.json().at("engine"), "direct");
  EXPECT_TRUE(close(row.at("output")[0].get<double>(), output, 1e-13));
  ASSERT_EQ(row.at("weights").size(), 5U);
  EXPECT_EQ(row.at("weights")[1].at("group"), "empirical");
  EXPECT_TRUE(close(row.at("weights")[1].at("mean").get<double>(), (w[1] + w[2]) / sum, 1e-13));
  EXPECT_TRUE(close(row.at("weights")[3].at("mean").get<double>(), w[4] / sum, 1e-13));
  EXPECT_EQ(row.at("weights")[4].at("mean"), 0.0);
  EXPECT_EQ(got.json().at("limit").at("origin"), "gaussian-fit");
}

// The derivative of a difference quotient, and what has none.
TEST_F(PromptProgram, DerivativesOfGivenTokens) {
  const std::string base =
      "[prompt]\ngiven = [[0.5], [-1.0]]\nsink_logits = [0.3]\n[attention]\nU = 0.8\n";
  const auto output = [&](double z) {
    return run("attend --json --set 'query.z=[" + std::to_string(z) + "]' " + config(base))
        .json()["rows"][0]["output"][0]
        .get<double>();
  };
  const Outcome got = run("attend --json --derivatives --set 'query.z=[0.4]' " + config(base));
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_TRUE(close(got.json()["rows"][0]["jacobian_z"][0][0].get<double>(),
                    (output(0.401) - output(0.399)) / 0.002, 1e-5));
  const Outcome self =
      run("attend --derivatives --set prompt.include_query=true --set "
          "'query.z=[0.4]' " +
          config(base));
  EXPECT_EQ(self.code, 2);
  EXPECT_THAT(self.err, HasSubstr("--derivatives"));
}

TEST_F(PromptProgram, SharesNeedALengthAndStudentTokensHaveNoLimit) {
  const std::string student =
      "[measure]\ntype = \"student\"\ndim = 1\nnu = 5\n[prompt]\nsink_logits = [0.0]\n[query]\nz = "
      "[1.0]\n";
  const Outcome none = run("attend " + config(student));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--length"));
  const Outcome got = run("attend --json --length 20 " + config(student));
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_TRUE(got.json()["rows"][0]["limit"].is_null());
  EXPECT_FALSE(got.json()["rows"][0]["reason"].get<std::string>().empty());
  EXPECT_GT(got.json()["rows"][0]["output"][0].get<double>(), 0);
}

TEST_F(PromptProgram, AlibiSaturatesAndSaysSo) {
  const std::string prompt =
      "[measure]\ntype = \"gaussian\"\ndim = 1\n[prompt]\nbias = { kind = \"alibi\", slope = "
      "0.2231 "
      "}\n[query]\nz = [1.0]\n";
  const Outcome limit = run("limit --json " + config(prompt));
  ASSERT_EQ(limit.code, 0) << limit.err;
  EXPECT_TRUE(limit.json().at("limit").is_null());
  EXPECT_THAT(limit.json().at("reason").get<std::string>(), HasSubstr("alibi"));
  const double saturation = limit.json()["rows"][0]["saturation"][0].get<double>();
  const Outcome at = run("attend --json --length 1000 " + config(prompt));
  ASSERT_EQ(at.code, 0) << at.err;
  EXPECT_TRUE(close(at.json()["rows"][0]["output"][0].get<double>(), saturation, 1e-10));
  EXPECT_LT(saturation, 0.95);  // 1 is the limit without a bias
  const Outcome study =
      run("concentration --quiet --set 'sweep.lengths=[10,1000]' " + config(prompt));
  ASSERT_EQ(study.code, 0) << study.err;
  EXPECT_THAT(study.out, HasSubstr("\noutput\n"));
  EXPECT_THAT(study.out, HasSubstr("\ngrad_v\n"));
  EXPECT_THAT(study.out, HasSubstr("no limit"));
  EXPECT_THAT(study.out, HasSubstr("saturation"));
}

TEST_F(PromptProgram, LengthCountsTheTokensOfAPrompt) {
  const std::string prompt =
      "[measure]\ntype = \"sphere\"\ndim = 2\n[attention]\nU = 1.0\n[prompt]\nsink_logits = "
      "[4.0]\n[query]\nz = [1.0, 0.0]\n";
  const Outcome got = run("length --eps 1e-3 --json --quiet " + config(prompt));
  ASSERT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.json().at("status"), "certified");
  const std::int64_t L = got.json().at("length").get<std::int64_t>();
  const Outcome plain =
      run("length --eps 1e-3 --json --quiet --set measure.type=sphere --set measure.dim=2 --set "
          "'query.z=[1,0]'");
  EXPECT_GT(L, plain.json().at("length").get<std::int64_t>());
}

// The keys of the contract, for Gaussian scores and for those of a prompt.
TEST_F(PromptProgram, UniversalTellsEveryFunctionOfTheScores) {
  const std::string law =
      " --set measure.type=gaussian --set measure.dim=1 --set attention.U=1.5 --set 'query.z=[1]'";
  const Outcome tau = run("universal --length 50 --tau 1.5 --needle 4 --json");
  const Outcome prompt = run("universal --length 50 --needle 4 --json" + law);
  ASSERT_EQ(tau.code, 0) << tau.err;
  ASSERT_EQ(prompt.code, 0) << prompt.err;
  for (const char* key : {"L", "tau", "H", "M1", "M2c", "free_energy", "entropy", "needle"}) {
    EXPECT_TRUE(close(prompt.json().at(key).get<double>(), tau.json().at(key).get<double>(), 1e-9))
        << key;
  }
  EXPECT_EQ(tau.json().at("L"), 50);
  EXPECT_TRUE(run("universal --length 50 --tau 1.5 --json").json().at("needle").is_null());
  // The median is drawn, by scores or by tokens; its error is about 1 %.
  const double median = tau.json().at("H_median").get<double>();
  EXPECT_LT(median, tau.json().at("H").get<double>());
  const double sphere =
      run("universal --length 50 --json --set measure.type=sphere --set measure.dim=1 --set "
          "'query.z=[2]'")
          .json()
          .at("H_median")
          .get<double>();
  // Signs: h = (p e^4 + q e^-4) / (p e^2 + q e^-2)^2 at the typical p = q = 25.
  EXPECT_TRUE(close(sphere, 2 * std::cosh(4) * 25 / std::pow(50 * std::cosh(2), 2), 1e-10));
  const Outcome none = run("universal --length 50 --tau 1.5 --draws 0 --json");
  EXPECT_TRUE(none.json().at("H_median").is_null());
}

// For two scores h = 1/(1 + ..) is a function of their difference, whose median is known.
TEST_F(PromptProgram, TheMedianOfTwoScores) {
  const Json got = run("universal --length 2 --tau 1 --draws 20001 --json").json();
  const double gap = std::sqrt(2.0) * 0.6744897501960817;  // median |s_1 - s_2|
  const double p = 1 / (1 + std::exp(-gap)), want = p * p + (1 - p) * (1 - p);
  EXPECT_TRUE(testing::agrees({got.at("H_median").get<double>(),
                               got.at("H_median_error").get<double>(), 20001, Engine::sampled},
                              want));
}

}  // namespace
}  // namespace esscher
