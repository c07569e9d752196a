#include "esscher/heads/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A head of 1000 keys with an error of 0.4, far above its control: the keys are not Gaussian.
HeadEvidence shaped() {
  return {
      .n = 1000,
      .error = 0.4,
      .unseen = 0.45,
      .control = 0.1,
      .linear_from = Length(50),
      .dominant = 0,
      .kurtosis = 4,
      .excess = ErrorExcess{
          .error = 0.41, .typical = 0.1, .limit = 0.12, .p = 0.025, .keys = 1000, .queries = 16}};
}

TEST(Verdict, LinearHereUpToTheTolerance) {
  HeadEvidence head = shaped();
  head.error = 0.1;
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::linear_here);
  EXPECT_EQ(got.words, "linear here");
  EXPECT_EQ(got.reason, "error 0.1 at n = 1000, control 0.1");
  EXPECT_NE(judge(head, 0.0999).verdict, HeadVerdict::linear_here);
}

// A head whose error is near its control, with keys that a sharp test of shape takes for Gaussian.
HeadEvidence gaussian() {
  HeadEvidence head = shaped();
  head.error = 0.3;
  head.control = 0.2;
  head.excess->error = 0.31;  // not above the limit: explained by the length
  head.excess->limit = 0.31;
  head.linear_from = Length(12632);
  head.shape = {.departure = 0.05, .typical = 0.06, .limit = 0.09, .harm = 0.173, .power = 0.95};
  return head;
}

TEST(Verdict, LinearFromWhereTheLengthExplainsTheErrorAndTheShapeIsGaussian) {
  HeadEvidence head = gaussian();
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::linear_from);
  EXPECT_EQ(got.words, "linear from L = 12632 if its keys stay Gaussian");
  EXPECT_EQ(got.reason,
            "error 0.3 is not told from that of 1000 Gaussian keys (0.2; 16 queries on 1000 keys: "
            "0.31, Gaussian keys exceed 0.31 in 5 % of prompts); the scores depart from "
            "Gaussian ones by 0.05 (Gaussian keys exceed 0.09 in 5 % of prompts), and a limit that "
            "errs by 0.173 would have been seen with probability 0.95; if the keys stay so, the "
            "limit holds within tolerance from L = 12632, 13 times the length that was recorded");
  EXPECT_TRUE(length_in_question(head, 0.1));
  head.excess->limit = 0.309;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_within);
  EXPECT_FALSE(length_in_question(head, 0.1));
  head.control = 0.3;  // an error below the control is not refused
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
}

TEST(Verdict, WithoutATestTheErrorMayBeHalfAsLargeAgain) {
  HeadEvidence head = gaussian();
  head.excess.reset();
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::too_short);  // nothing could have refused it
  head.control = 0.199;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_within);
}

// At the promised length the error of the limit and of the length, one tolerance, add as squares.
TEST(Verdict, HarmMakesTheErrorTwiceTheTolerance) {
  EXPECT_NEAR(std::hypot(harm_of(0.1), 0.1), 0.2, 1e-12);
}

TEST(Verdict, NoLengthWithoutATestOfShapeThatCouldHaveRefused) {
  HeadEvidence head = gaussian();
  head.shape->power = 0.89;
  const HeadJudgement weak = judge(head, 0.1);
  EXPECT_EQ(weak.verdict, HeadVerdict::too_short);
  EXPECT_EQ(weak.words, "too short to say");
  EXPECT_THAT(weak.reason, HasSubstr("by 0.05 (Gaussian keys exceed 0.09 in 5 % of prompts), but a "
                                     "limit that errs by 0.173 would have been seen with "
                                     "probability 0.89 only"));
  head.shape->power = 0.9;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
  head.shape.reset();
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::too_short);
  EXPECT_THAT(judge(head, 0.1).reason, HasSubstr("the shape of the keys was not tested"));
}

// Where Gaussian keys may err by 1, every error that a linear map can have is theirs.
TEST(Verdict, NoLengthWhereNoErrorBelowOneCouldBeRefused) {
  HeadEvidence head = gaussian();
  head.error = 0.9;
  head.control = 0.66;
  head.excess->error = 0.9;
  head.excess->limit = 0.99;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
  head.excess->limit = 1.01;
  EXPECT_FALSE(length_in_question(head, 0.1));
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::too_short);
  EXPECT_THAT(got.reason, HasSubstr("no error below 1 would tell other keys from Gaussian ones"));
}

// Keys that the test refuses are not Gaussian, however near the error is to the control.
TEST(Verdict, RefusedKeysGetNoLength) {
  HeadEvidence head = gaussian();
  head.shape->departure = 0.4;
  head.shape->power.reset();
  const HeadJudgement within = judge(head, 0.1);
  EXPECT_EQ(within.words, "linear within 30 %");
  EXPECT_THAT(within.reason, HasSubstr("the scores depart from Gaussian ones by 0.4"));
  head.error = 0.8;
  head.control = 0.6;
  const HeadJudgement unknown = judge(head, 0.1);
  EXPECT_EQ(unknown.verdict, HeadVerdict::too_short);
  EXPECT_THAT(unknown.reason, HasSubstr("the keys are not Gaussian, so no length is promised"));
  head.unseen = 0.8;
  head.mixture = {.k = 4, .unseen = 0.4};
  EXPECT_EQ(judge(head, 0.1).words, "needs 4 components");
  head.shape->departure = 0.09;  // not above the limit
  head.shape->power = 0.95;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
  head.shape->limit = 0.02;
  EXPECT_NE(judge(head, 0.1).verdict, HeadVerdict::linear_from);
  head.shape->departure = 0.04;  // above the limit, yet below a quarter of the harm
  head.shape->power = 0.95;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
}

TEST(Verdict, TooShortWhereNoLengthIsEnough) {
  HeadEvidence head = shaped();
  head.error = 0.95;
  head.control = 0.9;
  head.excess.reset();
  head.linear_from = Length::infinity();
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::too_short);
  EXPECT_EQ(got.words, "too short to say");
  EXPECT_THAT(got.reason, HasSubstr("is not within tolerance before L = 10^15"));
}

// A key that takes most of the weight is not a matter of length.
TEST(Verdict, ADominantKeyIsNotExplainedByTheLength) {
  HeadEvidence head = gaussian();
  head.error = 0.95;
  head.control = 0.65;
  head.dominant = 0.5;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::linear_from);
  head.dominant = 0.51;
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::not_linearisable);
  EXPECT_THAT(got.reason, HasSubstr("one key takes more than half of the weight for 51 %"));
}

TEST(Verdict, NeedsComponentsWhereAMixtureIsClearlyBetterOnUnseenKeys) {
  HeadEvidence head = shaped();
  head.error = 0.8;
  head.unseen = 0.5;
  head.mixture = {.k = 4, .unseen = 0.44, .control = 0.07};
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::needs_components);
  EXPECT_EQ(got.words, "needs 4 components");
  EXPECT_THAT(got.reason, HasSubstr("a mixture of 4 leaves 0.44 on unseen keys (one component"));
  EXPECT_THAT(got.reason, HasSubstr("prompts drawn from that mixture would leave 0.07"));
  head.mixture->control.reset();
  EXPECT_THAT(judge(head, 0.1).reason, Not(HasSubstr("prompts drawn")));
  head.mixture->unseen = 0.46;  // more than 0.9 times 0.5: not clearly better
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::not_linearisable);
  head.unseen = 0.8;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::needs_components);
  head.mixture->unseen = 0.51;  // more than half of the signal: not worth using
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::not_linearisable);
}

TEST(Verdict, LinearWithinWhereTheLimitLeavesAtMostHalf) {
  HeadEvidence head = shaped();
  head.error = 0.312;
  head.mixture = {.k = 8, .unseen = 0.44};
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::linear_within);
  EXPECT_EQ(got.words, "linear within 32 %");
  EXPECT_THAT(got.reason,
              HasSubstr("error 0.312 against 0.1 for Gaussian keys (16 queries on "
                        "1000 keys: 0.41, Gaussian keys exceed 0.12 in 5 % of prompts"));
  EXPECT_THAT(got.reason, HasSubstr("one component leaves 0.45, and a mixture of 8 leaves 0.44"));
  head.mixture.reset();
  EXPECT_THAT(judge(head, 0.1).reason, Not(HasSubstr("mixture")));
  head.error = 0.5;
  EXPECT_EQ(judge(head, 0.1).words, "linear within 50 %");
  head.error = 0.501;
  EXPECT_EQ(judge(head, 0.1).verdict, HeadVerdict::not_linearisable);
}

TEST(Verdict, NotLinearisableNamesTheCauseAndTheBestMixture) {
  HeadEvidence head = shaped();
  head.error = 1.5;
  head.unseen = 1.4;
  EXPECT_THAT(judge(head, 0.1).reason, HasSubstr("no mixture could be judged"));
  head.mixture = {.k = 16, .unseen = 0.7};
  const HeadJudgement got = judge(head, 0.1);
  EXPECT_EQ(got.verdict, HeadVerdict::not_linearisable);
  EXPECT_EQ(got.words, "not linearisable");
  EXPECT_THAT(got.reason, HasSubstr("a mixture of 16 still leaves 0.7 on unseen keys"));
  EXPECT_THAT(got.reason, HasSubstr("keys are not Gaussian (kurtosis of the scores 4)"));
  head.kurtosis = 6.5;
  EXPECT_THAT(judge(head, 0.1).reason, HasSubstr("heavy-tailed keys (kurtosis of the scores 6.5"));
}

TEST(Verdict, LengthsAreReadAsWords) {
  EXPECT_EQ(linear_from_text(Length(12632)), "12632");
  EXPECT_EQ(linear_from_text(Length::infinity()), "not before 10^15");
  const auto words = enum_words<HeadVerdict>();
  EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), 6u);
}

}  // namespace
}  // namespace esscher
