#include "esscher/heads/excess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/estimate/moments.h"
#include "esscher/estimate/quantile.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

constexpr Index kWidth = 4;
constexpr Index kValues = 3;

// Keys and values of one prompt and the scores of a few queries on it.
struct Prompt {
  Matrix scores, values;
};

Prompt prompt_of(const Matrix& keys, const Matrix& queries, const Stream& stream) {
  const Matrix W = random_matrix(Stream(51, 1), kWidth, kValues);
  return {.scores = keys * queries.transpose(),
          .values = keys * W + 0.7 * random_matrix(stream, keys.rows(), kValues)};
}

std::vector<Index> ends_of(Index n, Index q, bool causal) {
  std::vector<Index> ends;
  for (Index i = 0; i < q; ++i) ends.push_back(causal ? n / 2 + (i + 1) * (n - n / 2) / q : n);
  return ends;
}

// The formula of the header, key by key.
TEST(Excess, ErrorsAreThoseOfTheLimitFittedToThePrompt) {
  const Index n = 40;
  const Matrix queries = random_matrix(Stream(51, 2), 3, kWidth);
  const Prompt p = prompt_of(random_matrix(Stream(51, 3), n, kWidth), queries, Stream(51, 4));
  const std::vector<Index> ends = {12, 33, 40};
  const std::vector<double> got = limit_errors(p.scores, p.values, ends);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Index end = ends[i];
    const Vector s = p.scores.col(static_cast<Index>(i)).head(end);
    const Matrix v = p.values.topRows(end);
    const Vector mean = v.colwise().mean();
    Vector T = Vector::Zero(kValues), linear = mean;
    double mass = 0;
    for (Index l = 0; l < end; ++l) {
      mass += std::exp(s(l));
      T += std::exp(s(l)) * v.row(l).transpose();
      linear += (s(l) - s.mean()) * (v.row(l).transpose() - mean) / static_cast<double>(end);
    }
    T /= mass;
    EXPECT_TRUE(testing::close(got[i], (T - linear).norm() / (T - mean).norm(), 1e-10)) << i;
  }
}

// The null draws no values. Their errors have the law of prompts whose keys and values are drawn one
// by one: the two medians agree within their standard errors.
TEST(Excess, TheNullIsThatOfPromptsDrawnKeyByKey) {
  for (const bool causal : {false, true}) {
    const Index n = 150;
    const Index q = 5;
    const Matrix queries = random_matrix(Stream(52, 1), q, kWidth, 0.6);
    const std::vector<Index> ends = ends_of(n, q, causal);
    std::vector<double> drawn, typical;
    for (int r = 0; r < 300; ++r) {
      const Stream stream = Stream(52, 2).split(r);
      const Prompt p =
          prompt_of(random_matrix(stream.split(0), n, kWidth), queries, stream.split(1));
      drawn.push_back(median(limit_errors(p.scores, p.values, ends)));
      if (r < 40) {
        typical.push_back(error_excess(p.scores, p.values, ends, stream.split(2))->typical);
      }
    }
    EXPECT_TRUE(testing::agree(median_estimate(drawn, Engine::direct),
                               median_estimate(typical, Engine::direct)))
        << causal;
  }
}

double refused_share(Index n, bool causal, bool signs, int prompts) {
  const Index q = 8;
  const Matrix queries = random_matrix(Stream(53, 1), q, kWidth, 0.75);
  const std::vector<Index> ends = ends_of(n, q, causal);
  double refused = 0;
  for (int r = 0; r < prompts; ++r) {
    const Stream stream = Stream(53, 2).split(r);
    Matrix keys = random_matrix(stream.split(0), n, kWidth);
    if (signs) keys = keys.cwiseSign();
    const Prompt p = prompt_of(keys, queries, stream.split(1));
    refused += error_excess(p.scores, p.values, ends, stream.split(2))->refused() ? 1 : 0;
  }
  return refused / prompts;
}

// 400 prompts: the standard error of a share of 5 % is 1.1 %.
TEST(Excess, GaussianKeysAreRefusedWithTheStatedProbability) {
  for (const bool causal : {false, true}) {
    const double share = refused_share(60, causal, false, 400);
    EXPECT_NEAR(share, kExcessLevel, 4 * std::sqrt(0.05 * 0.95 / 400)) << causal;
  }
}

// Keys on the corners of a cube: the limit errs at any length.
TEST(Excess, KeysWithAnotherLimitAreRefusedOnceThereAreEnough) {
  EXPECT_GT(refused_share(2000, false, true, 30), 0.9);
  EXPECT_GT(refused_share(2000, true, true, 30), 0.9);
}

TEST(Excess, NothingIsTestedWhereNothingVaries) {
  const Matrix values = random_matrix(Stream(54, 1), 20, 2);
  const std::vector<Index> ends = {20, 20};
  EXPECT_FALSE(error_excess(Matrix::Ones(20, 2), values, ends, Stream(1)).has_value());
  EXPECT_FALSE(
      error_excess(random_matrix(Stream(54, 2), 5, 2), values.topRows(5), {5, 5}, Stream(1))
          .has_value());
}

TEST(Excess, TheSameStreamGivesTheSameBits) {
  const Matrix queries = random_matrix(Stream(53, 1), 8, kWidth, 0.6);
  const Prompt p = prompt_of(random_matrix(Stream(55, 1), 90, kWidth), queries, Stream(55, 2));
  const std::vector<Index> ends = ends_of(90, 8, false);
  const auto first = error_excess(p.scores, p.values, ends, Stream(7));
  const auto again = error_excess(p.scores, p.values, ends, Stream(7));
  EXPECT_EQ(first->limit, again->limit);
  EXPECT_EQ(first->typical, again->typical);
  EXPECT_GE(first->p, 1.0 / (1 + kExcessReplicates));
}

}  // namespace
}  // namespace esscher
