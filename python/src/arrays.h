// Arrays between NumPy and Eigen. Input: anything with the array, buffer or DLPack protocol (a
// list, a torch tensor), real dtypes only. Row-major float64 is read in place, without a copy;
// everything else is converted once. The owner keeps the memory alive while the GIL is released.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string_view>

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/json/json.h"
#include "esscher/tilt/tilt.h"

namespace esscher::python {

namespace py = pybind11;

using DoubleArray = py::array_t<double, py::array::c_style>;

// Throws ArgumentError naming dtype or shape. `dims` is the number of axes, 0 for any.
DoubleArray to_array(std::string_view where, std::string_view name, py::handle value, int dims = 0);

struct VectorIn {
  DoubleArray owner;
  [[nodiscard]] Eigen::Map<const Vector> view() const { return {owner.data(), owner.size()}; }
};
struct MatrixIn {
  DoubleArray owner;  // [n,d]
  [[nodiscard]] Eigen::Map<const Matrix> view() const {
    return {owner.data(), owner.shape(0), owner.shape(1)};
  }
};
VectorIn vector_in(std::string_view where, std::string_view name, py::handle value);
MatrixIn matrix_in(std::string_view where, std::string_view name, py::handle value);

// Points [d] or [n,d]; a lone point is one row.
struct PointsIn : MatrixIn {
  bool lone = false;
};
PointsIn points_in(std::string_view where, std::string_view name, py::handle value);

// Tokens [n,d] where they are: float64 or float32 with rows in one piece are not copied, whatever
// the stride between rows; everything else becomes float64.
struct TokensIn {
  py::array owner;
  bool is_float = false;
  [[nodiscard]] Index rows() const { return owner.shape(0); }
  template <class T>
  [[nodiscard]] Rows<T> view() const {
    const Index stride = owner.shape(0) < 2 ? owner.shape(1) : owner.strides(0) / Index{sizeof(T)};
    return {static_cast<const T*>(owner.data()), owner.shape(0), owner.shape(1), stride};
  }
};
TokensIn tokens_in(std::string_view where, py::handle value);

py::array_t<double> out(const VectorView& v);
py::array_t<double> out(const MatrixView& m);
// rows[0] without the first axis if the points were a lone one.
py::object out(const Matrix& rows, const PointsIn& points);

// An integer >= 0, math.inf or "inf".
Length length_in(std::string_view where, py::handle value);
py::object out(Length length);

// JSON as dict, list, str, int, float, bool, None.
py::object out(const Json& json);
// The inverse, for what JSON can hold.
Json json_in(py::handle value);

}  // namespace esscher::python
