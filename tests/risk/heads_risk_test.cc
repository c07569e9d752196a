// A head cut into two, U with r/3 and U with 2r/3, predicts the same: the simulated risk of the two
// must agree with the formula of the one.
#include "esscher/risk/heads_risk.h"

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
  const double error = std::hypot(simulated.std_error, formula.std_error);
  EXPECT_GT(simulated.std_error, 0);
  EXPECT_LT(std::abs(simulated.value - formula.value), testing::kSigmas * error);
}

TEST(HeadsRisk, OfACutHeadIsThatOfTheHead) {
  LinearRegressionTask task = general_task(2, Stream(31));
  const Readout head = random_readout(3, 0.5, Stream(32));
  RiskOptions options;
  options.draws = 6000;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    for (const Length L : {Length(3), Length(40), Length::infinity()}) {
      SCOPED_TRACE(std::string(name(kind)) + " L = " + L.text());
      const Estimate formula = model_risk(task, head, kind, L, options);
      const std::vector<Readout> heads = cut(head);
      const Estimate simulated = heads_risk(task, heads, kind, L, options);
      EXPECT_EQ(simulated.engine, Engine::sampled);
      EXPECT_GE(simulated.n, 6000);
      expect_same(simulated, formula);
      expect_same(heads_risk(regression_task(task), heads, kind, L, options), formula);
      EXPECT_EQ(heads_risk(task, {&head, 1}, kind, L, options).value, formula.value);
    }
  }
  task.features = Features::uniform;
  const Estimate direct = heads_risk(task, cut(head), ModelKind::softmax, 10, options);
  EXPECT_EQ(direct.engine, Engine::direct);
  expect_same(direct, model_risk(task, head, ModelKind::softmax, 10, options));
}

TEST(HeadsRisk, RefusesWhatDoesNotExist) {
  const LinearRegressionTask task = general_task(2, Stream(33));
  const std::vector<Readout> heads = cut(random_readout(3, 0.5, Stream(34)));
  RiskOptions options;
  EXPECT_THROW((void)heads_risk(task, {}, ModelKind::softmax, 10, options), ArgumentError);
  options.engine = Engine::exact;
  EXPECT_THROW((void)heads_risk(task, heads, ModelKind::softmax, 10, options), CapabilityError);
}

}  // namespace
}  // namespace esscher
