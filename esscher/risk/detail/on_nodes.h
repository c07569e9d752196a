// The risk of one softmax head at finite length as a differentiable function on one set of nodes, as
// risk_function of risk.h describes it. Flows use one set; a minimum whose error is the spread over
// several sets asks for nested scrambling (random/sobol.h).
#pragma once

#include <cstdint>
#include <span>

#include "esscher/random/sobol.h"
#include "esscher/risk/risk.h"
#include "esscher/task/regression.h"

namespace esscher::detail {

RiskFunction risk_on_nodes(const LinearRegressionTask& task, std::int64_t L,
                           const RiskOptions& options, std::span<const Readout> near,
                           Scrambling scrambling);

}  // namespace esscher::detail
