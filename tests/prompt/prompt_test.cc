#include "esscher/prompt/prompt.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/exact_prompt.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Attention some_attention(Index d) {
  return Attention::from_uv(random_matrix(Stream(1), d, d, 0.6), random_matrix(Stream(2), 2, d));
}

TEST(Prompt, SharesBecomeCountsThatSumUp) {
  Prompt prompt;
  prompt.groups = {{.mu = Sphere(2, 1), .share = 0.5},
                   {.mu = Uniform(2), .count = 3},
                   {.mu = Rademacher(2), .share = 0.25},
                   {.mu = Gaussian(Matrix::Identity(2, 2)), .share = 0.25}};
  prompt.given = Matrix::Ones(2, 2);
  prompt.include_query = true;
  EXPECT_EQ(prompt.fixed_tokens(), 6);
  EXPECT_EQ(group_counts(prompt, 6), (std::vector<std::int64_t>{0, 3, 0, 0}));
  EXPECT_EQ(group_counts(prompt, 7), (std::vector<std::int64_t>{1, 3, 0, 0}));
  EXPECT_EQ(group_counts(prompt, 9), (std::vector<std::int64_t>{1, 3, 1, 1}));
  EXPECT_EQ(group_counts(prompt, 14), (std::vector<std::int64_t>{4, 3, 2, 2}));
  EXPECT_EQ(testing::message_of<ArgumentError>([&] { return group_counts(prompt, 5); }),
            "prompt: L is 5, expected at least 6, the number of tokens that are given or counted");
  EXPECT_EQ(part_names(prompt), (std::vector<std::string>{"given:0", "given:1", "sphere", "uniform",
                                                          "rademacher", "gaussian", "self"}));
}

TEST(Prompt, PositionsRunFromTheEnd) {
  Prompt prompt = Prompt::plain(Uniform(1));
  prompt.given = Matrix::Ones(1, 1);
  prompt.include_query = true;
  prompt.bias = {.kind = BiasKind::table, .values = {0.5, -1, -kInfinity, -2}};
  const PromptLayout at = layout(prompt, 7);  // distances: given 6, drawn 5..1, self 0
  EXPECT_EQ(at.self, 0.5);
  EXPECT_EQ(at.given[0], -2);
  ASSERT_EQ(at.runs.size(), 2U);
  EXPECT_EQ(at.runs[0].from, 1);
  EXPECT_EQ(at.runs[0].bias, -1);
  EXPECT_EQ(at.runs[1].from, 3);
  EXPECT_EQ(at.runs[1].count, 3);
  prompt.bias = {.kind = BiasKind::window, .width = 3};
  ASSERT_EQ(layout(prompt, 7).runs.size(), 1U);
  EXPECT_EQ(layout(prompt, 7).runs[0].count, 2);
  EXPECT_EQ(layout(prompt, 7).given[0], -kInfinity);
  prompt.bias = {.kind = BiasKind::alibi, .slope = 0.5};
  EXPECT_EQ(layout(prompt, 7).given[0], -3);
  EXPECT_EQ(layout(prompt, 7).runs[0].from, 1);
}

TEST(Prompt, LimitsAreMixturesByShare) {
  Prompt prompt;
  prompt.groups = {{.mu = Sphere(2, 1), .share = 0.25, .bias = std::log(2.0)},
                   {.mu = Uniform(2), .count = 3},
                   {.mu = Uniform(2), .share = 0.5}};
  const AnyMeasure limit = limit_measure(prompt).value();
  EXPECT_TRUE(close(limit.as<Mixture>()->weights(), Vector{{0.5, 0.5}}, 1e-15));
  prompt.bias = {.kind = BiasKind::alibi, .slope = 1};
  EXPECT_FALSE(limit_measure(prompt).has_value());
  EXPECT_NE(no_limit_reason(prompt).find("alibi"), std::string::npos);
}

TEST(Prompt, WrongPartsAreNamed) {
  const auto message = [](const Prompt& prompt) {
    return testing::message_of<ArgumentError>([&] {
      check_prompt("here", prompt);
      return 0;
    });
  };
  Prompt prompt = Prompt::plain(Uniform(2));
  EXPECT_EQ(message(prompt), "no error");
  prompt.given = Matrix::Ones(1, 3);
  EXPECT_EQ(message(prompt), "here: given tokens has dimension 3, expected 2");
  prompt = Prompt::plain(Uniform(2));
  prompt.groups[0].share = -1;
  EXPECT_EQ(message(prompt), "here: share of group uniform is -1, expected a number >= 0");
  prompt.groups[0].share = 0;
  EXPECT_EQ(message(prompt), "here: shares is all 0, expected a positive sum");
  prompt = Prompt::plain(Uniform(2));
  prompt.bias = {.kind = BiasKind::alibi};
  EXPECT_EQ(message(prompt), "here: bias slope is 0, expected a number > 0");
}

// The exact prompt of Gaussian mixtures against the kernels of mixtures.
TEST(ExactPrompt, PlainMixturesAgreeWithTheirOwnKernel) {
  const AnyMeasure mu = Mixture(Vector{{0.3, 0.7}},
                                {Gaussian(Vector{{1.0, 0.0}}, testing::random_psd(Stream(3), 2)),
                                 Gaussian(Vector{{-1.0, 2.0}}, testing::random_psd(Stream(4), 2))});
  const Attention attention = some_attention(2);
  const Vector z{{0.9, -1.1}};
  ExactPrompt prompt(Prompt::plain(mu), attention, z);
  MixtureErrors kernel(*gaussian_mixture_law(mu), attention, z);
  for (const std::int64_t L : {1, 2, 30, 4000, 1000000}) {
    EXPECT_TRUE(close(prompt.expected_output(L), kernel.expected_output(L), 1e-10));
    EXPECT_TRUE(close(prompt.effective_sample_size(L), kernel.effective_sample_size(L), 1e-10));
    for (const Metric metric : {Metric::output, Metric::grad_v}) {
      const ErrorParts got = prompt.error_parts(metric, L), want = kernel.error_parts(metric, L);
      EXPECT_TRUE(close(got.total(), want.total(), 1e-10));
      EXPECT_TRUE(close(got.bias2, want.bias2, 1e-8));
    }
  }
  EXPECT_THROW((void)prompt.error_parts(Metric::grad_u, 3), CapabilityError);
}

// Self-attention of L Gaussian tokens on a grid: the query is one of them.
TEST(ExactPrompt, SelfAttentionByBruteForce) {
  Prompt prompt = Prompt::plain(Gaussian(Matrix::Identity(1, 1)));
  prompt.include_query = true;
  prompt.sink_logits = {0.3};
  const Attention attention = Attention::from_uv(Matrix::Constant(1, 1, 0.8), Matrix::Ones(1, 1));
  const double z = 1.2, a = 0.8 * z, step = 0.1;
  double mean = 0, self = 0, sink = 0, square = 0, entropy = 0;
  for (double g = -8; g <= 8; g += step) {
    for (double h = -8; h <= 8; h += step) {
      const double p = step * step * std::exp(-0.5 * (g * g + h * h)) / (2 * M_PI);
      const double wg = std::exp(a * g), wh = std::exp(a * h), wz = std::exp(a * z),
                   w0 = std::exp(0.3);
      const double Z = wg + wh + wz + w0, T = (wg * g + wh * h + wz * z) / Z;
      mean += p * T;
      square += p * (T - a) * (T - a);
      self += p * wz / Z;
      sink += p * w0 / Z;
      for (const double w : {wg, wh, wz, w0}) entropy -= p * w / Z * std::log(w / Z);
    }
  }
  ExactPrompt exact(prompt, attention, Vector::Constant(1, z));
  EXPECT_TRUE(close(exact.expected_output(3)[0], mean, 1e-10));
  EXPECT_TRUE(close(exact.error_parts(Metric::output, 3).total(), square, 1e-10));
  EXPECT_TRUE(close(exact.weights(3)[1], self, 1e-10));
  EXPECT_TRUE(close(exact.weights(3)[2], sink, 1e-10));
  EXPECT_TRUE(close(exact.weights(3).sum(), 1, 1e-12));
  EXPECT_TRUE(close(exact.score_functions(3).entropy, entropy, 1e-10));
}

void expect_same(ExactPrompt one, ExactPrompt other, std::int64_t L) {
  EXPECT_TRUE(close(one.expected_output(Length(L)), other.expected_output(Length(L)), 1e-12, 1e-3));
  EXPECT_TRUE(close(one.variance(Length(L)), other.variance(Length(L)), 1e-11));
  EXPECT_TRUE(close(one.score_functions(Length(L)).free_energy,
                    other.score_functions(Length(L)).free_energy, 1e-12));
}

TEST(ExactPrompt, OrderAndSplittingOfGroupsChangeNothing) {
  const Attention T = Attention::from_uv(Matrix{{0.9, 0.2}, {0.0, 1.1}}, Matrix::Identity(2, 2));
  const Vector z{{1.0, -0.6}};
  Prompt prompt;
  prompt.groups = {{.mu = Sphere(2, 2), .share = 0.5},
                   {.mu = Gaussian(Matrix::Identity(2, 2)), .share = 0.25, .bias = 0.7},
                   {.mu = Rademacher(2), .count = 3}};
  prompt.sink_logits = {0.4};
  Prompt turned = prompt;
  std::swap(turned.groups[0], turned.groups[2]);
  expect_same(ExactPrompt(prompt, T, z), ExactPrompt(turned, T, z), 27);
  Prompt split = prompt;
  split.groups[0].share = 0.25;
  split.groups.push_back(split.groups[0]);
  expect_same(ExactPrompt(prompt, T, z), ExactPrompt(split, T, z), 27);
}

TEST(ExactPrompt, SharesOfZeroAndOne) {
  const Attention T = Attention::from_uv(Matrix{{0.9, 0.2}, {0.0, 1.1}}, Matrix::Identity(2, 2));
  const Vector z{{1.0, -0.6}};
  const AnyMeasure sphere = Sphere(2, 2), gauss = Gaussian(Matrix::Identity(2, 2));
  Prompt prompt;
  prompt.groups = {{.mu = sphere, .share = 1}, {.mu = gauss, .share = 0, .bias = 5}};
  expect_same(ExactPrompt(prompt, T, z), ExactPrompt(Prompt::plain(sphere), T, z), 30);
  EXPECT_EQ(ExactPrompt(prompt, T, z).weights(Length(30))[1], 0);
  EXPECT_TRUE(close(ExactPrompt(prompt, T, z).expected_output(Length::infinity()),
                    sphere.tilted_mean(T.tilt(z)), 1e-14));
}

TEST(ExactPrompt, LongPromptsTendToTheLimitByShare) {
  Prompt prompt;
  prompt.groups = {{.mu = Sphere(2, 2), .share = 0.3},
                   {.mu = Gaussian(Matrix::Identity(2, 2)), .share = 0.7, .bias = 0.5}};
  prompt.given = Matrix{{3.0, -1.0}};
  const Attention attention = some_attention(2);
  const Vector z{{1.0, 0.5}};
  ExactPrompt exact(prompt, attention, z);
  const Vector T = exact.expected_output(Length::infinity());
  EXPECT_TRUE(close(T, attention(*limit_measure(prompt), z), 1e-14));
  const double near = (exact.expected_output(10001) - T).norm();
  const double far = (exact.expected_output(1000001) - T).norm();
  EXPECT_TRUE(close(near / far, 100, 0.01));
  EXPECT_LT(far, 1e-4);
}

TEST(ExactPrompt, AlibiSaturates) {
  Prompt prompt = Prompt::plain(Sphere(2, 2));
  prompt.bias = {.kind = BiasKind::alibi, .slope = 0.2};
  const Attention attention = some_attention(2);
  ExactPrompt exact(prompt, attention, Vector{{1.0, 0.5}});
  const Vector end = exact.expected_output(Length::infinity());
  EXPECT_TRUE(close(exact.expected_output(400), end, 1e-12));
  EXPECT_FALSE(close(exact.expected_output(20), end, 1e-5));
  EXPECT_LT(exact.effective_sample_size(100000), 12);
  EXPECT_LT(exact.error_parts(Metric::output, 400).bias2, 1e-20);
  EXPECT_GT(exact.error_parts(Metric::output, 400).variance, 1e-2);
}

}  // namespace
}  // namespace esscher
