#include "esscher/risk/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/start.h"
#include "tests/risk/regression_cases.h"
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

using Spread = std::vector<Moments>;  // one per entry of flat()

Spread spread(const Batch& batch, const std::vector<Readout>& heads, std::uint64_t seed, int n) {
  Spread out;
  for (int i = 0; i < n; ++i) {
    const Vector f = flat(batch(heads, Stream(seed).split(static_cast<std::uint64_t>(i))));
    out.resize(static_cast<std::size_t>(f.size()));
    for (std::size_t k = 0; k < out.size(); ++k) out[k].add(f(static_cast<Index>(k)));
  }
  return out;
}

// Entries that are zero in every draw (the last column of U) have no spread.
Estimate rounded(const Moments& m) {
  Estimate out = m.estimate(Engine::sampled);
  out.std_error += 1e-13;
  return out;
}

void expect_same_law(const Spread& x, const Spread& y) {
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    EXPECT_TRUE(agree(rounded(x[k]), rounded(y[k]))) << "entry " << k;
  }
}

TEST(Batch, SampledGradientsEqualDirectOnesInLaw) {
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
          const Batch sampled(task, kind, Engine::sampled, L, 1, false);
          const Batch direct(regression_task(task), kind, Engine::direct, L, 1, false);
          const int n = H == 1 ? 12000 : 2000;
          expect_same_law(spread(sampled, heads, 1, n), spread(direct, heads, 2, n));
        }
      }
    }
  }
}

// Tilt and functional nearly parallel on a short prompt: the noise of the mean and of the
// covariance are strongly correlated there.
TEST(Batch, NoiseOfMeanAndCovarianceIsCorrelated) {
  Readout head = random_head(60, 4, 0.1);
  head.r += Vector::Unit(4, 3);
  head.U.row(3).array() += 1.5;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    SCOPED_TRACE(name(kind));
    const Batch sampled(small_task(), kind, Engine::sampled, 2, 1, false);
    const Batch direct(regression_task(small_task()), kind, Engine::direct, 2, 1, false);
    expect_same_law(spread(sampled, {head}, 1, 40000), spread(direct, {head}, 2, 40000));
  }
}

// Features of every law: the built-in task against the same as a task of one's own, whose tokens the
// measures draw.
TEST(Batch, FeaturesInLanesEqualDrawnTokensInLaw) {
  LinearRegressionTask task = small_task();
  for (const Features features : {Features::rademacher, Features::uniform, Features::sphere}) {
    task.features = features;
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      for (const std::size_t H : {1U, 2U}) {
        SCOPED_TRACE(std::string(name(features)) + " " + std::string(name(kind)) + " H " +
                     std::to_string(H));
        std::vector<Readout> heads;
        for (std::size_t h = 0; h < H; ++h) heads.push_back(random_head(20 + h, 4, 0.5));
        const Batch lanes(task, kind, Engine::direct, 9, 1, true);
        const Batch draws(regression_task(task), kind, Engine::direct, 9, 1, true);
        expect_same_law(spread(lanes, heads, 1, 2000), spread(draws, heads, 2, 2000));
      }
    }
  }
}

TEST(Batch, LinearLossMatchesItsClosedForm) {
  const LinearRegressionTask task = small_task();
  const std::vector<Readout> head = {random_head(30, 4, 0.4)};
  for (const Length L : {Length(3), Length(1'000'000'000'000), Length::infinity()}) {
    Readout gradient = Readout::zero(4);
    const double risk = linear_risk(task, head[0], L, &gradient);
    const Batch batch(task, ModelKind::linear, Engine::sampled, L, 64, true);
    const Spread s = spread(batch, head, 3, 400);
    EXPECT_TRUE(agrees(s[0].estimate(Engine::sampled), risk)) << L.text();
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_TRUE(agrees(rounded(s[2 + i]), gradient.U.data()[i])) << i;
    }
    for (Index i = 0; i < 4; ++i) {
      EXPECT_TRUE(agrees(rounded(s[static_cast<std::size_t>(18 + i)]), gradient.r(i)));
    }
  }
}

constexpr Features kFeatures[] = {Features::gaussian, Features::rademacher, Features::uniform,
                                  Features::sphere};

// The loss as a function of the parameters, with the prompts held fixed, has the gradient reported.
void expect_derivative(const Batch& batch, const std::string& what) {
  std::vector<Readout> heads = {random_head(40, 4, 0.5), random_head(41, 4, 0.5)};
  const std::vector<Readout> gradient = batch(heads, Stream(4)).gradient;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const auto loss = [&](const Readout& at, Readout* slope) {
      std::vector<Readout> moved = heads;
      moved[h] = at;
      if (slope != nullptr) *slope = gradient[h];
      return batch(moved, Stream(4)).loss;
    };
    EXPECT_TRUE(testing::readout_gradient_check(loss, heads[h])) << what << " head " << h;
  }
}

// Prompts of the built-in task are attended in float; tests/risk/head_lanes_test.cc compares them.
TEST(Batch, DirectGradientIsTheDerivative) {
  LinearRegressionTask task = small_task();
  for (const Features features : kFeatures) {
    task.features = features;
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      const std::string what = std::string(name(features)) + " " + std::string(name(kind));
      expect_derivative({task, kind, Engine::direct, Length::infinity(), 6, false}, what + " inf");
      expect_derivative({regression_task(task), kind, Engine::direct, 8, 6, false}, what + " 8");
    }
  }
}

// Tasks and queries are the same at every length, so prompt by prompt the loss of long prompts
// differs from the limit's by the noise of the prompt alone. The mean of that is of order 1/L, far
// below the standard error over kPrompts prompts, which is of order 1/sqrt(L kPrompts).
TEST(Batch, DirectLimitIsReachedByLongPrompts) {
  LinearRegressionTask task = small_task();
  const std::vector<Readout> heads = {random_head(40, 4, 0.15), random_head(41, 4, 0.15)};
  for (const Features features : kFeatures) {
    task.features = features;
    double limit[2];
    for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      constexpr std::uint64_t kPrompts = 64;
      const Batch prompt(task, kind, Engine::direct, 10000, 1, false);
      const Batch infinite(task, kind, Engine::direct, Length::infinity(), 1, false);
      Moments gap, at;
      for (std::uint64_t i = 0; i < kPrompts; ++i) {
        const double there = infinite(heads, Stream(6).split(i)).loss;
        gap.add(prompt(heads, Stream(6).split(i)).loss - there);
        at.add(there);
      }
      limit[kind == ModelKind::linear] = at.mean();
      EXPECT_TRUE(agrees(gap.estimate(Engine::direct), 0)) << name(features) << name(kind);
      EXPECT_LT(gap.std_error(), 0.01 * at.mean()) << "too blunt to see a gap of 6 %";
    }
    // Gaussian tokens: m_a = G a, so both models are one in the limit, and only then.
    EXPECT_EQ(bool(close(limit[0], limit[1], 1e-9)), features == Features::gaussian);
  }
}

TEST(Batch, SameBitsForAnyThreadCount) {
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const Batch batch(small_task(), kind, Engine::sampled, 30, 50, false);
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

TEST(Batch, RefusesWhatDoesNotExist) {
  LinearRegressionTask task = small_task();
  using E = Engine;
  EXPECT_THROW(Batch(task, ModelKind::softmax, E::sampled, 0, 8, false), ArgumentError);
  EXPECT_THROW(Batch(task, ModelKind::softmax, E::sampled, 5, 0, false), ArgumentError);
  task.features = Features::sphere;
  EXPECT_THROW(Batch(task, ModelKind::softmax, E::sampled, 5, 8, false), CapabilityError);
}

// The built-in task and the same as a task of one's own: one loss, one gradient, two addresses.
TEST(Batch, ATaskOfOnesOwnHasTheSameLoss) {
  const LinearRegressionTask regression =
      LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  const Task task = regression_task(regression);
  const std::vector<Readout> heads{balanced_start(3, 0.7), balanced_start(3, -0.3)};
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const Batch own(task, kind, Engine::direct, 15, 8, true);
    const Batch twin(regression, kind, Engine::direct, 15, 8, true);
    Moments a, b;
    for (std::uint64_t i = 0; i < 600; ++i) {
      a.add(own(heads, Stream(1).split(i)).loss);
      b.add(twin(heads, Stream(2).split(i)).loss);
    }
    EXPECT_TRUE(agree(a.estimate(Engine::direct), b.estimate(Engine::direct))) << name(kind);
    expect_derivative({task, kind, Engine::direct, 15, 10, false}, "own");
    expect_derivative({task, kind, Engine::direct, Length::infinity(), 10, false}, "own, inf");
  }
}

TEST(Batch, ChoosesItsEngine) {
  LinearRegressionTask task = small_task();
  EXPECT_EQ(batch_engine(task, Engine::automatic), Engine::sampled);
  EXPECT_EQ(batch_engine(task, Engine::direct), Engine::direct);
  EXPECT_THROW(batch_engine(task, Engine::exact), CapabilityError);
  task.features = Features::uniform;
  EXPECT_EQ(batch_engine(task, Engine::automatic), Engine::direct);
  const std::string refused = testing::message_of<CapabilityError>(
      [&] { return batch_engine(regression_task(small_task()), Engine::sampled); });
  EXPECT_NE(refused.find("direct"), std::string::npos) << refused;
}

}  // namespace
}  // namespace esscher
