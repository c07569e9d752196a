#include "arrays.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "esscher/base/error.h"

namespace esscher::python {
namespace {

bool is_tensor(py::handle value) {
  const auto module = py::cast<std::string>(py::str(py::type::of(value).attr("__module__")));
  return module == "torch" || module.starts_with("torch.");
}

py::array as_numpy(std::string_view where, std::string_view name, py::handle value) {
  const py::module_ numpy = py::module_::import("numpy");
  if (!py::hasattr(value, "__array__") && py::hasattr(value, "__dlpack__")) {
    return numpy.attr("from_dlpack")(value);
  }
  const bool tensor = is_tensor(value);
  try {
    // NumPy has no bfloat16; every bfloat16 is a float32.
    if (tensor && std::string(py::str(value.attr("dtype"))) == "torch.bfloat16") {
      return numpy.attr("asarray")(value.attr("float")());
    }
    return numpy.attr("asarray")(value);
  } catch (py::error_already_set& error) {
    throw ArgumentError(std::string(where) + ": " + std::string(name) +
                        " is not an array: " + std::string(py::str(error.value())) +
                        (tensor ? " The functions of esscher.torch keep gradients." : ""));
  }
}

std::string shape_text(const py::array& array) { return py::str(array.attr("shape")); }

void check_array(std::string_view where, std::string_view name, const py::array& array, int dims) {
  const char kind = array.dtype().kind();
  if (kind != 'f' && kind != 'i' && kind != 'u') {
    throw_argument(where, std::string(name) + " dtype", std::string(py::str(array.dtype())),
                   "float64, float32 or integers");
  }
  if (dims > 0 && array.ndim() != dims) {
    throw DimensionError(std::string(where) + ": " + std::string(name) + " has shape " +
                         shape_text(array) + ", expected " + std::to_string(dims) +
                         (dims == 1 ? " axis" : " axes"));
  }
}

// Rows that the kernels can read where they are.
template <class T>
bool in_place(const py::array& array) {
  if (!py::isinstance<py::array_t<T>>(array)) return false;  // dtype and byte order
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % sizeof(T) == 0;
  const py::ssize_t size = sizeof(T), rows = array.shape(0), d = array.shape(1);
  const bool inner = d < 2 || array.strides(1) == size;
  const bool outer = rows < 2 || (array.strides(0) >= d * size && array.strides(0) % size == 0);
  return aligned && inner && outer;
}

}  // namespace

TokensIn tokens_in(std::string_view where, py::handle value) {
  const py::array array = as_numpy(where, "tokens", value);
  check_array(where, "tokens", array, 2);
  if (in_place<double>(array)) return {array, false};
  if (in_place<float>(array)) return {array, true};
  return {py::array_t<double, py::array::c_style | py::array::forcecast>(array), false};
}

DoubleArray to_array(std::string_view where, std::string_view name, py::handle value, int dims) {
  const py::array array = as_numpy(where, name, value);
  check_array(where, name, array, dims);
  return py::array_t<double, py::array::c_style | py::array::forcecast>(array);
}

VectorIn vector_in(std::string_view where, std::string_view name, py::handle value) {
  return {to_array(where, name, value, 1)};
}

MatrixIn matrix_in(std::string_view where, std::string_view name, py::handle value) {
  return {to_array(where, name, value, 2)};
}

PointsIn points_in(std::string_view where, std::string_view name, py::handle value) {
  PointsIn points;
  const DoubleArray array = to_array(where, name, value);
  if (array.ndim() == 2) {
    points.owner = array;
  } else if (array.ndim() == 1) {
    points.owner = array.attr("reshape")(1, array.size());
    points.lone = true;
  } else {
    throw DimensionError(std::string(where) + ": " + std::string(name) + " has shape " +
                         shape_text(array) + ", expected [d] or [n,d]");
  }
  return points;
}

py::array_t<double> out(const VectorView& v) {
  py::array_t<double> array(v.size());
  Eigen::Map<Vector>(array.mutable_data(), v.size()) = v;
  return array;
}

py::array_t<double> out(const MatrixView& m) {
  py::array_t<double> array({m.rows(), m.cols()});
  Eigen::Map<Matrix>(array.mutable_data(), m.rows(), m.cols()) = m;
  return array;
}

py::object out(const Matrix& rows, const PointsIn& points) {
  if (points.lone) return out(VectorView(rows.row(0).transpose()));
  return out(MatrixView(rows));
}

Length length_in(std::string_view where, py::handle value) {
  // Scalars of NumPy as numbers of Python.
  if (!PyFloat_Check(value.ptr()) && py::hasattr(value, "dtype") && py::hasattr(value, "item")) {
    return length_in(where, py::object(value.attr("item")()));
  }
  if (py::isinstance<py::float_>(value)) {
    const double x = py::cast<double>(value);
    if (x == std::numeric_limits<double>::infinity()) return Length::infinity();
    if (x == std::floor(x) && x >= 0 && x < 9e18) return Length(static_cast<std::int64_t>(x));
  } else if (py::hasattr(value, "__index__") && !py::isinstance<py::bool_>(value)) {
    const py::int_ n = py::reinterpret_borrow<py::object>(value).attr("__index__")();
    int overflow = 0;
    const long long count = PyLong_AsLongLongAndOverflow(n.ptr(), &overflow);
    if (overflow == 0 && count >= 0) return Length(count);
  }
  throw_argument(where, "length", std::string(py::repr(value)), "an integer >= 0 or inf");
}

py::object out(Length length) {
  if (length.is_infinite()) return py::float_(std::numeric_limits<double>::infinity());
  return py::int_(length.count());
}

py::object out(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return py::bool_(json.get<bool>());
    case Json::value_t::number_integer: return py::int_(json.get<std::int64_t>());
    case Json::value_t::number_unsigned: return py::int_(json.get<std::uint64_t>());
    case Json::value_t::number_float: return py::float_(json.get<double>());
    case Json::value_t::string: return py::str(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      py::list list;
      for (const Json& item : json) list.append(out(item));
      return list;
    }
    case Json::value_t::object: {
      py::dict dict;
      for (const auto& [key, item] : json.items()) dict[py::str(key)] = out(item);
      return dict;
    }
    default: return py::none();
  }
}

Json json_in(py::handle value) {
  const py::object text =
      py::module_::import("json").attr("dumps")(value, py::arg("allow_nan") = false);
  return parse_json("json", py::cast<std::string>(text));
}

}  // namespace esscher::python
