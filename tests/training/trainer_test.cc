#include "esscher/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/task_batch.h"
#include "esscher/training/flow.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::close;

Readout random_head(std::uint64_t seed, Index D, double scale) {
  Readout head = Readout::zero(D);
  Stream(seed).fill_normal(0, std::span<double>(head.U.data(), static_cast<std::size_t>(D * D)));
  Stream(seed, 1).fill_normal(0, std::span<double>(head.r.data(), static_cast<std::size_t>(D)));
  head.U *= scale;
  head.r *= scale;
  return head;
}

LinearRegressionTask small_task() {
  LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  task.query_cov = Matrix::Identity(3, 3) * 1.3;
  task.task_variance = 0.6;
  task.noise_variance = 0.2;
  task.query_noise = true;
  return task;
}

struct Spread {
  Vector mean, std_error;
};

// Loss and entries of the gradient, and bounded forms of all their products: a wrong correlation
// between two entries shows in the latter only.
Vector flat(const BatchLoss& batch) {
  const auto squash = [](double x) { return x / (1 + std::abs(x)); };
  std::vector<double> all = {batch.loss, squash(batch.loss)};
  for (const Readout& g : batch.gradient) {
    for (Index i = 0; i < g.U.size(); ++i) all.push_back(g.U.data()[i]);
    for (Index i = 0; i < g.r.size(); ++i) all.push_back(g.r(i));
  }
  const std::size_t n = all.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) all.push_back(squash(10 * all[i] * all[j]));
  }
  return Eigen::Map<Vector>(all.data(), static_cast<Index>(all.size()));
}

Spread spread(const PromptBatch& batch, const std::vector<Readout>& heads, std::uint64_t seed,
              int n) {
  Vector sum, square;
  for (int i = 0; i < n; ++i) {
    const Vector f = flat(batch(heads, Stream(seed).split(static_cast<std::uint64_t>(i))));
    if (i == 0) sum = square = Vector::Zero(f.size());
    sum += f;
    square += f.cwiseAbs2();
  }
  const Vector mean = sum / n;
  return {mean, ((square / n - mean.cwiseAbs2()).cwiseMax(0.0) / n).cwiseSqrt()};
}

void expect_same_law(const Spread& x, const Spread& y) {
  ASSERT_EQ(x.mean.size(), y.mean.size());
  for (Index k = 0; k < x.mean.size(); ++k) {
    EXPECT_TRUE(agree({x.mean(k), x.std_error(k) + 1e-13, 1, Engine::sampled},
                      {y.mean(k), y.std_error(k) + 1e-13, 1, Engine::direct}))
        << "entry " << k;
  }
}

TEST(PromptBatch, SampledGradientsEqualDirectOnesInLaw) {
  LinearRegressionTask noise_free = small_task();
  noise_free.noise_variance = 0;  // singular token covariance
  for (const auto& task : {small_task(), noise_free}) {
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      for (const std::size_t H : {1U, 3U}) {
        std::vector<Readout> heads;
        for (std::size_t h = 0; h < H; ++h) heads.push_back(random_head(10 + h, 4, 0.5));
        for (const std::int64_t L : {1L, 13L}) {
          SCOPED_TRACE(std::string(name(kind)) + " H " + std::to_string(H) + " L " +
                       std::to_string(L));
          const PromptBatch sampled(task, kind, GradientEngine::sampled, L, 1, false);
          const PromptBatch direct(task, kind, GradientEngine::direct, L, 1, false);
          const int n = H == 1 ? 12000 : 2000;
          expect_same_law(spread(sampled, heads, 1, n), spread(direct, heads, 2, n));
        }
      }
    }
  }
}

// Tilt and functional nearly parallel on a short prompt: the noise of the mean and of the
// covariance are strongly correlated there.
TEST(PromptBatch, NoiseOfMeanAndCovarianceIsCorrelated) {
  Readout head = random_head(60, 4, 0.1);
  head.r += Vector::Unit(4, 3);
  head.U.row(3).array() += 1.5;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    SCOPED_TRACE(name(kind));
    const PromptBatch sampled(small_task(), kind, GradientEngine::sampled, 2, 1, false);
    const PromptBatch direct(small_task(), kind, GradientEngine::direct, 2, 1, false);
    expect_same_law(spread(sampled, {head}, 1, 40000), spread(direct, {head}, 2, 40000));
  }
}

// Two heads in a larger space, so that part of each token is never drawn.
TEST(PromptBatch, TwoHeadsWithResidualNoise) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(6);
  task.noise_variance = 0.3;
  const std::vector<Readout> heads = {random_head(20, 7, 0.35), random_head(21, 7, 0.35)};
  const PromptBatch sampled(task, ModelKind::softmax, GradientEngine::sampled, 9, 1, true);
  const PromptBatch direct(task, ModelKind::softmax, GradientEngine::direct, 9, 1, true);
  expect_same_law(spread(sampled, heads, 1, 6000), spread(direct, heads, 2, 6000));
}

TEST(PromptBatch, LinearLossMatchesItsClosedForm) {
  const LinearRegressionTask task = small_task();
  const std::vector<Readout> head = {random_head(30, 4, 0.4)};
  for (const Length L : {Length(3), Length(1'000'000'000'000), Length::infinity()}) {
    Readout gradient = Readout::zero(4);
    const double risk = linear_risk(task, head[0], L, &gradient);
    const PromptBatch batch(task, ModelKind::linear, GradientEngine::sampled, L, 64, true);
    const Spread s = spread(batch, head, 3, 400);
    EXPECT_TRUE(agrees({s.mean(0), s.std_error(0), 1, Engine::sampled}, risk)) << L.text();
    for (Index i = 0; i < 16; ++i) {
      EXPECT_TRUE(agrees({s.mean(2 + i), s.std_error(2 + i) + 1e-15, 1, Engine::sampled},
                         gradient.U.data()[i]))
          << i;
    }
    for (Index i = 0; i < 4; ++i) {
      EXPECT_TRUE(agrees({s.mean(18 + i), s.std_error(18 + i), 1, Engine::sampled}, gradient.r(i)));
    }
  }
}

constexpr Features kFeatures[] = {Features::gaussian, Features::rademacher, Features::uniform,
                                  Features::sphere};

// The loss as a function of the parameters with the prompts frozen has the gradient reported.
void expect_derivative(const PromptBatch& batch, const std::string& what) {
  const std::vector<Readout> heads = {random_head(40, 4, 0.5), random_head(41, 4, 0.5)};
  const BatchLoss at = batch(heads, Stream(4));
  const Readout direction = random_head(42, 4, 1);
  const double step = 1e-5;
  const auto moved = [&](double s) {
    std::vector<Readout> to = heads;
    to[1].U += s * direction.U;
    to[1].r += s * direction.r;
    return batch(to, Stream(4)).loss;
  };
  const double slope = (moved(step) - moved(-step)) / (2 * step);
  const double want =
      at.gradient[1].U.cwiseProduct(direction.U).sum() + at.gradient[1].r.dot(direction.r);
  EXPECT_TRUE(close(slope, want, 1e-7)) << what;
}

TEST(PromptBatch, DirectGradientIsTheDerivative) {
  LinearRegressionTask task = small_task();
  for (const Features features : kFeatures) {
    task.features = features;
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      for (const Length L : {Length(8), Length::infinity()}) {
        expect_derivative({task, kind, GradientEngine::direct, L, 6, false},
                          std::string(name(features)) + " " + std::string(name(kind)) + L.text());
      }
    }
  }
}

// Tasks and queries are the same at every length, so the loss of long prompts nears the limit's.
TEST(PromptBatch, DirectLimitIsReachedByLongPrompts) {
  LinearRegressionTask task = small_task();
  const std::vector<Readout> heads = {random_head(40, 4, 0.15), random_head(41, 4, 0.15)};
  for (const Features features : kFeatures) {
    task.features = features;
    double limit[2];
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      const auto loss = [&](Length L) {
        return PromptBatch(task, kind, GradientEngine::direct, L, 24, false)(heads, Stream(6)).loss;
      };
      const double at = limit[kind == ModelKind::linear] = loss(Length::infinity());
      EXPECT_TRUE(close(loss(40000), at, 0.01)) << name(features) << name(kind);
    }
    // Gaussian tokens: m_a = G a, so both models are one in the limit, and only then.
    EXPECT_EQ(bool(close(limit[0], limit[1], 1e-9)), features == Features::gaussian);
  }
}

TEST(PromptBatch, SameBitsForAnyThreadCount) {
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const PromptBatch batch(small_task(), kind, GradientEngine::sampled, 30, 50, false);
    const std::vector<Readout> head = {random_head(50, 4, 0.5)};
    set_thread_count(1);
    const BatchLoss one = batch(head, Stream(5));
    set_thread_count(3);
    const BatchLoss three = batch(head, Stream(5));
    set_thread_count(0);
    EXPECT_EQ(one.loss, three.loss);
    EXPECT_EQ(one.gradient[0].U, three.gradient[0].U);
    EXPECT_EQ(one.gradient[0].r, three.gradient[0].r);
  }
}

TEST(PromptBatch, RefusesWhatDoesNotExist) {
  LinearRegressionTask task = small_task();
  using E = GradientEngine;
  EXPECT_THROW(PromptBatch(task, ModelKind::softmax, E::sampled, 0, 8, false), ArgumentError);
  EXPECT_THROW(PromptBatch(task, ModelKind::softmax, E::sampled, 5, 0, false), ArgumentError);
  task.features = Features::sphere;
  EXPECT_THROW(PromptBatch(task, ModelKind::softmax, E::sampled, 5, 8, false), CapabilityError);
}

Vector pair(double x, double y) {
  Vector v(2);
  v(0) = x;
  v(1) = y;
  return v;
}

TEST(Optimizer, StepsAreTheTextbookOnes) {
  const Vector g = pair(0.5, -2);
  Vector theta = pair(1, 1);
  OptimizerState state;
  OptimizerOptions sgd{.kind = OptimizerKind::sgd, .learning_rate = 0.1, .momentum = 0.9};
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.95, 1.2), 1e-15));
  optimizer_step(sgd, 2, g, theta, state);  // buffer 1.9 g
  EXPECT_TRUE(close(theta, pair(0.855, 1.58), 1e-15));

  theta = pair(1, 1);
  state = {};
  OptimizerOptions adam{.kind = OptimizerKind::adam, .learning_rate = 0.1, .epsilon = 1e-8};
  optimizer_step(adam, 1, g, theta, state);  // the first step has length lr g/(|g| + eps)
  EXPECT_TRUE(close(theta(0), 1 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14));
  EXPECT_TRUE(close(theta(1), 1 + 0.1 * 2 / (2 + 1e-8), 1e-14));
  optimizer_step(adam, 2, 2 * g, theta, state);
  const double m = (0.9 * 0.1 * 0.5 + 0.1 * 1.0) / (1 - 0.81);
  const double v = (0.999 * 0.001 * 0.25 + 0.001 * 1.0) / (1 - 0.999 * 0.999);
  EXPECT_TRUE(
      close(theta(0), 1 - 0.1 * 0.5 / (0.5 + 1e-8) - 0.1 * m / (std::sqrt(v) + 1e-8), 1e-13));

  theta = pair(1, 1);
  state = {};
  OptimizerOptions adamw = adam;
  adamw.kind = OptimizerKind::adamw;
  adamw.weight_decay = 0.5;
  optimizer_step(adamw, 1, g, theta, state);
  EXPECT_TRUE(close(theta(0), 0.95 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-14));

  theta = pair(1, 1);
  state = {};
  sgd.weight_decay = 0.5;
  sgd.momentum = 0;
  optimizer_step(sgd, 1, g, theta, state);
  EXPECT_TRUE(close(theta, pair(0.9, 1.15), 1e-15));
}

TrainConfig quick(ModelKind model, Length length) {
  TrainConfig config = TrainConfig::authors(model, length);
  config.batch = 24;
  config.optimizer.learning_rate = 0.02;
  config.curve_block = 7;
  config.seed = 99;
  return config;
}

TEST(Trainer, ResumeIsBitIdentical) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    TrainConfig config = quick(ModelKind::softmax, 20);
    config.optimizer.kind = kind;
    config.optimizer.momentum = 0.8;
    config.optimizer.weight_decay = 0.01;
    Trainer whole(config);
    whole.run(50);
    Trainer first(config);
    first.run(23);
    const std::string text = dump(first.state());  // through text, as a file would
    Trainer second(config);
    second.restore(parse_json("state", text));
    second.run(27);
    EXPECT_EQ(dump(whole.state()), dump(second.state()));
    EXPECT_EQ(whole.theta(), second.theta());
    ASSERT_EQ(whole.curve().size(), 7U);
    EXPECT_EQ(whole.curve()[6].last, 49);
  }
}

TEST(Trainer, ThreadCountDoesNotMatter) {
  std::vector<std::string> states;
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    Trainer trainer(quick(ModelKind::softmax, 15));
    trainer.run(20);
    states.push_back(dump(trainer.state()));
  }
  set_thread_count(0);
  EXPECT_EQ(states[0], states[1]);
}

TEST(Trainer, InfiniteSoftmaxIsInfiniteLinearStepByStep) {
  for (const Index heads : {1, 2}) {
    TrainConfig config = quick(ModelKind::softmax, Length::infinity());
    config.heads = heads;
    Trainer softmax(config);
    config.model = ModelKind::linear;
    Trainer linear(config);
    for (int i = 0; i < 30; ++i) {
      softmax.run(1);
      linear.run(1);
      ASSERT_EQ(softmax.theta(), linear.theta());
      ASSERT_EQ(softmax.last_loss(), linear.last_loss());
    }
  }
}

TEST(Trainer, DivergenceIsReportedWithFiniteParameters) {
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    for (const double rate : {30.0, 1e6, 1e200}) {
      TrainConfig config = quick(kind, 10);
      config.init = {InitKind::torch, 0, {}};
      config.optimizer.learning_rate = rate;
      Trainer trainer(config);
      EXPECT_LT(trainer.run(400), 400) << rate;
      EXPECT_EQ(trainer.status(), TrainStatus::diverged);
      EXPECT_TRUE(trainer.theta().allFinite());
      EXPECT_EQ(trainer.run(5), 0);
      EXPECT_EQ(dump(trainer.state()).find("null"), std::string::npos);
    }
  }
}

TEST(Trainer, TrainingLowersTheRisk) {
  TrainConfig config;
  config.task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  config.init = {InitKind::balanced, 0.5, {}};
  config.length = 200;
  config.batch = 64;
  config.optimizer.kind = OptimizerKind::adam;
  config.optimizer.learning_rate = 0.01;
  Trainer trainer(config);
  const double before = limit_risk(config.task, trainer.heads()[0]);
  trainer.run(600);
  EXPECT_LT(limit_risk(config.task, trainer.heads()[0]), 0.2 * before);
  EXPECT_LT(trainer.curve().back().loss, 0.5 * trainer.curve().front().loss);
  EXPECT_GT(trainer.curve().back().std_error, 0);
}

TEST(Trainer, ATaskOfOnesOwn) {
  const LinearRegressionTask regression =
      LinearRegressionTask::with_covariance(power_covariance(2, 0.5));
  const Task task = regression_task(regression);
  const std::vector<Readout> heads{balanced_start(2, 0.7), balanced_start(2, -0.3)};
  for (ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    // The same loss as the built-in task, and its gradient by differences.
    const double loss = TaskBatch(task, kind, 15, 20000, true)(heads, Stream(1)).loss;
    const PromptBatch twin(regression, kind, GradientEngine::direct, 15, 20000, true);
    EXPECT_TRUE(close(loss, twin(heads, Stream(2)).loss, 0.08)) << name(kind);
    const TaskBatch batch(task, kind, 15, 10, false);
    std::vector<Readout> up = heads, down = heads;
    const Matrix step = 1e-6 * Matrix::Ones(3, 3);
    up[1].U += step;
    down[1].U -= step;
    const double slope = (batch(up, Stream(3)).loss - batch(down, Stream(3)).loss) / 2e-6;
    EXPECT_TRUE(close(batch(heads, Stream(3)).gradient[1].U.sum(), slope, 1e-6)) << name(kind);
  }
  TrainConfig config;
  config.own_task = task;
  config.gradient = GradientEngine::direct;
  config.init = {InitKind::balanced, 0.5, {}};
  config.length = 50;
  config.batch = 32;
  config.optimizer.learning_rate = 0.05;
  config.curve_block = 50;
  Trainer trainer(config);
  trainer.run(300);
  EXPECT_LT(trainer.curve().back().loss, 0.7 * trainer.curve().front().loss);
  config.gradient = GradientEngine::sampled;
  EXPECT_THROW(Trainer{config}, CapabilityError);
}

// The sampled stochastic gradient averages to the exact one at the same parameters.
TEST(Trainer, ExactGradientIsTheMeanOfSampledOnes) {
  TrainConfig config = quick(ModelKind::linear, 12);
  Trainer sampled(config);
  config.gradient = GradientEngine::exact;
  Trainer exact(config);
  ASSERT_EQ(sampled.theta(), exact.theta());
  Vector want;
  const double loss = exact.gradient(0, want);
  constexpr int n = 400;
  Vector sum = Vector::Zero(want.size() + 1);
  Vector square = sum;
  Vector g(want.size());
  for (int t = 0; t < n; ++t) {
    Vector all(want.size() + 1);
    all(0) = sampled.gradient(t, g);
    all.tail(want.size()) = g;
    sum += all;
    square += all.cwiseAbs2();
  }
  const Vector mean = sum / n;
  const Vector error = ((square / n - mean.cwiseAbs2()).cwiseMax(0.0) / n).cwiseSqrt();
  EXPECT_TRUE(agrees({mean(0), error(0), n, Engine::sampled}, loss));
  for (Index i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(agrees({mean(i + 1), error(i + 1) + 1e-15, n, Engine::sampled}, want(i))) << i;
  }
}

// Whole runs, not single gradients: the final risks of many seeds have one law.
TEST(Trainer, SampledTrainingEqualsDirectTrainingInLaw) {
  const auto final_risks = [](GradientEngine engine, std::uint64_t first_seed) {
    constexpr int n = 80;
    double sum = 0;
    double square = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + n; ++seed) {
      TrainConfig config = quick(ModelKind::softmax, 8);
      config.init = {InitKind::balanced, 0.4, {}};
      config.optimizer.learning_rate = 0.05;
      config.batch = 8;
      config.gradient = engine;
      config.seed = seed;
      Trainer trainer(config);
      trainer.run(40);
      const double risk = limit_risk(config.task, trainer.heads()[0]);
      sum += risk;
      square += risk * risk;
    }
    const double mean = sum / n;
    return Estimate{mean, std::sqrt((square / n - mean * mean) / n), n, Engine::sampled};
  };
  EXPECT_TRUE(
      agree(final_risks(GradientEngine::sampled, 1000), final_risks(GradientEngine::direct, 2000)));
}

TEST(Trainer, EveryParametrisationAndInitialisationStarts) {
  for (const auto space : {ParameterSpace::UV, ParameterSpace::KQV, ParameterSpace::KQVO}) {
    for (const auto init : {InitKind::torch, InitKind::balanced, InitKind::small_identity}) {
      for (const Index heads : {1, 2, 8}) {
        TrainConfig config = quick(ModelKind::softmax, 6);
        config.batch = 4;
        config.space.space = space;
        config.init = {init, 0.3, {}};
        config.heads = heads;
        Trainer trainer(config);
        trainer.run(3);
        EXPECT_EQ(trainer.step(), 3);
        EXPECT_EQ(trainer.heads().size(), static_cast<std::size_t>(heads));
      }
    }
  }
}

TEST(Trainer, TorchStartHasTheBoundsOfLinearLayers) {
  TrainConfig config = TrainConfig::authors(ModelKind::softmax, 10);
  const Trainer trainer(config);
  const double bound = 1 / std::sqrt(6.0);
  EXPECT_EQ(trainer.theta().size(), 3 * 36 + 6);
  EXPECT_LE(trainer.theta().cwiseAbs().maxCoeff(), bound);
  EXPECT_GT(trainer.theta().cwiseAbs().maxCoeff(), 0.9 * bound);
}

TEST(Trainer, RefusesBadConfigurationsAndStates) {
  TrainConfig config = quick(ModelKind::softmax, 10);
  config.heads = 9;
  EXPECT_THROW(Trainer{config}, ArgumentError);
  config = quick(ModelKind::softmax, 10);
  config.optimizer.learning_rate = -1;
  EXPECT_THROW(Trainer{config}, ArgumentError);
  config = quick(ModelKind::softmax, 10);
  config.gradient = GradientEngine::exact;  // no closed form at finite L without a callback
  EXPECT_THROW(Trainer{config}, CapabilityError);
  config = quick(ModelKind::softmax, 10);
  Trainer trainer(config);
  Json state = trainer.state();
  state["theta"].erase(0);
  EXPECT_THROW(trainer.restore(state), FileError);
  EXPECT_THROW(trainer.restore(Json::object()), FileError);
  state = trainer.state();
  state["seed"] = 1;
  EXPECT_THROW(trainer.restore(state), FileError);
}

}  // namespace
}  // namespace esscher
