// A Prompt of Python, or the plain prompt of a measure.
#pragma once

#include <pybind11/pybind11.h>

#include "esscher/prompt/prompt.h"

namespace esscher::python {

// A Prompt, or whatever measure_in takes (python_measure.h).
Prompt prompt_in(const char* where, pybind11::handle value);
// The same, where an infinite prompt is meant: its limit. CapabilityError if it has none.
AnyMeasure limit_in(const char* where, pybind11::handle value);

}  // namespace esscher::python
