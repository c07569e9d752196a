// Threads. Work is split into chunks that depend on the problem only, never on the number of
// threads, so results are the same bits for any thread count.
#pragma once

#include <cstdint>
#include <functional>

namespace esscher {

// Threads used by parallel_for: 0 means one per core. Set once at program start.
void set_thread_count(int threads);
int thread_count();

// Calls body(i) once for every i in [0, n), in any order, possibly at the same time. The first
// exception is rethrown when running bodies have ended; a loop that returns has run every body.
void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body);

}  // namespace esscher
