#include "links.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "esscher/base/error.h"

namespace esscher::python {
namespace {

// A function of Python that takes and gives an array. It is called with the GIL, from any thread.
LinkFunction python_link(const py::object& call) {
  const std::shared_ptr<py::object> kept(new py::object(call), [](py::object* held) {
    const py::gil_scoped_acquire gil;
    delete held;
  });
  return [kept](std::span<const double> t, std::span<double> values) {
    const py::gil_scoped_acquire gil;
    const py::array_t<double> argument(static_cast<py::ssize_t>(t.size()), t.data());
    const py::object answer = (*kept)(argument);
    const VectorIn y = vector_in("single_index", "link(t)", answer);
    check_dimension("single_index", "link(t)", y.view().size(), static_cast<long>(t.size()));
    std::copy(y.view().data(), y.view().data() + y.view().size(), values.begin());
  };
}

}  // namespace

Link link_in(const py::object& link, const py::object& coefficients, const py::object& kinks) {
  if (!py::isinstance<py::str>(link)) {
    std::vector<double> at;
    if (!kinks.is_none()) {
      const VectorIn given = vector_in("single_index", "kinks", kinks);
      at.assign(given.view().data(), given.view().data() + given.view().size());
    }
    return Link::custom(python_link(link), at);
  }
  const auto name = parse_enum<LinkName>(py::cast<std::string>(link));
  if (name != LinkName::polynomial) return Link(name);
  const VectorIn c = vector_in("single_index", "coefficients", coefficients);
  if (c.view().size() < 1 || c.view().size() > 3) {
    throw_argument("single_index", "coefficients", std::to_string(c.view().size()) + " numbers",
                   "1 to 3: c0, c1, c2");
  }
  Vector all = Vector::Zero(3);
  all.head(c.view().size()) = c.view();
  return Link::polynomial(all(0), all(1), all(2));
}

}  // namespace esscher::python
