#include "arrays.h"
#include "esscher/random/stream.h"

namespace esscher::python {
namespace {

template <class Fill>
py::array_t<double> filled(std::uint64_t first, py::ssize_t n, const Fill& fill) {
  py::array_t<double> values(n);
  const std::span<double> span(values.mutable_data(), static_cast<std::size_t>(n));
  const py::gil_scoped_release release;
  fill(first, span);
  return values;
}

}  // namespace

void bind_random(py::module_& m) {
  py::class_<Stream>(m, "Stream")
      .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"), py::arg("stream") = 0)
      .def_property_readonly("seed", &Stream::seed, "The seed.")
      .def_property_readonly("id", &Stream::id, "The stream of this seed.")
      .def("split", &Stream::split, py::arg("child"), "An independent stream, one for each child.")
      .def("bits", &Stream::bits, py::arg("index"), "64 random bits at this index.")
      .def(
          "uniform",
          [](const Stream& s, py::ssize_t n, std::uint64_t first) {
            return filled(first, n, [&](auto i, auto span) { s.fill_uniform(i, span); });
          },
          py::arg("n"), py::arg("first") = 0,
          "Values first .. first + n - 1, uniform on (0, 1) [n].")
      .def(
          "normal",
          [](const Stream& s, py::ssize_t n, std::uint64_t first) {
            return filled(first, n, [&](auto i, auto span) { s.fill_normal(i, span); });
          },
          py::arg("n"), py::arg("first") = 0, "Values first .. first + n - 1, standard normal [n].")
      .def("__repr__", [](const Stream& s) {
        return "Stream(seed=" + std::to_string(s.seed()) + ", stream=" + std::to_string(s.id()) +
               ")";
      });
}

}  // namespace esscher::python
