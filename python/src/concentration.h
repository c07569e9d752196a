// A concentration study as Python sees it.
#pragma once

#include <pybind11/pybind11.h>

#include "esscher/concentration/study.h"
#include "outlet.h"

namespace esscher::python {

// The study, here or in the run of the outlet; without the GIL.
StudyResult run_study(const Problem& problem, const StudyOptions& options, Outlet& outlet);

// {"how", "rows", "fits", "regime", "queries"}: the keys of `esscher concentration --json`, with
// infinity and NaN as numbers.
pybind11::dict out(const StudyResult& result);

}  // namespace esscher::python
