// Asking a running computation to end. A thread that works under a StopScope has a flag, which
// another thread may set. parallel_for (base/parallel.h) then throws RuntimeFailure("interrupted")
// before its next body, on whichever thread that body would run. Ctrl-C in Python uses this.
#pragma once

#include <atomic>

namespace esscher {

using StopFlag = std::atomic<bool>;

// The flag the current thread works under, or nullptr.
const StopFlag* current_stop_flag();

// Throws RuntimeFailure if the flag is set. Long loops that are not a parallel_for call it.
void check_stop(const StopFlag* flag = current_stop_flag());

class StopScope {
 public:
  explicit StopScope(const StopFlag* flag);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const StopFlag* outer_;
};

}  // namespace esscher
