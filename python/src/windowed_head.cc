#include <pybind11/stl.h>

#include <optional>

#include "arrays.h"
#include "esscher/base/error.h"
#include "esscher/heads/window.h"
#include "parts.h"

namespace esscher::python {
namespace {

// One key [dk] or several [n,dk] as rows.
Matrix rows_in(const char* argument, const py::object& value, Index width) {
  const py::object array = py::module_::import("numpy").attr("atleast_2d")(value);
  Matrix out = matrix_in("WindowedHead", argument, array).view();
  check_dimension("WindowedHead", argument, out.cols(), width);
  return out;
}

// A streaming head that knows the scale of its scores.
class Scaled {
 public:
  Scaled(Index dk, Index dv, double scale, WindowOptions options)
      : dk_(dk), dv_(dv), scale_(scale), head_(dk, dv, std::move(options)) {}

  void push(const py::object& keys, const py::object& values) {
    head_.push(rows_in("key", keys, dk_), rows_in("value", values, dv_));
  }
  Vector attend(const py::object& query) {
    return head_.attend(scale_ * rows_in("query", query, dk_).row(0).transpose());
  }
  [[nodiscard]] const WindowedHead& head() const { return head_; }

 private:
  Index dk_, dv_;
  double scale_;
  WindowedHead head_;
};

WindowOptions options_in(const py::dict& given) {
  WindowOptions options{.window = given["window"].cast<Index>(),
                        .sinks = given["sinks"].cast<Index>(),
                        .heavy = given["heavy"].cast<Index>(),
                        .tail = parse_enum<Tail>(given["tail"].cast<std::string>())};
  if (!given["rotary_base"].is_none()) {
    options.rotary =
        Rotary{.base = given["rotary_base"].cast<double>(),
               .pairs = parse_enum<RotaryPairs>(given["rotary_pairs"].cast<std::string>()),
               .first = given["first_position"].cast<Index>()};
  }
  if (options.tail == Tail::mixture && !given["keys"].is_none()) {
    const Matrix keys = matrix_in("WindowedHead", "keys", given["keys"]).view();
    options.mixture = fit_mixture(keys, given["components"].cast<Index>(), Stream(0));
  }
  return options;
}

}  // namespace

void bind_windowed_head(py::module_& m) {
  py::class_<Scaled>(m, "WindowedHead")
      .def(py::init([](Index dk, Index dv, double scale, const py::dict& options) {
        return Scaled(dk, dv, scale, options_in(options));
      }))
      .def("copy", [](const Scaled& self) { return Scaled(self); })
      .def("push", &Scaled::push)
      .def("attend", [](Scaled& self,
                        const py::object& query) { return out(VectorView(self.attend(query))); })
      .def_property_readonly("count", [](const Scaled& self) { return self.head().count(); })
      .def_property_readonly("exact_keys",
                             [](const Scaled& self) { return self.head().exact_keys(); })
      .def_property_readonly("state", [](const Scaled& self) { return self.head().state(); })
      .def_property_readonly("bytes", [](const Scaled& self) { return self.head().bytes(); });
}

}  // namespace esscher::python
