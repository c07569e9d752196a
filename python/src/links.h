// Links of single-index labels, from Python: a name, or a function of an array.
#pragma once

#include <pybind11/pybind11.h>

#include "esscher/measure/link.h"

namespace esscher::python {

Link link_in(const pybind11::object& link, const pybind11::object& coefficients,
             const pybind11::object& kinks);

}  // namespace esscher::python
