// Estimates and engines by name.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "esscher/base/error.h"
#include "esscher/base/estimate.h"

namespace esscher::python {

// (value, std_error, n, engine)
inline pybind11::tuple out(const Estimate& estimate) {
  return pybind11::make_tuple(estimate.value, estimate.std_error, estimate.n,
                              std::string(name(estimate.engine)));
}

inline Engine parse_engine(const std::string& text) {
  for (const Engine e : {Engine::exact, Engine::sampled, Engine::direct, Engine::automatic}) {
    if (text == name(e)) return e;
  }
  throw_argument("engine", "name", text, "auto, exact, sampled or direct");
}

}  // namespace esscher::python
