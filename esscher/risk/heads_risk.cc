#include "esscher/risk/heads_risk.h"

#include <algorithm>
#include <cstdint>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/batch.h"
#include "esscher/risk/task_batch.h"

namespace esscher {
namespace {

constexpr Index kPrompts = 32;  // per batch

void check(std::span<const Readout> heads, const RiskOptions& options) {
  if (heads.empty()) throw_argument("risk", "heads", "an empty list", "at least one head");
  if (heads.size() > 1 && options.engine == Engine::exact) {
    throw CapabilityError(
        "risk: several heads have no formula at any length; engine \"auto\" or "
        "\"direct\" simulates them");
  }
}

template <class Batch>
Estimate mean_loss(const Batch& batch, std::span<const Readout> heads, const RiskOptions& options,
                   Engine engine) {
  const std::int64_t batches = std::max<std::int64_t>(2, (options.draws + kPrompts - 1) / kPrompts);
  const Stream stream = options.stream.split(1);
  Moments losses;
  for (std::int64_t i = 0; i < batches; ++i) {
    losses.add(batch(heads, stream.split(static_cast<std::uint64_t>(i))).loss);
  }
  Estimate risk = losses.estimate(engine);
  risk.n = batches * kPrompts;
  return risk;
}

}  // namespace

Estimate heads_risk(const LinearRegressionTask& task, std::span<const Readout> heads,
                    ModelKind kind, Length length, const RiskOptions& options) {
  check(heads, options);
  if (heads.size() == 1) return model_risk(task, heads[0], kind, length, options);
  const bool direct = task.features != Features::gaussian || options.engine == Engine::direct;
  const GradientEngine engine = direct ? GradientEngine::direct : GradientEngine::sampled;
  return mean_loss(PromptBatch(task, kind, engine, length, kPrompts, true), heads, options,
                   direct ? Engine::direct : Engine::sampled);
}

Estimate heads_risk(const Task& task, std::span<const Readout> heads, ModelKind kind, Length length,
                    const RiskOptions& options) {
  check(heads, options);
  if (heads.size() == 1) return model_risk(task, heads[0], kind, length, options);
  return mean_loss(TaskBatch(task, kind, length, kPrompts, true), heads, options, Engine::direct);
}

}  // namespace esscher
