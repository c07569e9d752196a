// Long calls: the GIL is released, and Ctrl-C ends them. A call from Python's main thread computes
// on a worker thread while the main thread asks for signals; a signal sets the stop flag of
// base/stop.h, the work ends at its next chunk, and KeyboardInterrupt is raised.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>
#include <utility>

namespace esscher::python {

// True on the thread that receives signals (holding the GIL).
bool on_main_thread();
// Runs work as described; exceptions of work are rethrown here. Holds the GIL before and after.
// `tick` is called by the main thread, with the GIL, about fifty times a second while work runs;
// what it raises ends the work as a signal does.
void run_interruptible(const std::function<void()>& work, const std::function<void()>& tick = {});

template <class Work>
auto long_call(const Work& work) {
  using Result = decltype(work());
  std::optional<Result> result;
  run_interruptible([&] { result.emplace(work()); });
  return std::move(*result);
}

// Short calls: no thread, only without the GIL.
template <class Work>
auto without_gil(const Work& work) {
  const pybind11::gil_scoped_release release;
  return work();
}

// long_call where it is long: a thread for Ctrl-C costs some 50 us, too much for small arrays.
template <class Work>
auto sized_call(double operations, const Work& work) {
  return operations < 1e7 ? without_gil(work) : long_call(work);
}

}  // namespace esscher::python
