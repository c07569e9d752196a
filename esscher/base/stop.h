// Asking a running computation to end. A thread that works under a StopScope has a flag; another
// thread sets it, and parallel_for (base/parallel.h), whichever thread its bodies run on, throws
// RuntimeFailure("interrupted") before its next body. Python's Ctrl-C is made of this.
#pragma once

#include <atomic>

namespace esscher {

using StopFlag = std::atomic<bool>;

// The flag the current thread works under, or nullptr.
const StopFlag* current_stop_flag();

// Throws RuntimeFailure if the flag is set; for long loops that are not a parallel_for.
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
