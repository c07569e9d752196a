#include "esscher/json/heads.h"

#include <gtest/gtest.h>

#include <limits>

namespace esscher {
namespace {

HeadDiagnosis sample() {
  HeadDiagnosis head;
  head.name = "L0.H1";
  head.n = 100;
  head.dk = 4;
  head.dv = 3;
  head.queries = 7;
  head.tau2 = 1.5;
  head.tau2_low = 0.5;
  head.tau2_high = 2.5;
  head.kappa = 3.5;
  head.kappa_low = 2.5;
  head.kappa_high = 4.5;
  head.gaussian = {.lin = 0.1, .lin_c = 0.3};
  head.gaussian_split = {.lin = 0.2, .lin_c = 0.4};
  head.linear_from = Length(12632);
  head.control_test_error = 0.31;
  head.control_test_typical = 0.2;
  head.control_test_limit = 0.4;
  head.control_test_p = 0.5;
  head.shape_departure = 0.05;
  head.shape_typical = 0.06;
  head.shape_limit = 0.09;
  head.shape_harm = 0.17;
  head.shape_power = 0.95;
  head.best_k = 2;
  head.mixtures = {{.k = 2,
                    .in_sample = {.lin = 0.01, .lin_c = 0.02},
                    .split_lin = 0.03,
                    .split_lin_c = 0.04,
                    .control_lin_c = 0.05,
                    .control_queries = 7,
                    .em_steps = 9,
                    .converged = true},
                   {.k = 16, .in_sample = {.lin = 0.5, .lin_c = 0.6}}};
  head.cost = {{.surrogate = "softmax", .state = 700, .multiply_adds = 700}};
  head.prefixes = {{.n = 16, .lin_c = 0.9, .control = 0.8, .control_low = 0.7, .control_high = 1}};
  head.window = std::vector<WindowRow>{{.w = 16,
                                        .tail = Tail::finite,
                                        .lin = 0.1,
                                        .lin_c = 0.2,
                                        .control_lin_c = 0.3,
                                        .state = 140,
                                        .multiply_adds = 150}};
  head.window_verdict = "linear beyond 16 keys";
  head.score_c = 0.9;
  head.gap_scale = std::numeric_limits<double>::infinity();
  head.phase = Phase::intermediate;
  head.score_lengths = std::vector<ScoreLengthRow>{{.n = 100, .tau = 1.9}};
  head.longer_prompts = std::vector<ForecastRow>{{.n = 200, .ess = 30, .factor = 1.2}, {.n = 400}};
  head.forecast_test = std::vector<ForecastTest>{{.from = 50, .to = 100, .ess_forecast = 25}};
  head.score_histogram = Vector::Constant(2, 0.25);
  head.score_mixture = Vector::Constant(2, 0.5);
  head.verdict_kind = HeadVerdict::linear_from;
  head.verdict = "linear from L = 12632";
  head.reason = "because";
  return head;
}

TEST(DiagnosisJson, LongerPromptsAreOneObject) {
  HeadDiagnosis head = sample();
  const Json got = diagnosis_json(head)["longer_prompts"];
  EXPECT_EQ(got["c"], 0.9);
  EXPECT_TRUE(got["gap_scale"].is_null());  // infinite: two keys share the largest score
  EXPECT_EQ(got["phase"], "intermediate");
  EXPECT_EQ(got["prefixes"][0]["tau"], 1.9);
  EXPECT_EQ(got["forecast"][0]["factor"], 1.2);
  EXPECT_TRUE(got["forecast"][1]["factor"].is_null());
  EXPECT_EQ(got["test"]["ess_forecast"], 25);
  head.forecast_test->clear();
  EXPECT_TRUE(diagnosis_json(head)["longer_prompts"]["test"].is_null());
  head.score_c.reset();
  EXPECT_TRUE(diagnosis_json(head)["longer_prompts"].is_null());
}

TEST(DiagnosisJson, KeysAreTheContract) {
  const Json got = diagnosis_json(sample());
  std::vector<std::string> keys;
  for (const auto& [key, value] : got.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"head",
                                            "n",
                                            "d",
                                            "d_v",
                                            "causal",
                                            "scale",
                                            "queries",
                                            "tau2",
                                            "tau2_range",
                                            "ess",
                                            "frozen",
                                            "kurtosis",
                                            "top_weight",
                                            "dominant",
                                            "kappa",
                                            "lin",
                                            "lin_c",
                                            "control_lin_c",
                                            "control_test",
                                            "mean_only",
                                            "uncentred",
                                            "gaussian",
                                            "gaussian_split",
                                            "mixtures",
                                            "best_k",
                                            "mixture_keys",
                                            "linear_from",
                                            "linear_from_text",
                                            "shape",
                                            "cost",
                                            "prefixes",
                                            "longer_prompts",
                                            "window",
                                            "window_lengths",
                                            "window_verdict",
                                            "budget",
                                            "budget_verdict",
                                            "score_histogram",
                                            "score_mixture",
                                            "verdict",
                                            "verdict_kind",
                                            "reason",
                                            "causes",
                                            "why",
                                            "engine"}));
  EXPECT_EQ(got["gaussian"], (Json{{"lin", 0.1}, {"lin_c", 0.3}}));
  EXPECT_EQ(got["tau2_range"], (Json{0.5, 2.5}));
  EXPECT_EQ(got["mixtures"][0], (Json{{"k", 2},
                                      {"in_sample", {{"lin", 0.01}, {"lin_c", 0.02}}},
                                      {"split", {{"lin", 0.03}, {"lin_c", 0.04}}},
                                      {"control_lin_c", 0.05},
                                      {"control_queries", 7},
                                      {"em_steps", 9},
                                      {"converged", true}}));
  EXPECT_EQ(got["cost"][0],
            (Json{{"surrogate", "softmax"}, {"state", 700}, {"multiply_adds", 700}}));
  EXPECT_EQ(got["prefixes"][0], (Json{{"n", 16},
                                      {"lin_c", 0.9},
                                      {"control", 0.8},
                                      {"control_low", 0.7},
                                      {"control_high", 1.0}}));
  EXPECT_EQ(got["score_mixture"], (Json{{"k", 2}, {"density", {0.5, 0.5}}}));
  EXPECT_EQ(got["shape"], (Json{{"departure", 0.05},
                                {"typical", 0.06},
                                {"limit", 0.09},
                                {"harm", 0.17},
                                {"power", 0.95}}));
  EXPECT_EQ(got["control_test"],
            (Json{{"error", 0.31}, {"typical", 0.2}, {"limit", 0.4}, {"p", 0.5}, {"level", 0.05}}));
  EXPECT_EQ(got["kappa"], (Json{{"value", 3.5}, {"low", 2.5}, {"high", 4.5}}));
  EXPECT_EQ(got["linear_from"], 12632);
  EXPECT_EQ(got["linear_from_text"], "12632");
  EXPECT_EQ(got["verdict_kind"], "linear_from");
}

TEST(DiagnosisJson, WhatAHeadDoesNotHaveIsNull) {
  HeadDiagnosis head = sample();
  head.linear_from = Length::infinity();
  head.best_k.reset();
  head.shape_power.reset();
  EXPECT_TRUE(diagnosis_json(head)["shape"]["power"].is_null());
  head.shape_departure.reset();
  head.control_test_error.reset();
  EXPECT_TRUE(diagnosis_json(head)["control_test"].is_null());
  head.kappa_high = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(diagnosis_json(head)["kappa"]["high"].is_null());
  head.kappa.reset();
  EXPECT_TRUE(diagnosis_json(head)["kappa"].is_null());
  const Json got = diagnosis_json(head);
  EXPECT_TRUE(got["shape"].is_null());
  EXPECT_TRUE(got["mixtures"][1]["split"].is_null());
  EXPECT_TRUE(got["mixtures"][1]["control_lin_c"].is_null());
  EXPECT_TRUE(got["best_k"].is_null());
  EXPECT_TRUE(got["score_mixture"].is_null());
  EXPECT_TRUE(got["linear_from"].is_null());
  EXPECT_EQ(got["linear_from_text"], "not before 10^15");
}

TEST(DiagnosisJson, ANumberThatIsNotFiniteIsNullAndNamed) {
  HeadDiagnosis head = sample();
  head.kurtosis = std::numeric_limits<double>::infinity();
  const Json got = diagnosis_json(head);
  EXPECT_TRUE(got["kurtosis"].is_null());
  EXPECT_EQ(got["not_finite"], (Json{{"kurtosis", "inf"}}));
}

}  // namespace
}  // namespace esscher
