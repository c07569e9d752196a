// Readouts (U, r) of a head as pairs of arrays.
#pragma once

#include <pybind11/stl.h>

#include <string>
#include <tuple>

#include "arrays.h"
#include "esscher/risk/layer.h"
#include "esscher/risk/readout.h"

namespace esscher::python {

inline Readout readout_in(const py::object& U, const py::object& r) {
  return {matrix_in("readout", "U", U).view(), vector_in("readout", "r", r).view()};
}

inline py::tuple out(const Readout& readout) {
  return py::make_tuple(out(MatrixView(readout.U)), out(VectorView(readout.r)));
}

// (W, [(kind, U, V), ..])
inline Layer layer_in(const py::object& W, const py::iterable& heads) {
  Layer out{matrix_in("layer", "W", W).view(), {}};
  for (const py::handle item : heads) {
    const auto [kind, U, V] = py::cast<std::tuple<std::string, py::object, py::object>>(item);
    out.heads.push_back({parse_enum<ModelKind>(kind), matrix_in("layer", "U", U).view(),
                         matrix_in("layer", "V", V).view()});
  }
  return out;
}

inline py::tuple layer_out(const Layer& layer) {
  py::list heads;
  for (const LayerHead& head : layer.heads) {
    heads.append(py::make_tuple(std::string(name(head.kind)), out(MatrixView(head.U)),
                                out(MatrixView(head.V))));
  }
  return py::make_tuple(out(MatrixView(layer.W)), heads);
}

}  // namespace esscher::python
