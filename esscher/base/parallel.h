// Loops over threads. Work is split into pieces that depend on the problem only, never on the
// number of threads, so results are the same bits for any thread count.
#pragma once

#include <cstdint>
#include <functional>

namespace esscher {

// The number of threads that parallel_for uses; 0 means one per core. Programs set it once, when
// they start.
void set_thread_count(int threads);
int thread_count();

// Calls body(i) once for every i in [0, n), in any order, possibly at the same time. If bodies
// throw, the first exception is rethrown after the bodies that were running have ended. If the loop
// returns, every body has run.
void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body);

}  // namespace esscher
