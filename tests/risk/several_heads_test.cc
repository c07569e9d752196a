// The function of several heads against the batches that it is made of, and its gradient by differences.
#include "esscher/risk/several_heads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/risk/batch.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::general_task;
using testing::random_readout;

const std::vector<Readout>& two_heads() {
  static const std::vector<Readout> heads{random_readout(3, 0.5, Stream(2)),
                                          random_readout(3, 0.7, Stream(3))};
  return heads;
}

TEST(SeveralHeads, AreTheMeanOverTheSameBatchesAtEveryCall) {
  const LinearRegressionTask task = general_task(2, Stream(1));
  RiskOptions options;
  options.draws = 65;  // three batches of 32
  options.stream = Stream(4);
  const HeadsRiskFunction f = heads_risk_function(task, ModelKind::softmax, 10, options);
  const Batch batch(task, ModelKind::softmax, Engine::automatic, 10, 32, true);
  double mean = 0;
  for (std::uint64_t i = 0; i < 3; ++i) mean += batch(two_heads(), Stream(4).split(i)).loss / 3;
  EXPECT_NEAR(f(two_heads(), nullptr), mean, 1e-15 * mean);
  EXPECT_EQ(f(two_heads(), nullptr), f(two_heads(), nullptr));
}

TEST(SeveralHeads, HaveTheGradientOfTheirFunction) {
  const LinearRegressionTask task = general_task(2, Stream(1));
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const HeadsRiskFunction f = heads_risk_function(task, kind, 10, {.draws = 200});
    const Readout turn = random_readout(3, 1, Stream(5));
    const auto along = [&](double h) {
      std::vector<Readout> heads = two_heads();
      heads[1].U += h * turn.U;
      heads[1].r += h * turn.r;
      return f(heads, nullptr);
    };
    std::vector<Readout> gradient;
    f(two_heads(), &gradient);
    const double h = 0.02;  // draws and weights are float32, so that steps cannot be small
    const double slope = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h);
    const double found = gradient[1].U.cwiseProduct(turn.U).sum() + gradient[1].r.dot(turn.r);
    EXPECT_NEAR(found, slope, 1e-3 * std::abs(slope)) << name(kind);
  }
}

TEST(SeveralHeads, RefuseWhatTheyCannotDo) {
  const LinearRegressionTask task = general_task(2, Stream(1));
  EXPECT_THROW((void)heads_risk_function(task, ModelKind::softmax, 10, {.engine = Engine::exact}),
               CapabilityError);
  const HeadsRiskFunction f = heads_risk_function(task, ModelKind::softmax, 10, {.draws = 32});
  EXPECT_THROW(f({}, nullptr), ArgumentError);
  const std::vector<Readout> wrong{random_readout(2, 0.5, Stream(2))};
  EXPECT_THROW(f(wrong, nullptr), DimensionError);
}

}  // namespace
}  // namespace esscher
