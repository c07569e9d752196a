#include "cli/process/signals.h"

namespace esscher::cli {
namespace {

static_assert(StopFlag::is_always_lock_free, "a signal handler may set it");
StopFlag g_stop = false;

void note(int) { g_stop = true; }

}  // namespace

StopSignals::StopSignals() {
  g_stop = false;
  struct sigaction action {};
  action.sa_handler = note;
  // Reset to the default after the first; SA_RESTART keeps writes of other threads whole.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

const StopFlag& StopSignals::flag() { return g_stop; }

}  // namespace esscher::cli
