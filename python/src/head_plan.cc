#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "arrays.h"
#include "esscher/heads/windowed_outputs.h"
#include "esscher/io/safetensors.h"
#include "esscher/model/plan.h"
#include "parts.h"

namespace esscher::python {
namespace {

using FloatArray = py::array_t<float, py::array::c_style | py::array::forcecast>;

// Base and pairs of rotary positions.
using RotaryIn = std::optional<std::pair<double, std::string>>;

std::optional<Rotary> rotary_in(const RotaryIn& given) {
  if (!given) return std::nullopt;
  return Rotary{.base = given->first, .pairs = parse_enum<RotaryPairs>(given->second)};
}

// Outputs [m,dv] of one head by the plan; None if it stays exact.
py::object planned_outputs(const HeadPlan& plan, Index layer, Index head, const py::object& Q,
                           const py::object& K, const py::object& V, double scale, bool causal,
                           const RotaryIn& rotary) {
  std::optional<WindowOptions> options = plan.at(layer, head);
  if (!options) return py::none();
  if (options->tail == Tail::rotary) options->rotary = rotary_in(rotary);
  const std::string where = "L" + std::to_string(layer) + ".H" + std::to_string(head);
  const MatrixIn q = matrix_in(where, "Q", Q);
  const MatrixIn k = matrix_in(where, "K", K);
  const MatrixIn v = matrix_in(where, "V", V);
  Matrix found;
  {
    const py::gil_scoped_release free;
    found = windowed_outputs(*options, q.view(), k.view(), v.view(), scale, causal);
  }
  return out(MatrixView(found));
}

void write_tensors(const std::string& path, const std::map<std::string, FloatArray>& given) {
  std::map<std::string, Array> tensors;
  for (const auto& [name, array] : given) {
    std::vector<std::int64_t> shape(array.shape(), array.shape() + array.ndim());
    tensors[name] =
        array_of({array.data(), static_cast<std::size_t>(array.size())}, std::move(shape));
  }
  write_file(path, encode_safetensors(tensors));
}

}  // namespace

void bind_head_plan(py::module_& m) {
  py::class_<HeadPlan>(m, "HeadPlan")
      .def(py::init(&parse_plan))
      .def("named",
           [](const HeadPlan& plan) {
             std::vector<std::pair<Index, Index>> keys;
             for (const auto& [key, window] : plan.heads) keys.push_back(key);
             return keys;
           })
      .def("outputs", &planned_outputs);
  m.def("write_tensors", &write_tensors);
}

}  // namespace esscher::python
