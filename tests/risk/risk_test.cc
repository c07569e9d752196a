// A head cut into two, U with r/3 and U with 2r/3, predicts the same: the simulated risk of the two
// must agree with the formula of the one.
#include "esscher/risk/risk.h"

#include <gtest/gtest.h>

#include <vector>

#include "esscher/base/error.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::general_task;
using testing::random_readout;

std::vector<Readout> cut(const Readout& head) {
  return {{head.U, head.r / 3}, {head.U, 2 * head.r / 3}};
}

void expect_same(const Estimate& simulated, const Estimate& formula) {
  EXPECT_GT(simulated.std_error, 0);
  EXPECT_TRUE(testing::agree(simulated, formula));
}

TEST(Risk, OfACutHeadIsThatOfTheHead) {
  LinearRegressionTask task = general_task(2, Stream(31));
  const Readout head = random_readout(3, 0.5, Stream(32));
  RiskOptions options;
  options.draws = 6000;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    for (const Length L : {Length(3), Length(40), Length::infinity()}) {
      SCOPED_TRACE(std::string(name(kind)) + " L = " + L.text());
      const Estimate formula = risk(task, head, kind, L, options);
      const std::vector<Readout> heads = cut(head);
      const Estimate simulated = risk(task, heads, kind, L, options);
      EXPECT_EQ(simulated.engine, Engine::sampled);
      EXPECT_GE(simulated.n, 6000);
      expect_same(simulated, formula);
      expect_same(risk(regression_task(task), heads, kind, L, options), formula);
      EXPECT_EQ(risk(task, std::span(&head, 1), kind, L, options).value, formula.value);
    }
  }
  task.features = Features::uniform;
  const Estimate direct = risk(task, cut(head), ModelKind::softmax, 10, options);
  EXPECT_EQ(direct.engine, Engine::direct);
  expect_same(direct, risk(task, head, ModelKind::softmax, 10, options));
}

TEST(Risk, MethodIsChosenBeforeAnyWorkWithItsReason) {
  const AnyTask gaussian = general_task(2, Stream(35));
  LinearRegressionTask uniform = general_task(2, Stream(35));
  uniform.features = Features::uniform;
  const auto method = [](const AnyTask& task, std::size_t heads, ModelKind kind, Length L,
                         Engine engine = Engine::automatic) {
    const RiskChoice choice = choose_risk(task, heads, kind, L, engine);
    EXPECT_FALSE(choice.reason.empty());
    return choice.method;
  };
  const Length inf = Length::infinity();
  EXPECT_EQ(method(gaussian, 1, ModelKind::softmax, inf), RiskMethod::closed_form);
  EXPECT_EQ(method(gaussian, 1, ModelKind::linear, 7), RiskMethod::closed_form);
  EXPECT_EQ(method(gaussian, 1, ModelKind::softmax, 7), RiskMethod::quadrature);
  EXPECT_EQ(method(gaussian, 1, ModelKind::softmax, 7, Engine::direct), RiskMethod::draws);
  EXPECT_EQ(method(uniform, 1, ModelKind::softmax, 7), RiskMethod::draws);
  EXPECT_EQ(method(gaussian, 2, ModelKind::softmax, 7), RiskMethod::fresh_prompts);
  EXPECT_EQ(choose_risk(gaussian, 2, ModelKind::softmax, 7, Engine::automatic).engine,
            Engine::sampled);
  EXPECT_EQ(choose_risk(uniform, 2, ModelKind::softmax, 7, Engine::automatic).engine,
            Engine::direct);
  EXPECT_THROW(choose_risk(uniform, 2, ModelKind::softmax, 7, Engine::sampled), CapabilityError);
  EXPECT_THROW(choose_risk(gaussian, 1, ModelKind::softmax, 7, Engine::sampled), CapabilityError);
}

TEST(Risk, RefusesWhatDoesNotExist) {
  const LinearRegressionTask task = general_task(2, Stream(33));
  const std::vector<Readout> heads = cut(random_readout(3, 0.5, Stream(34)));
  RiskOptions options;
  EXPECT_THROW((void)risk(task, std::span<const Readout>(), ModelKind::softmax, 10, options),
               ArgumentError);
  options.engine = Engine::exact;
  EXPECT_THROW((void)risk(task, heads, ModelKind::softmax, 10, options), CapabilityError);
}

}  // namespace
}  // namespace esscher
