// Tasks and the options of their risks and flows, from Python.
#pragma once

#include "arrays.h"
#include "esscher/risk/risk.h"
#include "esscher/training/flow.h"

namespace esscher::python {

// Linear regression, or an object with token_dim and draw(stream) -> (law of tokens, query [D],
// target), whose mistakes are named.
AnyTask task_in(const py::object& object);

// draws, engine, stream.
RiskOptions risk_options_in(const py::dict& given);
// rtol, atol, t_end, stationary, times.
FlowOptions flow_options_in(const py::dict& given);
// The coordinates of that name for tokens in R^D.
Parametrisation space_in(const std::string& name, Index token_dim);

}  // namespace esscher::python
