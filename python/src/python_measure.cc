#include "python_measure.h"

#include <limits>

#include "arrays.h"
#include "esscher/base/error.h"

namespace esscher::python {
namespace {

constexpr const char* kRequired[] = {"dim", "log_mgf", "tilted_mean", "tilted_cov", "sample"};

std::string class_name(py::handle object) {
  return py::cast<std::string>(py::type::of(object).attr("__name__"));
}

}  // namespace

PythonMeasure::PythonMeasure(const py::object& object)
    : object_(new py::object(object), [](const py::object* held) {
        const py::gil_scoped_acquire acquire;
        delete held;
      }) {
  name_ = class_name(object);
  for (const char* method : kRequired) {
    if (has(method)) continue;
    throw ArgumentError("measure: " + name_ + " has no " + method +
                        "; a measure needs dim, log_mgf, tilted_mean, tilted_cov and sample");
  }
  py::object dim = object.attr("dim");
  if (PyCallable_Check(dim.ptr()) != 0) dim = dim();
  dim_ = py::cast<Index>(dim);
  if (dim_ < 1) throw_argument(where("dim"), "value", std::to_string(dim_), "an integer >= 1");
}

std::string PythonMeasure::where(const char* method) const { return name_ + "." + method; }

bool PythonMeasure::has(const char* method) const { return py::hasattr(*object_, method); }

template <class... Args>
py::object PythonMeasure::call(const char* method, const Args&... args) const {
  return object_->attr(method)(args...);
}

Vector PythonMeasure::vector(const char* method, const py::object& value) const {
  const VectorIn in = vector_in(where(method), "result", value);
  check_dimension(where(method), "result", in.view().size(), dim_);
  check_finite(where(method), "result", in.view().transpose());
  return in.view();
}

Matrix PythonMeasure::matrix(const char* method, const py::object& value, Index rows) const {
  const MatrixIn in = matrix_in(where(method), "result", value);
  check_dimension(where(method), "rows of the result", in.view().rows(), rows);
  check_dimension(where(method), "columns of the result", in.view().cols(), dim_);
  check_finite(where(method), "result", in.view());
  return in.view();
}

Vector PythonMeasure::mean() const {
  const py::gil_scoped_acquire acquire;
  if (!has("mean")) return tilted_mean(Vector::Zero(dim_));
  return vector("mean", call("mean"));
}

Matrix PythonMeasure::second_moment() const {
  const py::gil_scoped_acquire acquire;
  if (has("second_moment")) return matrix("second_moment", call("second_moment"), dim_);
  const Vector m = mean();
  return tilted_cov(Vector::Zero(dim_)) + m * m.transpose();
}

double PythonMeasure::log_mgf(const VectorView& a) const {
  const py::gil_scoped_acquire acquire;
  const py::object value = call("log_mgf", out(a));
  try {
    return py::cast<double>(value.attr("__float__")());
  } catch (const py::error_already_set&) {
    throw ArgumentError(where("log_mgf") + " gave " + class_name(value) + ", expected a number");
  }
}

Vector PythonMeasure::tilted_mean(const VectorView& a) const {
  const py::gil_scoped_acquire acquire;
  return vector("tilted_mean", call("tilted_mean", out(a)));
}

Matrix PythonMeasure::tilted_cov(const VectorView& a) const {
  const py::gil_scoped_acquire acquire;
  return matrix("tilted_cov", call("tilted_cov", out(a)), dim_);
}

Vector PythonMeasure::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  const py::gil_scoped_acquire acquire;
  if (!has("tilted_cov_times")) return tilted_cov(a) * v;
  return vector("tilted_cov_times", call("tilted_cov_times", out(a), out(v)));
}

Empirical PythonMeasure::sample(const Stream& stream, Index n) const {
  const py::gil_scoped_acquire acquire;
  const py::object tokens = call("sample", py::cast(stream), py::int_(n));
  if (py::isinstance<AnyMeasure>(tokens)) {
    const auto& measure = py::cast<const AnyMeasure&>(tokens);
    if (const auto* empirical = measure.as<Empirical>()) {
      check_dimension(where("sample"), "tokens", empirical->size(), n);
      check_dimension(where("sample"), "dimension", empirical->dim(), dim_);
      return *empirical;
    }
  }
  return Empirical(matrix("sample", tokens, n));
}

double PythonMeasure::sub_gaussian() const {
  const py::gil_scoped_acquire acquire;
  if (!has("sub_gaussian")) return std::numeric_limits<double>::infinity();
  return py::cast<double>(call("sub_gaussian"));
}

bool is_tokens(py::handle value) {
  if (py::isinstance<AnyMeasure>(value) || py::hasattr(value, "log_mgf") ||
      py::hasattr(value, "tilted_mean")) {
    return false;
  }
  return py::hasattr(value, "__array__") || py::hasattr(value, "__dlpack__") ||
         py::isinstance<py::sequence>(value);
}

AnyMeasure measure_in(const char* where, py::handle value) {
  if (py::isinstance<AnyMeasure>(value)) return py::cast<AnyMeasure>(value);
  if (py::hasattr(value, "log_mgf") || py::hasattr(value, "tilted_mean")) {
    return PythonMeasure(py::reinterpret_borrow<py::object>(value));
  }
  if (is_tokens(value)) return Empirical(Matrix(matrix_in(where, "tokens", value).view()));
  throw_argument(where, "measure", class_name(value),
                 "a Measure, an array of tokens [n,d], or an object with the methods of a measure");
}

}  // namespace esscher::python
