#include "esscher/risk/sample_risk.h"

#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/quadrature.h"
#include "esscher/training/flow.h"
#include "esscher/training/start.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::general_task;
using testing::random_readout;

TEST(TaskRisk, GaussianFeaturesGiveTheClosedForms) {
  LinearRegressionTask task = general_task(2, Stream(1));
  task.query_noise = true;
  const Task general = regression_task(task);
  const Readout at = random_readout(3, 0.4, Stream(2));
  for (ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    EXPECT_TRUE(agrees(simulated_risk(general, at, kind, Length::infinity(), 40000, Stream(3)),
                       limit_risk(task, at)));
  }
  EXPECT_TRUE(agrees(simulated_risk(general, at, ModelKind::linear, 7, 20000, Stream(4)),
                     linear_risk(task, at, 7)));
  EXPECT_TRUE(agree(simulated_risk(general, at, ModelKind::softmax, 7, 20000, Stream(5)),
                    softmax_risk(task, at, 7, {10, 8}, Stream(6))));
}

TEST(TaskRisk, LongPromptsTendToTheTiltedMoments) {
  for (Features features : {Features::rademacher, Features::uniform, Features::sphere}) {
    LinearRegressionTask task = general_task(2, Stream(7));
    task.features = features;
    const Task general = regression_task(task);
    const Readout at = balanced_start(2, 0.7);
    // Same draws of (mu, query, target), so that draw by draw only the prompts differ.
    const DrawFixer infinite(general, Length::infinity(), Engine::direct);
    const auto gap = [&](Length length, std::uint64_t draws) {
      const DrawFixer fixer(general, length, Engine::direct);
      Moments out;
      for (std::uint64_t i = 0; i < draws; ++i) {
        const Stream own = Stream(9).split(i);
        out.add(fixer(own).error(at, ModelKind::softmax, nullptr) -
                infinite(own).error(at, ModelKind::softmax, nullptr));
      }
      return out.estimate(Engine::direct);
    };
    EXPECT_TRUE(agrees(gap(3000, 200), 0)) << name(features);
    EXPECT_FALSE(agrees(gap(2, 2000), 0))
        << name(features) << ": the comparison must see short prompts";
  }
}

TEST(TaskRisk, SampleRiskGradientIsTheDifference) {
  LinearRegressionTask task = general_task(2, Stream(10));
  const Readout at = random_readout(3, 0.5, Stream(11));
  for (Features features : {Features::gaussian, Features::rademacher, Features::sphere}) {
    task.features = features;
    const Task general = regression_task(task);
    for (ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
      for (Length L : {Length(6), Length::infinity()}) {
        const SampleRisk risk(general, kind, L, 100, Stream(12));
        EXPECT_TRUE(testing::readout_gradient_check(risk, at))
            << name(features) << " " << name(kind) << " L = " << L.text();
      }
    }
  }
}

TEST(TaskRisk, ATaskOfOnesOwnTrains) {
  // Learn the mean of a Gaussian prompt: target = <(1,0), mean>, the query says nothing.
  Task task{
      2, "mean", [](const Stream& stream) {
        Vector mean(2);
        stream.fill_normal(0, {mean.data(), 2});
        return ContextDraw{Gaussian(mean, 0.5 * Matrix::Identity(2, 2)), Vector::Zero(2), mean(0)};
      }};
  const SampleRisk risk(task, ModelKind::softmax, Length::infinity(), 200, Stream(13));
  const Parametrisation space{ParameterSpace::UV, 2};
  const FlowResult flow = gradient_flow([&](const Readout& at, Readout* g) { return risk(at, g); },
                                        space, Vector::Zero(space.size()), FlowOptions());
  ASSERT_EQ(flow.status, FlowStatus::stationary);
  const Readout end = space.readout(flow.end().theta);
  EXPECT_NEAR(end.r(0), 1, 1e-6);
  EXPECT_NEAR(end.r(1), 0, 1e-6);
  EXPECT_THROW(simulated_risk(task, Readout::zero(3), ModelKind::softmax, 5, 10, Stream(1)),
               DimensionError);
}

// Gaussian tokens with a mean of their own, different for every draw.
Task shifted_task() {
  return {3, "shifted", [](const Stream& stream) {
            Vector x(9);
            stream.fill_normal(0, {x.data(), 9});
            Matrix F = Matrix::Identity(3, 3);
            F(1, 0) = x(0);
            F(2, 1) = x(1);
            return ContextDraw{Gaussian(0.5 * x.segment(2, 3), 0.4 * F * F.transpose()),
                               x.segment(5, 3), x(8)};
          }};
}

TEST(TaskRisk, PromptsOfGaussianLawsAreAveragedOverExactly) {
  const Readout at = random_readout(3, 0.4, Stream(20));
  for (ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    for (Length L : {Length(1), Length(9)}) {
      // One task, many prompts: the mean over drawn prompts is the value without drawing.
      const Task task = shifted_task();
      const ContextDraw fixed = task.draw(Stream(21));
      const Task one{3, "one", [fixed](const Stream&) { return fixed; }};
      const Estimate exact = simulated_risk(one, at, kind, L, 2, Stream(22), Engine::exact);
      EXPECT_EQ(exact.engine, Engine::quadrature);
      EXPECT_EQ(exact.std_error, 0);
      const Estimate drawn = simulated_risk(one, at, kind, L, 20000, Stream(23), Engine::direct);
      EXPECT_EQ(drawn.engine, Engine::direct);
      EXPECT_TRUE(agrees(drawn, exact.value)) << name(kind) << " L = " << L.text();
      const SampleRisk risk(task, kind, L, 50, Stream(24));
      EXPECT_TRUE(testing::readout_gradient_check(risk, at)) << name(kind) << " L = " << L.text();
    }
  }
}

TEST(TaskRisk, RefusesWhatHasNoFormulaOrNoRoom) {
  LinearRegressionTask task = general_task(2, Stream(30));
  task.features = Features::rademacher;
  const Task general = regression_task(task);
  const Readout at = random_readout(3, 0.4, Stream(31));
  const auto message = [&](Length L, Engine engine) -> std::string {
    try {
      SampleRisk(general, ModelKind::softmax, L, 100, Stream(32), engine);
    } catch (const CapabilityError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(message(7, Engine::exact).find("use engine = direct"), std::string::npos);
  EXPECT_NE(message(7, Engine::sampled).find("use exact or direct"), std::string::npos);
  EXPECT_NE(message(std::int64_t{1} << 40, Engine::automatic).find("8 GiB"), std::string::npos);
  EXPECT_EQ(message(Length::infinity(), Engine::exact), "none");
  EXPECT_EQ(message(7, Engine::automatic), "none");
}

}  // namespace
}  // namespace esscher
