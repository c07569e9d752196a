#include "esscher/training/layer_map.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/training/chain.h"
#include "esscher/training/layer_flow.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::message_of;

ContextTask denoising() {
  DenoisingTask task;
  task.means.fixed = Matrix{{1.5, 0.0}, {-1.0, 0.5}};
  task.gamma = 0.6;
  return denoising_task(task);
}

ContextTask classes() {
  ClassificationTask task;
  task.means.fixed = Matrix{{1.0, 0.2}, {-0.6, 0.4}};
  task.cov = Matrix::Identity(2, 2);
  return classification_task(task);
}

// Few nodes instead of a lattice, which keeps flows short.
ContextTask drawn_classes() {
  ClassificationTask task;
  task.means = {.law = MeansLaw::gaussian, .fixed = {}, .count = 2, .dim = 2, .scale = 1.5};
  task.cov = Matrix::Identity(2, 2);
  return classification_task(task);
}

const std::vector<ModelKind> kKinds{ModelKind::softmax, ModelKind::linear};

LayerModel model_of(const ContextTask& task, ParameterSpace space, double scale = 1) {
  const Matrix zero = Matrix::Zero(task.token_dim, task.token_dim);
  LayerModel out{.task = task,
                 .start = {zero.bottomRows(task.out_dim), {}},
                 .factors = {.space = space, .score_scale = scale}};
  for (const ModelKind kind : kKinds) {
    out.start.heads.push_back({kind, zero, zero.bottomRows(task.out_dim)});
  }
  return with_torch_start(out, Stream(5));
}

const ParameterSpace kSpaces[] = {ParameterSpace::UV, ParameterSpace::KQV, ParameterSpace::KQVO};

// Of f = <C, parameters of the layer>, whose gradient in the layer is C.
TEST(LayerMap, PullsGradientsBack) {
  for (const ContextTask& task : {denoising(), classes()}) {
    for (const ParameterSpace space : kSpaces) {
      const LayerModel model = model_of(task, space, space == ParameterSpace::UV ? 1 : 0.7);
      const LayerMap map = model.map();
      Vector C(model.start.parameters().size());
      for (Index i = 0; i < C.size(); ++i) C[i] = std::sin(1.0 + static_cast<double>(i));
      EXPECT_TRUE(testing::gradient_check(
          [&](const Vector& theta) { return C.dot(map.layer(theta).parameters()); }, model.theta0(),
          map.pull_back(model.theta0(), model.start.with(C))))
          << name(space);
    }
  }
}

TEST(LayerMap, FactorsOfALayerAreBalancedAndGiveItBack) {
  for (const ContextTask& task : {denoising(), classes()}) {
    for (const ParameterSpace space : {ParameterSpace::KQV, ParameterSpace::KQVO}) {
      const LayerModel model = model_of(task, space, 0.7);
      const LayerMap map = model.map();
      const Vector theta = map.coordinates(model.start);
      EXPECT_TRUE(
          close(Matrix(map.layer(theta).parameters()), Matrix(model.start.parameters()), 1e-13))
          << name(space);
      // Of the linear head, which is the last, K K' - Q Q' is followed by other quantities.
      const Index k2 = task.token_dim * task.token_dim;
      EXPECT_LT(map.conserved(theta).head(k2).cwiseAbs().maxCoeff(), 1e-13) << name(space);
      EXPECT_GT(map.conserved(model.theta0()).head(k2).cwiseAbs().maxCoeff(), 0.01) << name(space);
    }
  }
}

// The flow of factors keeps what it should, and moves the layer otherwise than the flow of U and V.
TEST(LayerMap, FlowsKeepWhatTheyShould) {
  for (const ParameterSpace space : {ParameterSpace::KQV, ParameterSpace::KQVO}) {
    LayerFlowProblem problem{.model = model_of(drawn_classes(), space)};
    problem.flow.t_end = 2;
    problem.risk.log2_nodes = 4;
    const FlowResult flow = layer_flow(problem);
    EXPECT_LT(flow.conserved_drift, 1e-7) << name(space);
    EXPECT_LT(flow.energy_defect, 1e-6) << name(space);
    EXPECT_LT(flow.end().risk, flow.path.front().risk - 0.05) << name(space);
    LayerFlowProblem plain = problem;
    plain.model.factors = {};
    plain.model.theta = {};
    const Layer end = problem.model.map().layer(flow.end().theta);
    const Layer other = plain.model.map().layer(layer_flow(plain).end().theta);
    EXPECT_GT((end.parameters() - other.parameters()).norm(), 0.05) << name(space);
  }
}

// torch.nn.Linear(bias = False): uniform on [-1, 1]/sqrt(fan_in).
TEST(LayerMap, StartsAsTorchDoes) {
  const ContextTask task = classes();
  const Index D = 3, H = 2;
  const double bound = 1 / std::sqrt(3.0);
  double largest = 0, sum = 0;
  Index count = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const LayerMap map = model_of(task, ParameterSpace::KQVO).map();
    const Vector theta = map.torch_start(Stream(9).split(i));
    EXPECT_EQ(theta.head(D - 1).norm(), 0);  // the residual
    const Vector last = theta.tail(D);       // O of the last head
    EXPECT_LE(last.cwiseAbs().maxCoeff(), bound / std::sqrt(static_cast<double>(H)));
    const Vector rest = theta.segment(D - 1, D * D);
    largest = std::max(largest, rest.cwiseAbs().maxCoeff());
    sum += rest.squaredNorm();
    count += rest.size();
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99 * bound);
  EXPECT_TRUE(close(sum / static_cast<double>(count), bound * bound / 3, 0.05));
}

TEST(LayerMap, TrainingMovesFactors) {
  TrainConfig config;
  config.layer = model_of(classes(), ParameterSpace::KQVO);
  config.length = 8;
  config.batch = 16;
  config.half_loss = true;
  config.optimizer.learning_rate = 0.05;
  const Vector before = config.layer->theta0();
  Trainer trainer(config);
  trainer.run(50);
  EXPECT_EQ(trainer.theta().size(), before.size());
  EXPECT_GT((trainer.theta() - before).norm(), 0.05);
  EXPECT_EQ(trainer.layer().parameters(), config.layer->map().layer(trainer.theta()).parameters());
}

TEST(LayerMap, MistakesAreNamed) {
  LayerModel model = model_of(classes(), ParameterSpace::KQV);
  model.family = LayerFamily::scalars;
  EXPECT_NE(message_of<ArgumentError>([&] { (void)model.map(); }).find("parametrisation is KQV"),
            std::string::npos);
  model = model_of(classes(), ParameterSpace::KQV);
  model.factors.key_dim = 1;
  model.theta = {};
  EXPECT_NE(message_of<ArgumentError>([&] { (void)model.theta0(); }).find("key_dim is 1"),
            std::string::npos);
  model.factors = {.space = ParameterSpace::UV, .score_scale = 2};
  EXPECT_NE(message_of<ArgumentError>([&] { (void)model.map(); }).find("score_scale is 2"),
            std::string::npos);
  model.factors = {.space = ParameterSpace::block};
  EXPECT_NE(message_of<ArgumentError>([&] { (void)model.map(); }).find("block"), std::string::npos);
}

}  // namespace
}  // namespace esscher
