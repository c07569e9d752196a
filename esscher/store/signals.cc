#include "esscher/store/signals.h"

namespace esscher {
namespace {

volatile std::sig_atomic_t g_caught = 0;

void note(int signal) { g_caught = signal; }

}  // namespace

StopSignals::StopSignals() {
  g_caught = 0;
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

int StopSignals::caught() { return g_caught; }

}  // namespace esscher
