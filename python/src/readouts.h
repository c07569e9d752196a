// Readouts (U, r) of a head as pairs of arrays.
#pragma once

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
inline py::tuple layer_out(const Layer& layer) {
  py::list heads;
  for (const LayerHead& head : layer.heads) {
    heads.append(py::make_tuple(std::string(name(head.kind)), out(MatrixView(head.U)),
                                out(MatrixView(head.V))));
  }
  return py::make_tuple(out(MatrixView(layer.W)), heads);
}

}  // namespace esscher::python
