// A concentration study as Python sees it.
#pragma once

#include <pybind11/pybind11.h>

#include "esscher/concentration/study.h"

namespace esscher::python {

// {"how", "rows", "fits", "regime", "queries"}: the keys of `esscher concentration --json`, with
// infinity and NaN as numbers.
pybind11::dict out(const StudyResult& result);

}  // namespace esscher::python
