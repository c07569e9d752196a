// SIGINT and SIGTERM as a stop flag (base/stop.h) while an object lives, that is, while a run is
// being written. The handler restores the old one on the second signal, so that an impatient user
// still gets out.
#pragma once

#include <csignal>

#include "esscher/base/stop.h"

namespace esscher::cli {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Set by the first signal, cleared when the next object begins.
  static const StopFlag& flag();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace esscher::cli
