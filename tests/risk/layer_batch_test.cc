#include "esscher/risk/layer_batch.h"

#include <gtest/gtest.h>

#include <vector>

#include "esscher/estimate/moments.h"
#include "esscher/measure/empirical.h"
#include "esscher/risk/detail/head_visits.h"
#include "esscher/risk/layer_error.h"
#include "esscher/simd/targets.h"
#include "esscher/task/denoising.h"
#include "esscher/task/pool.h"
#include "esscher/task/token_lanes.h"
#include "tests/task/tasks.h"
#include "tests/testing.h"

namespace esscher {
namespace {

ContextTask denoising() {
  DenoisingTask task;
  task.means = {.law = MeansLaw::sphere, .fixed = {}, .count = 3, .dim = 2, .scale = 2};
  task.weights = Vector{{0.2, 0.5, 0.3}};
  task.gamma = 0.6;
  return denoising_task(task);
}

// Labels without noise: the covariance of the tokens is singular.
ContextTask pool() {
  PoolTask task;
  task.pool = Matrix{{1.0, 0.3}, {-0.5, 0.8}};
  task.cov = Matrix::Identity(2, 2);
  return pool_task(task);
}

Layer layer_for(const ContextTask& task, const std::vector<ModelKind>& kinds) {
  const Stream draw(5);
  std::uint64_t next = 0;
  const auto matrix = [&](Index rows) {
    Matrix out(rows, task.token_dim);
    for (double& x : out.reshaped()) x = 0.4 * draw.normal(next++);
    return out;
  };
  Layer out{matrix(task.out_dim), {}};
  for (const ModelKind kind : kinds) {
    out.heads.push_back({kind, matrix(task.token_dim), matrix(task.out_dim)});
  }
  return out;
}

// The tokens of prompt i of a batch in lanes, from their white ones.
Matrix tokens_of(const SharedMixture& law, const Matrix& F, const Stream& stream, std::uint64_t i,
                 Index L) {
  const Index K = law.count();
  std::vector<double> below;
  for (Index k = 0; k + 1 < K; ++k) below.push_back((k > 0 ? below.back() : 0) + law.weights[k]);
  Matrix white(L, F.cols() + K);
  fill_mixture_lanes(F.cols(), below, L, stream.split(1), {&i, 1},
                     {white.data(), static_cast<std::size_t>(white.size())});
  return white.leftCols(F.cols()) * F.transpose() + white.rightCols(K) * law.means;
}

// Law, factor of its covariance, query and target of a prompt.
struct Prompt {
  SharedMixture law;
  Matrix F;
  Vector query, target;
};

Prompt prompt_of(const ContextTask& task, const Stream& stream, std::uint64_t i) {
  if (task.side_by_side) {
    const SideBySide& sides = *task.side_by_side;
    const SideBySide::Draws one = sides.draw(stream.split(0), static_cast<Index>(i), 1);
    return {sides.law(one, 0), sides.factor, one.queries.col(0), one.targets.col(0)};
  }
  const Stream own = stream.split(0).split(i);
  const ContextNode node = draw_node(task, own.split(0));
  const SharedMixture& law = *node.tokens->shared();
  return {law, psd_factor("test", "cov", law.cov), node.query, task.target(node, own.split(1))};
}

// The batch prompt by prompt, on tokens in double.
LayerLoss slow(const ContextTask& task, const Layer& layer, Length L, Index prompts,
               const Stream& stream) {
  LayerLoss out{0, layer.zero()};
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(prompts); ++i) {
    const Prompt p = prompt_of(task, stream, i);
    const AnyMeasure tokens =
        L.is_infinite() ? TokenLaw(p.law).measure()
                        : AnyMeasure(Empirical(tokens_of(p.law, p.F, stream, i, L.count())));
    out.loss += layer_error(layer, tokens, p.query, p.target, &out.gradient, task.loss);
  }
  out.loss /= static_cast<double>(prompts);
  out.gradient *= 1 / static_cast<double>(prompts);
  return out;
}

const std::vector<std::vector<ModelKind>> kHeads{
    {ModelKind::softmax},
    {ModelKind::linear},
    {ModelKind::linear, ModelKind::softmax, ModelKind::softmax}};

// Lanes are float32: 1e-6 of the terms that are summed, which are not much larger than their sum.
void expect_slow(const ContextTask& task, const std::vector<ModelKind>& kinds, Index L) {
  constexpr Index kPrompts = 19;  // the last vector of lanes is not full
  const Layer layer = layer_for(task, kinds);
  const LayerBatch batch(task, L, kPrompts, true);
  EXPECT_TRUE(batch.has_lanes());
  const LayerLoss fast = batch(layer, Stream(11));
  const LayerLoss expected = slow(task, layer, L, kPrompts, Stream(11));
  const std::string where =
      std::string(name(task.type)) + " " + layer.kinds_text() + " L = " + std::to_string(L);
  EXPECT_NEAR(fast.loss, expected.loss, 3e-6 * expected.loss) << where;
  const Vector slope = expected.gradient.parameters();
  EXPECT_LT((fast.gradient.parameters() - slope).norm(), 3e-6 * slope.norm()) << where;
}

TEST(LayerBatch, LanesAreTheirTokensOneByOneOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    ContextTask logistic = testing::two_classes(0.5);
    logistic.loss = TaskLoss::logistic;
    for (const ContextTask& task : {denoising(), testing::two_classes(0.5), logistic, pool()}) {
      for (const std::vector<ModelKind>& kinds : kHeads) {
        for (const Index L : {1, 7, 150}) expect_slow(task, kinds, L);
      }
    }
    for (const std::vector<ModelKind>& kinds : kHeads) expect_slow(denoising(), kinds, 3500);
  }
  simd::force_target("");
}

// Both ways of two outputs are among the cases above.
TEST(LayerBatch, ShortPromptsAreKeptAndLongOnesDrawnAgain) {
  const Index width = 2 + 3;  // of denoising()
  for (const Index heads : {1, 2}) {
    EXPECT_TRUE(fit_two_visits(width, heads, 150));
    EXPECT_FALSE(fit_two_visits(width, heads, 3500));
  }
}

TEST(LayerBatch, InfinitePromptsHaveTheSameLawsAndTargets) {
  for (const ContextTask& task : {denoising(), testing::two_classes(0.5), pool()}) {
    for (const std::vector<ModelKind>& kinds : kHeads) {
      constexpr Index kPrompts = 19;
      const Layer layer = layer_for(task, kinds);
      const LayerLoss got = LayerBatch(task, Length::infinity(), kPrompts, true)(layer, Stream(11));
      const LayerLoss want = slow(task, layer, Length::infinity(), kPrompts, Stream(11));
      EXPECT_NEAR(got.loss, want.loss, 1e-12 * want.loss);
      const Vector slope = want.gradient.parameters();
      EXPECT_LT((got.gradient.parameters() - slope).norm(), 1e-12 * slope.norm());
    }
  }
}

// Components and coordinates of the tokens, against the law.
TEST(LayerBatch, TokensOfLanesHaveTheLawOfTheMixture) {
  const ContextTask task = denoising();
  const Prompt p = prompt_of(task, Stream(3), 0);
  constexpr Index kTokens = 40000;
  const Matrix z = tokens_of(p.law, p.F, Stream(4), 0, kTokens);
  const SharedMixture& law = p.law;
  const Vector mean = law.means.transpose() * law.weights;
  const Matrix second = law.cov + law.means.transpose() * law.weights.asDiagonal() * law.means;
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j <= i; ++j) {
      Moments products, values;
      for (Index l = 0; l < kTokens; ++l) {
        products.add(z(l, i) * z(l, j));
        values.add(z(l, i));
      }
      EXPECT_TRUE(testing::agrees(products.estimate(Engine::direct), second(i, j)));
      EXPECT_TRUE(testing::agrees(values.estimate(Engine::direct), mean[i]));
    }
  }
}

TEST(LayerBatch, OtherLawsAndInfinitePromptsHaveNoLanes) {
  EXPECT_FALSE(LayerBatch(testing::index_on_the_line(), 10, 4, true).has_lanes());
  EXPECT_FALSE(LayerBatch(testing::two_classes(0.5), Length::infinity(), 4, true).has_lanes());
}

}  // namespace
}  // namespace esscher
