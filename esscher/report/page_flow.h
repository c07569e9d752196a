// The report of `esscher icl flow`: risk over time, parameters over time, distance to the known limit.
#pragma once

#include <string>

#include "esscher/report/page.h"
#include "esscher/training/flow_rows.h"

namespace esscher {

// `rerun` is the command that made the run, shown with the figures.
Page flow_page(const FlowRecord& flow, const std::string& rerun);

// Whether a flow ended at the limit of the formula: holds within 1e-6 of it, fails farther away; a
// flow that did not become stationary shows nothing.
Verdict limit_verdict(FlowStatus status, double distance);

}  // namespace esscher
