// Heads in lanes against the same batch written plainly in double, on the same draws.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/random/normal_sequences.h"
#include "esscher/risk/batch.h"
#include "esscher/simd/targets.h"
#include "esscher/task/token_lanes.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

struct Case {
  ModelKind kind = ModelKind::softmax;
  Features features = Features::gaussian;
  Index d = 5;
  std::size_t heads = 2;
  std::int64_t L = 40;
  Index prompts = 5;
  double scale = 0.4;

  [[nodiscard]] std::string text() const {
    return std::string(name(kind)) + " " + std::string(name(features)) + " d " + std::to_string(d) +
           " H " + std::to_string(heads) + " L " + std::to_string(L) + " prompts " +
           std::to_string(prompts) + " scale " + std::to_string(scale);
  }
  [[nodiscard]] LinearRegressionTask task() const {
    LinearRegressionTask out = testing::general_task(d, Stream(70));
    out.query_noise = true;
    out.features = features;
    return out;
  }
  [[nodiscard]] std::vector<Readout> readouts() const {
    std::vector<Readout> out;
    for (std::size_t h = 0; h < heads; ++h) {
      out.push_back(testing::random_readout(d + 1, scale, Stream(71).split(h)));
    }
    return out;
  }
};

// Real tokens [L,d+1], query and target of a prompt, from the addresses that risk/batch.h reads.
struct Prompt {
  Matrix z;
  Vector query;
  double y = 0;
};

Prompt plain_prompt(const Case& c, const Stream& stream, std::uint64_t prompt) {
  const LinearRegressionTask task = c.task();
  const RegressionSampler sampler(task);
  const Index d = c.d;
  Vector n(2 * d + 1);
  fill_normal_sequences(stream.split(0), {&prompt, 1},
                        {n.data(), static_cast<std::size_t>(n.size())});
  Vector n_x = n.segment(d, d);
  if (c.features != Features::gaussian) {
    Vector token(d + 1);
    fill_token_lanes(c.features, d, 1, stream.split(2), {&prompt, 1},
                     {token.data(), static_cast<std::size_t>(d + 1)});
    n_x = token.head(d);
  }
  const Vector w = std::sqrt(task.task_variance) * n.head(d);
  const Vector x = sampler.Fq * n_x;
  const double sigma = std::sqrt(task.noise_variance);
  Matrix u(c.L, d + 1);
  fill_token_lanes(c.features, d, c.L, stream.split(1), {&prompt, 1},
                   {u.data(), static_cast<std::size_t>(u.size())});
  Prompt out{Matrix(c.L, d + 1), Vector::Zero(d + 1), w.dot(x) + sigma * n(2 * d)};
  out.z.leftCols(d) = u.leftCols(d) * sampler.F;
  out.z.col(d) = out.z.leftCols(d) * w + sigma * u.col(d);
  out.query.head(d) = x;
  return out;
}

BatchLoss plain_batch(const Case& c, const std::vector<Readout>& heads, const Stream& stream) {
  BatchLoss out{0, std::vector<Readout>(heads.size(), Readout::zero(c.d + 1))};
  const double n = static_cast<double>(c.prompts), L = static_cast<double>(c.L);
  for (Index i = 0; i < c.prompts; ++i) {
    const Prompt p = plain_prompt(c, stream, static_cast<std::uint64_t>(i));
    std::vector<Vector> means, products;
    double residual = -p.y;
    for (const Readout& head : heads) {
      const Vector s = p.z * (head.U * p.query), t = p.z * head.r;
      Vector omega = s / L, change = t / L;
      if (c.kind == ModelKind::softmax) {
        omega = (s.array() - s.maxCoeff()).exp();
        omega /= omega.sum();
        change = omega.array() * (t.array() - omega.dot(t));
      }
      means.push_back(p.z.transpose() * omega);
      products.push_back(p.z.transpose() * change);
      residual += head.r.dot(means.back());
    }
    out.loss += residual * residual / n;
    for (std::size_t h = 0; h < heads.size(); ++h) {
      out.gradient[h].r += 2 * residual / n * means[h];
      out.gradient[h].U += 2 * residual / n * products[h] * p.query.transpose();
    }
  }
  return out;
}

// Relative to the largest entry of the gradient of a head.
void expect_plain(const Case& c) {
  SCOPED_TRACE(c.text());
  const Stream stream(72);
  const std::vector<Readout> heads = c.readouts();
  // Gaussian tokens of linear attention are drawn by the engine direct alone.
  const Batch batch(c.task(), c.kind, Engine::direct, c.L, c.prompts, false);
  const BatchLoss got = batch(heads, stream), want = plain_batch(c, heads, stream);
  const double tolerance = 4e-6;  // sums of float scores, whose error grows with their size
  EXPECT_TRUE(testing::close(got.loss, want.loss, tolerance));
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Readout &a = got.gradient[h], &b = want.gradient[h];
    EXPECT_LT((a.U - b.U).cwiseAbs().maxCoeff(), tolerance * b.U.cwiseAbs().maxCoeff()) << h;
    EXPECT_LT((a.r - b.r).cwiseAbs().maxCoeff(), tolerance * b.r.cwiseAbs().maxCoeff()) << h;
  }
}

constexpr Features kFeatures[] = {Features::gaussian, Features::rademacher, Features::uniform,
                                  Features::sphere};

TEST(HeadLanes, EqualThePlainBatchOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    for (const Features features : kFeatures) {
      for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
        expect_plain({.kind = kind, .features = features});
        expect_plain(
            {.kind = kind, .features = features, .d = 1, .heads = 1, .L = 7, .prompts = 1});
        expect_plain(
            {.kind = kind, .features = features, .d = 6, .heads = 3, .L = 65, .prompts = 17});
        expect_plain(
            {.kind = kind, .features = features, .d = 20, .heads = 8, .L = 33, .scale = 0.1});
        expect_plain(
            {.kind = kind, .features = features, .d = 11, .heads = 2, .L = 200, .scale = 0.2});
      }
    }
  }
  simd::force_target("");
}

// One token has all the weight of a long prompt, and prompts of one token have no covariance.
TEST(HeadLanes, HoldSteepScoresAndSingleTokens) {
  for (const Features features : kFeatures) {
    for (const double scale : {1.0, 2.0}) {
      expect_plain({.features = features, .d = 3, .L = 1000, .prompts = 16, .scale = scale});
    }
    const Case one{.features = features, .d = 3, .L = 1, .prompts = 3};
    const Batch batch(one.task(), one.kind, Engine::direct, one.L, one.prompts, false);
    for (const Readout& head : batch(one.readouts(), Stream(72)).gradient) {
      EXPECT_LT(head.U.cwiseAbs().maxCoeff(), 1e-6);
      EXPECT_GT(head.r.cwiseAbs().maxCoeff(), 1e-2);
    }
  }
}

// The engine sampled reads the same tokens with several heads.
TEST(HeadLanes, SampledAndDirectAreOneForSeveralHeads) {
  const Case c;
  const Batch sampled(c.task(), c.kind, Engine::sampled, c.L, c.prompts, false);
  const Batch direct(c.task(), c.kind, Engine::direct, c.L, c.prompts, false);
  EXPECT_EQ(sampled(c.readouts(), Stream(1)).loss, direct(c.readouts(), Stream(1)).loss);
}

TEST(HeadLanes, SameBitsForAnyThreadCount) {
  for (const Features features : kFeatures) {
    const Case c{.features = features, .heads = 3, .L = 70, .prompts = 83};
    const Batch batch(c.task(), c.kind, Engine::direct, c.L, c.prompts, false);
    set_thread_count(1);
    const BatchLoss one = batch(c.readouts(), Stream(5));
    set_thread_count(3);
    const BatchLoss three = batch(c.readouts(), Stream(5));
    set_thread_count(0);
    EXPECT_EQ(one.loss, three.loss);
    for (std::size_t h = 0; h < c.heads; ++h) {
      EXPECT_EQ(one.gradient[h].U, three.gradient[h].U);
      EXPECT_EQ(one.gradient[h].r, three.gradient[h].r);
    }
  }
}

// The gradient of the plain batch, with which the others are compared, is the derivative of its loss.
TEST(HeadLanes, ThePlainGradientIsTheDerivative) {
  for (const Features features : kFeatures) {
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      const Case c{.kind = kind, .features = features, .d = 3, .L = 8};
      const std::vector<Readout> heads = c.readouts();
      const std::vector<Readout> gradient = plain_batch(c, heads, Stream(4)).gradient;
      for (std::size_t h = 0; h < heads.size(); ++h) {
        const auto loss = [&](const Readout& at, Readout* slope) {
          std::vector<Readout> moved = heads;
          moved[h] = at;
          if (slope != nullptr) *slope = gradient[h];
          return plain_batch(c, moved, Stream(4)).loss;
        };
        EXPECT_TRUE(testing::readout_gradient_check(loss, heads[h])) << c.text();
      }
    }
  }
}

}  // namespace
}  // namespace esscher
