// A measure written in Python, as a C++ Measure. The object must have
//
//   dim (attribute or method), log_mgf(a), tilted_mean(a), tilted_cov(a), sample(stream, n) ->
//   [n,d]
//
// and may have mean(), second_moment(), tilted_cov_times(a, v), sub_gaussian() and name; without
// them they follow from the others (sub_gaussian: infinity). A missing method or a wrong shape is
// an error that names the class and the method.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "esscher/measure/any_measure.h"

namespace esscher::python {

namespace py = pybind11;

class PythonMeasure {
 public:
  explicit PythonMeasure(const py::object& object);

  // With the GIL held.
  [[nodiscard]] const py::object& object() const { return *object_; }

  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] Length cardinality() const { return Length::infinity(); }
  [[nodiscard]] Vector mean() const;
  [[nodiscard]] Matrix second_moment() const;
  [[nodiscard]] double log_mgf(const VectorView& a) const;
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const;
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const;
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const;
  [[nodiscard]] Empirical sample(const Stream& stream, Index n) const;
  [[nodiscard]] double sub_gaussian() const;
  [[nodiscard]] std::string name() const { return name_; }

 private:
  [[nodiscard]] std::string where(const char* method) const;
  [[nodiscard]] bool has(const char* method) const;
  template <class... Args>
  [[nodiscard]] py::object call(const char* method, const Args&... args) const;
  [[nodiscard]] Vector vector(const char* method, const py::object& value) const;
  [[nodiscard]] Matrix matrix(const char* method, const py::object& value, Index rows) const;

  std::shared_ptr<const py::object> object_;  // deleted with the GIL held, wherever that happens
  std::string name_;
  Index dim_ = 0;
};

// True for an array of tokens, which is neither a Measure nor an object with its methods.
bool is_tokens(py::handle value);

// A Measure, an array of tokens [n,d], or a user's object.
AnyMeasure measure_in(const char* where, py::handle value);

}  // namespace esscher::python
