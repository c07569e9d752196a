#include "esscher/base/parallel.h"

#include <atomic>
#include <string>
#include <thread>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"

#ifdef ESSCHER_HAVE_TBB
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

namespace esscher {
namespace {

std::atomic<int> g_threads{0};

}  // namespace

void set_thread_count(int threads) {
  if (threads < 0) {
    throw_argument("set_thread_count", "threads", std::to_string(threads), "an integer >= 0");
  }
  g_threads = threads;
}

int thread_count() {
  const int threads = g_threads;
  if (threads > 0) return threads;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  const StopFlag* stop = current_stop_flag();
#ifdef ESSCHER_HAVE_TBB
  if (n > 1 && thread_count() > 1) {
    oneapi::tbb::task_arena arena(thread_count());
    arena.execute([&] {
      oneapi::tbb::parallel_for(std::int64_t{0}, n, [&](std::int64_t i) {
        const StopScope scope(stop);  // the caller's flag, on this thread
        check_stop(stop);
        body(i);
      });
    });
    return;
  }
#endif
  for (std::int64_t i = 0; i < n; ++i) {
    check_stop(stop);
    body(i);
  }
}

}  // namespace esscher
