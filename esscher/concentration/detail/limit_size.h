// The size of the limit over the queries of a plan.
#pragma once

#include <cstddef>

#include "esscher/concentration/detail/plan.h"
#include "esscher/concentration/limit_size.h"

namespace esscher {

// Of the metric number `k` of the plan.
LimitSize limit_size(Metric metric, std::size_t k, const Problem& problem, const QueryPlan& plan);

}  // namespace esscher
