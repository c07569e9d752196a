// SIGINT and SIGTERM as a flag, for the time a run is being written. The handler restores the old
// one on the second signal, so that an impatient user still gets out.
#pragma once

#include <csignal>

namespace esscher {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // SIGINT or SIGTERM if one has come, else 0.
  [[nodiscard]] static int caught();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace esscher
