#include "esscher/prompt/averages.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/sphere.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;

const Attention kHead = Attention::from_uv(Matrix{{0.8, 0.1}, {-0.2, 0.6}}, Matrix{{1.0, 0.5}});
const Vector kZ{{0.9, -0.4}};

Prompt some_prompt(const AnyMeasure& first) {
  Prompt prompt;
  prompt.groups.push_back({.mu = first, .share = 0.6, .bias = 0.3});
  prompt.groups.push_back({.mu = Gaussian(0.5 * Matrix::Identity(2, 2)), .count = 3});
  prompt.given = Matrix{{1.0, 0.2}, {-0.5, 0.4}};
  prompt.include_query = true;
  prompt.sink_logits = {0.4, -HUGE_VAL};
  return prompt;
}

// The engines tell one mean, within the errors of those that draw.
TEST(PromptAverages, EnginesAgree) {
  const Prompt mixed = some_prompt(Sphere(2, 1.0));
  const Prompt gaussian = some_prompt(Gaussian(Vector::Ones(2), Matrix::Identity(2, 2)));
  for (const auto& [prompt, engine] :
       {std::pair(mixed, Engine::direct), std::pair(gaussian, Engine::direct),
        std::pair(gaussian, Engine::sampled)}) {
    const PromptAverages exact = prompt_averages(prompt, kHead, kZ, 12);
    EXPECT_EQ(exact.engine, Engine::exact);
    EXPECT_EQ(exact.output_error, Vector::Zero(1));
    const std::int64_t n = 4000;
    const PromptAverages drawn = prompt_averages(
        prompt, kHead, kZ, 12, {.engine = engine, .replicates = n, .stream = Stream(5)});
    EXPECT_EQ(drawn.engine, engine);
    EXPECT_TRUE(agrees({drawn.output[0], drawn.output_error[0], n, engine}, exact.output[0]));
    EXPECT_TRUE(close(drawn.output_error[0], std::sqrt(exact.variance / n), 0.1));
    EXPECT_TRUE(close(drawn.variance, exact.variance, 0.2));
    EXPECT_TRUE(close(exact.weights.sum(), 1, 1e-12));
    EXPECT_EQ(exact.weights[exact.weights.size() - 1], 0);
  }
}

// A drawn prompt is the measure that softmax reads.
TEST(DrawnPrompt, IsAMeasureWithWeights) {
  const Vector a = kHead.tilt(kZ);
  const DrawnPrompt drawn = draw_prompt(some_prompt(Sphere(2, 1.0)), kZ, 12, Stream(6));
  EXPECT_EQ(drawn.tokens.rows(), 13);  // 12 tokens and a sink; the other weighs nothing
  const Vector omega = drawn.softmax(a);
  EXPECT_TRUE(
      close(Vector(drawn.tokens.transpose() * omega), drawn.measure(a).tilted_mean(a), 1e-13));
  Prompt far = some_prompt(Sphere(2, 1.0));
  far.sink_logits = {2000};
  far.given.row(0) = 2000 * a.transpose() / a.squaredNorm();
  EXPECT_THROW((void)draw_prompt(far, kZ, 12, Stream(6)).measure(a), CapabilityError);
}

}  // namespace
}  // namespace esscher
