// The tokens of a task: keys [n,d], values [n,p] and log weights [n], which may be absent.
#pragma once

#include <span>

#include "esscher/base/error.h"
#include "esscher/tilt/detail/leaf.h"

namespace esscher::detail {

// Throws DimensionError with the argument that does not fit the keys.
template <class Task, class T>
void set_tokens(const char* where, Task& task, const Rows<T>& keys, const Rows<T>& values,
                std::span<const T> log_weights) {
  check_dimension(where, "values.n", values.n, keys.n);
  if (!log_weights.empty()) {
    check_dimension(where, "log_weights", static_cast<long>(log_weights.size()), keys.n);
  }
  task.keys = keys;
  task.values = values;
  task.bias = log_weights.empty() ? nullptr : log_weights.data();
}

}  // namespace esscher::detail
