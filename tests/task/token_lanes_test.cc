// Tokens in lanes against the same generator written plainly, and against the law of the features.
#include "esscher/task/token_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "esscher/estimate/moments.h"
#include "esscher/simd/targets.h"
#include "tests/random/run_twin.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::RunOfWords;

constexpr Features kFeatures[] = {Features::gaussian, Features::rademacher, Features::uniform,
                                  Features::sphere};

// One block of tokens [n,d+1].
Matrix plain_block(Features features, Index d, Index n, RunOfWords& words) {
  Matrix z(n, d + 1);
  if (features == Features::gaussian) {
    const std::vector<double> all = words.normals(static_cast<std::size_t>(n * (d + 1)));
    return Eigen::Map<const Matrix>(all.data(), n, d + 1);
  }
  if (features == Features::sphere) {
    const std::vector<double> all = words.normals(static_cast<std::size_t>(n * d));
    z.leftCols(d) = Eigen::Map<const Matrix>(all.data(), n, d);
    for (Index l = 0; l < n; ++l) {
      z.row(l).head(d) *= std::sqrt(static_cast<double>(d)) / z.row(l).head(d).norm();
    }
  } else {
    std::uint32_t word = 0;
    for (Index l = 0; l < n; ++l) {
      for (Index i = 0; i < d; ++i) {
        if (features == Features::uniform || i % 32 == 0) word = words.next();
        z(l, i) = features == Features::uniform
                      ? std::sqrt(3.0) * static_cast<std::int32_t>(word | 1U) * 0x1p-31
                      : (word >> (31 - i % 32) & 1U ? -1.0 : 1.0);
      }
    }
  }
  const std::vector<double> noise = words.normals(static_cast<std::size_t>(n));
  z.col(d) = Eigen::Map<const Vector>(noise.data(), n);
  return z;
}

void expect_plain_tokens(Features features, Index d, Index tokens, std::size_t prompts) {
  SCOPED_TRACE(std::string(name(features)) + " d " + std::to_string(d) + " tokens " +
               std::to_string(tokens) + " prompts " + std::to_string(prompts));
  const Stream stream(31, 5);
  std::vector<std::uint64_t> first;
  for (std::size_t j = 0; j < prompts; ++j) first.push_back((std::uint64_t{j} << 33) + 3 * j);
  Matrix out(tokens * (d + 1), static_cast<Index>(prompts));
  fill_token_lanes(features, d, tokens, stream, first,
                   {out.data(), static_cast<std::size_t>(out.size())});
  for (std::size_t j = 0; j < prompts; ++j) {
    RunOfWords words(stream, first[j]);
    for (Index l = 0; l < tokens; l += tokens_per_block(d)) {
      const Index n = std::min(tokens_per_block(d), tokens - l);
      const Matrix want = plain_block(features, d, n, words);
      for (Index i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(out(l * (d + 1) + i, static_cast<Index>(j)), want.data()[i], 1e-5)
            << "block at " << l << ", number " << i << ", prompt " << j;
      }
    }
  }
}

TEST(TokenLanes, EqualThePlainGeneratorOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    for (const Features features : kFeatures) {
      for (const Index d : {1L, 2L, 5L, 20L, 33L, 70L}) {
        for (const Index tokens : {1L, 3L, 32L, 67L, 129L}) {
          expect_plain_tokens(features, d, tokens, tokens == 3 ? 19 : 5);
        }
      }
    }
  }
  simd::force_target("");
}

// Means, second and fourth moments of 2^17 tokens.
TEST(TokenLanes, HaveTheLawOfTheFeatures) {
  constexpr Index kDim = 3, kTokens = 2048, kPrompts = 64;
  std::vector<std::uint64_t> first(kPrompts);
  for (std::size_t j = 0; j < first.size(); ++j) first[j] = j;
  const double fourth[] = {3, 1, 9.0 / 5, 9.0 / 5};  // E x_1^4
  const double mixed[] = {1, 1, 1, 9.0 / 15};        // E x_1^2 x_2^2
  for (std::size_t f = 0; f < std::size(kFeatures); ++f) {
    SCOPED_TRACE(name(kFeatures[f]));
    Matrix z(kTokens * (kDim + 1), kPrompts);
    fill_token_lanes(kFeatures[f], kDim, kTokens, Stream(32), first,
                     {z.data(), static_cast<std::size_t>(z.size())});
    Moments mean, square, product, four, two, noise;
    for (Index l = 0; l < kTokens; ++l) {
      for (Index j = 0; j < kPrompts; ++j) {
        const double x = z(4 * l, j), y = z(4 * l + 1, j), e = z(4 * l + 3, j);
        mean.add(x);
        square.add(x * x);
        product.add(x * y);
        four.add(x * x * x * x);
        two.add(x * x * y * y);
        noise.add(x * e + e * e);
      }
    }
    const auto agrees = [](const Moments& m, double truth) {
      Estimate estimate = m.estimate(Engine::direct);
      estimate.std_error += 1e-7;  // constants in float
      return testing::agrees(estimate, truth);
    };
    EXPECT_TRUE(agrees(mean, 0));
    EXPECT_TRUE(agrees(square, 1));
    EXPECT_TRUE(agrees(product, 0));
    EXPECT_TRUE(agrees(four, fourth[f]));
    EXPECT_TRUE(agrees(two, mixed[f]));
    EXPECT_TRUE(agrees(noise, 1));
  }
}

TEST(TokenLanes, APromptDoesNotSeeItsCompany) {
  const std::vector<std::uint64_t> first = {4, 0, 9, 1, 2, 3, 5, 6, 7};
  for (const Features features : kFeatures) {
    Matrix company(23 * 4, 9);
    fill_token_lanes(features, 3, 23, Stream(33), first,
                     {company.data(), static_cast<std::size_t>(company.size())});
    for (std::size_t j = 0; j < first.size(); ++j) {
      Vector alone(23 * 4);
      fill_token_lanes(features, 3, 23, Stream(33), {&first[j], 1},
                       {alone.data(), static_cast<std::size_t>(alone.size())});
      EXPECT_EQ(alone, company.col(static_cast<Index>(j)));
    }
  }
}

}  // namespace
}  // namespace esscher
