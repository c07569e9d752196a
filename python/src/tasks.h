// Tasks and the options of their risks and flows, from Python.
#pragma once

#include <optional>

#include "arrays.h"
#include "esscher/risk/risk.h"
#include "esscher/training/flow.h"

namespace esscher::python {

// Linear regression, or an object with token_dim and draw(stream) -> (law of tokens, query [D],
// target), whose mistakes are named.
struct TaskIn {
  LinearRegressionTask regression;
  std::optional<Task> own;
  [[nodiscard]] Index token_dim() const { return own ? own->token_dim : regression.token_dim(); }
};
TaskIn task_in(const py::object& object);

// draws, engine, stream.
RiskOptions risk_options_in(const py::dict& given);
// rtol, atol, t_end, stationary, times.
FlowOptions flow_options_in(const py::dict& given);

}  // namespace esscher::python
