#include "ranks.h"

#include <utility>

#include "esscher/base/error.h"

namespace esscher::python {

namespace py = pybind11;

namespace {

// An exception of Python must not leave the thread that works: its text does.
template <class Call>
auto with_python(const Call& call) {
  const py::gil_scoped_acquire acquire;
  try {
    return call();
  } catch (const py::error_already_set& error) {
    throw RuntimeFailure(error.what());
  }
}

py::bytes bytes_of(std::string_view text) { return py::bytes(text.data(), text.size()); }

}  // namespace

PythonRanks::PythonRanks(py::object ranks)
    : ranks_(std::move(ranks)),
      rank_(py::cast<int>(ranks_.attr("rank"))),
      count_(py::cast<int>(ranks_.attr("count"))) {}

void PythonRanks::send(int to, std::string_view text) {
  with_python([&] { ranks_.attr("send")(to, bytes_of(text)); });
}

std::optional<RankMessage> PythonRanks::receive() {
  return with_python([&]() -> std::optional<RankMessage> {
    const py::object found = ranks_.attr("receive")();
    if (found.is_none()) return std::nullopt;
    const auto [from, text] = py::cast<std::pair<int, py::bytes>>(found);
    return RankMessage{from, std::string(text)};
  });
}

std::string PythonRanks::broadcast(std::string text) {
  return with_python(
      [&] { return std::string(py::cast<py::bytes>(ranks_.attr("broadcast")(bytes_of(text)))); });
}

void PythonRanks::fail(const std::string& reason) {
  with_python([&] { ranks_.attr("fail")(reason); });
}

}  // namespace esscher::python
