// Results of the labs as dictionaries, the same from a call and from a preset.
#pragma once

#include "arrays.h"
#include "esscher/training/flow.h"
#include "esscher/training/trainer.h"
#include "esscher/training/twin_rows.h"

namespace esscher::python {

// The flow of the setup, watched for Ctrl-C.
FlowResult run_flow(const FlowSetup& setup, ModelKind kind, Length length);
py::dict flow_out(const FlowResult& result, const Parametrisation& space);

// Without the GIL.
CompareResult run_compare(const CompareProblem& problem);
// {"rows": [..], "lengths": [..], "path": [..]}, each row a dictionary of the columns it has.
py::dict compare_out(const CompareResult& result);

// Up to `steps` steps, watched for Ctrl-C; with the GIL held.
py::dict run_trainer(Trainer trainer, std::int64_t steps);

}  // namespace esscher::python
