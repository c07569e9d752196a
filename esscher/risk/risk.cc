#include "esscher/risk/risk.h"

#include <algorithm>
#include <memory>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/batch.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/detail/on_nodes.h"
#include "esscher/risk/quadrature.h"
#include "esscher/risk/query_risk.h"
#include "esscher/risk/sample_risk.h"

namespace esscher {
namespace {

constexpr Index kPrompts = 32;  // per batch

RiskChoice choose_several(const AnyTask& task, Engine engine) {
  if (engine == Engine::exact || engine == Engine::quadrature) {
    throw CapabilityError(
        "risk: several heads have no formula at any length; engine \"auto\" or "
        "\"direct\" simulates them");
  }
  const Engine by = batch_engine(task, engine);
  return {RiskMethod::fresh_prompts, by,
          by == Engine::sampled
              ? "Several heads have no formula; Gaussian features need no tokens."
              : "Several heads have no formula; their prompts are drawn token by token."};
}

// Fresh prompts, in batches.
Estimate mean_loss(const Batch& batch, std::span<const Readout> heads, const RiskOptions& options,
                   Engine engine) {
  const std::int64_t batches = std::max<std::int64_t>(2, (options.draws + kPrompts - 1) / kPrompts);
  const Stream stream = options.stream.split(1);
  Moments losses;
  for (std::int64_t i = 0; i < batches; ++i) {
    losses.add(batch(heads, stream.split(static_cast<std::uint64_t>(i))).loss);
  }
  Estimate mean = losses.estimate(engine);
  mean.n = batches * kPrompts;
  return mean;
}

}  // namespace

RiskChoice choose_risk(const AnyTask& task, std::size_t heads, ModelKind kind, Length length,
                       Engine engine) {
  if (heads == 0) throw_argument("risk", "heads", "an empty list", "at least one head");
  if (heads > 1) return choose_several(task, engine);
  if (engine == Engine::sampled) {
    throw CapabilityError("task " + task.name() +
                          ": no sampled engine for the risk of one head; use exact or direct");
  }
  if (!task.has_formulas()) {
    return {RiskMethod::draws, engine == Engine::quadrature ? Engine::exact : engine,
            "Formulas exist for linear regression with Gaussian features; the task is " +
                task.name() + "."};
  }
  if (engine == Engine::direct) {
    return {RiskMethod::draws, engine, "The engine direct was asked for."};
  }
  if (length.is_infinite() || kind == ModelKind::linear) {
    return {RiskMethod::closed_form, Engine::exact, "The risk has a closed form."};
  }
  return {RiskMethod::quadrature, Engine::quadrature,
          "Softmax at finite length is exact over tokens; tasks and queries are quadrature nodes."};
}

Estimate risk(const AnyTask& task, std::span<const Readout> heads, ModelKind kind, Length length,
              const RiskOptions& options) {
  task.check();
  const RiskChoice choice = choose_risk(task, heads.size(), kind, length, options.engine);
  switch (choice.method) {
    case RiskMethod::closed_form:
      return {linear_risk(task.regression(), heads[0], length), 0, 0, Engine::exact};
    case RiskMethod::quadrature:
      return softmax_risk(task.regression(), heads[0], length,
                          {.log2_nodes = options.log2_nodes, .scramblings = options.scramblings},
                          options.stream.split(1));
    case RiskMethod::draws:
      return simulated_risk(task.drawn(), heads[0], kind, length, options.draws,
                            options.stream.split(1), choice.engine);
    case RiskMethod::fresh_prompts: break;
  }
  return mean_loss(Batch(task, kind, choice.engine, length, kPrompts, true), heads, options,
                   choice.engine);
}

Estimate risk(const AnyTask& task, const Readout& head, ModelKind kind, Length length,
              const RiskOptions& options) {
  return risk(task, std::span(&head, 1), kind, length, options);
}

namespace {

const Readout& sharpest(const LinearRegressionTask& task, std::span<const Readout> heads) {
  const auto sharpness = [&](const Readout& at) {
    return (score_forms(task, at).query * task.query_cov).trace();
  };
  return *std::ranges::max_element(heads, {}, sharpness);
}

}  // namespace

RiskFunction detail::risk_on_nodes(const LinearRegressionTask& task, std::int64_t L,
                                   const RiskOptions& options, std::span<const Readout> near,
                                   Scrambling scrambling) {
  const NodeTables tables(L);
  if (near.empty()) {
    const auto risk = std::make_shared<const SoftmaxRisk>(
        task, tables, regression_nodes(task, options.log2_nodes, options.stream));
    return [risk](const Readout& at, Readout* g) { return (*risk)(at, g); };
  }
  const ScoreForms forms = score_forms(task, sharpest(task, near));
  if (std::ranges::all_of(near, [&](const Readout& at) { return is_block(task, at); })) {
    const Matrix normals = query_normals(task, options.log2_nodes, options.stream, scrambling);
    return QueryRisk(task, tables, query_nodes(task, normals, forms));
  }
  const Matrix normals = pair_normals(task, options.log2_nodes, options.stream, scrambling);
  const auto risk =
      std::make_shared<const SoftmaxRisk>(task, tables, regression_nodes(task, normals, forms));
  return [risk](const Readout& at, Readout* g) { return (*risk)(at, g); };
}

RiskFunction risk_function(const AnyTask& task, ModelKind kind, Length length,
                           const RiskOptions& options, std::span<const Readout> near) {
  task.check();
  const RiskChoice choice = choose_risk(task, 1, kind, length, options.engine);
  if (choice.method == RiskMethod::draws) {
    return SampleRisk(task.drawn(), kind, length, options.draws, options.stream, choice.engine);
  }
  const LinearRegressionTask& regression = task.regression();
  if (choice.method == RiskMethod::closed_form) {
    return [regression, length](const Readout& at, Readout* g) {
      return linear_risk(regression, at, length, g);
    };
  }
  return detail::risk_on_nodes(regression, length.count(), options, near, Scrambling::linear);
}

}  // namespace esscher
