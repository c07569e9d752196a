// Estimates as tuples.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "esscher/base/estimate.h"

namespace esscher::python {

// (value, std_error, n, engine, heavy)
inline pybind11::tuple out(const Estimate& estimate) {
  return pybind11::make_tuple(estimate.value, estimate.std_error, estimate.n,
                              std::string(name(estimate.engine)), estimate.heavy);
}

}  // namespace esscher::python
