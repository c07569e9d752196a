#include "esscher/base/stop.h"

#include "esscher/base/error.h"

namespace esscher {
namespace {

thread_local const StopFlag* t_flag = nullptr;

}  // namespace

const StopFlag* current_stop_flag() { return t_flag; }

void check_stop(const StopFlag* flag) {
  if (flag != nullptr && flag->load(std::memory_order_relaxed)) throw RuntimeFailure("interrupted");
}

StopScope::StopScope(const StopFlag* flag) : outer_(t_flag) { t_flag = flag; }

StopScope::~StopScope() { t_flag = outer_; }

}  // namespace esscher
