#include "esscher/risk/several_heads.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/risk/batch.h"

namespace esscher {
namespace {

constexpr Index kPrompts = 32;  // per batch

void check_heads(std::span<const Readout> heads, Index D) {
  if (heads.empty()) throw_argument("risk", "heads", "an empty list", "at least one head");
  for (const Readout& head : heads) {
    if (head.dim() != D || head.U.rows() != D || head.U.cols() != D) {
      throw DimensionError("risk: a head has U [" + std::to_string(head.U.rows()) + "," +
                           std::to_string(head.U.cols()) + "] and r [" +
                           std::to_string(head.dim()) + "], expected D = " + std::to_string(D));
    }
  }
}

}  // namespace

HeadsRiskFunction heads_risk_function(const AnyTask& task, ModelKind kind, Length length,
                                      const RiskOptions& options) {
  task.check();
  const Engine engine = choose_risk(task, 2, kind, length, options.engine).engine;
  const auto batch = std::make_shared<const Batch>(task, kind, engine, length, kPrompts, true);
  const std::int64_t batches = std::max<std::int64_t>(1, (options.draws + kPrompts - 1) / kPrompts);
  return [batch, batches, D = task.token_dim(), stream = options.stream](
             std::span<const Readout> heads, std::vector<Readout>* gradient) {
    check_heads(heads, D);
    double sum = 0;
    std::vector<Readout> slope(heads.size(), Readout::zero(D));
    for (std::int64_t i = 0; i < batches; ++i) {
      const BatchLoss part = (*batch)(heads, stream.split(static_cast<std::uint64_t>(i)));
      sum += part.loss;
      for (std::size_t h = 0; h < slope.size(); ++h) slope[h] += part.gradient[h];
    }
    const double share = 1 / static_cast<double>(batches);
    for (Readout& head : slope) head *= share;
    if (gradient != nullptr) *gradient = std::move(slope);
    return share * sum;
  };
}

}  // namespace esscher
