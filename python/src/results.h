// Results of the labs as dictionaries, the same from a call and from a preset.
#pragma once

#include "arrays.h"
#include "esscher/training/chain.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/layer_twins.h"
#include "esscher/training/twin_rows.h"
#include "outlet.h"

namespace esscher::python {

// The flow, watched for Ctrl-C, here or in the run of the outlet; with the GIL held.
py::dict run_flow(const FlowProblem& problem, Outlet& outlet);
py::dict run_flow(const LayerFlowProblem& problem, Outlet& outlet);

// Without the GIL.
CompareResult run_compare(const CompareProblem& problem, Outlet& outlet);
CompareResult run_compare(const LayerCompareProblem& problem, Outlet& outlet);
// {"rows": [..], "lengths": [..], "path": [..]}, each row a dictionary of the columns it has.
py::dict compare_out(const CompareResult& result);

// The plan, watched for Ctrl-C, here or in the run of the outlet; with the GIL held.
py::dict run_training(const TrainPlan& plan, Outlet& outlet);

}  // namespace esscher::python
