#include "calls.h"

#include <chrono>
#include <exception>
#include <future>
#include <optional>

#include "esscher/base/stop.h"

namespace esscher::python {

namespace py = pybind11;

bool on_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

void run_interruptible(const std::function<void()>& work, const std::function<void()>& tick) {
  if (!on_main_thread()) {
    const py::gil_scoped_release release;
    work();
    return;
  }
  StopFlag stop{false};
  std::optional<py::error_already_set> signal;
  std::exception_ptr failure;
  {
    const py::gil_scoped_release release;
    std::future<void> done = std::async(std::launch::async, [&] {
      const StopScope scope(&stop);
      work();
    });
    while (done.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      const py::gil_scoped_acquire acquire;
      if (signal) continue;
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (tick) tick();
      } catch (py::error_already_set& raised) {
        signal.emplace(raised);  // thrown below, when the work has ended
        stop = true;
      }
    }
    try {
      done.get();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (signal) throw py::error_already_set(*signal);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace esscher::python
