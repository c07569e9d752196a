// Results of the labs as dictionaries, the same from a call and from a preset.
#pragma once

#include "arrays.h"
#include "esscher/training/study.h"
#include "esscher/training/trainer.h"

namespace esscher::python {

// The flow of a risk, watched for Ctrl-C.
FlowResult run_flow(const RiskFunction& risk, const Parametrisation& space, const Vector& theta0,
                    const FlowOptions& options);
py::dict flow_out(const FlowResult& result, const Parametrisation& space);

Json run_compare(const CompareStudy& study);

// Up to `steps` steps, watched for Ctrl-C; with the GIL held.
py::dict run_trainer(Trainer trainer, std::int64_t steps);

}  // namespace esscher::python
