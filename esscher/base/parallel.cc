#include "esscher/base/parallel.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"

#ifdef ESSCHER_HAVE_TBB
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

#ifdef ESSCHER_TSAN
extern "C" {
void __tsan_acquire(void* at);
void __tsan_release(void* at);
}
#endif

namespace esscher {
namespace {

std::atomic<int> g_threads{0};

#ifdef ESSCHER_HAVE_TBB

// One arena is made per thread count and lives as long as the process, because making one costs as
// much as a short loop.
oneapi::tbb::task_arena& arena_of(int threads) {
  static std::mutex mutex;
  static auto& arenas = *new std::map<int, oneapi::tbb::task_arena>;
  const std::lock_guard lock(mutex);
  return arenas.try_emplace(threads, threads).first->second;
}

// libtbb is not instrumented. ThreadSanitizer has to be told that every body runs after the code
// before its loop, and that the code after the loop runs after every body.
class Ordered {
 public:
  Ordered(void* loop, bool is_body) : loop_(loop), is_body_(is_body) { order(is_body_); }
  ~Ordered() { order(!is_body_); }
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;

 private:
  void order([[maybe_unused]] bool acquire) const {
#ifdef ESSCHER_TSAN
    acquire ? __tsan_acquire(loop_) : __tsan_release(loop_);
#endif
  }
  [[maybe_unused]] void* loop_;
  bool is_body_;
};

// Marks the time a thread spends in the body of a loop.
class InsideLoop {
 public:
  InsideLoop() : before_(flag()) { flag() = true; }
  ~InsideLoop() { flag() = before_; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;
  static bool yes() { return flag(); }

 private:
  static bool& flag() {
    thread_local bool inside = false;
    return inside;
  }
  bool before_;
};

#endif

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
    const auto loop = [&] {
      oneapi::tbb::task_group_context context;
      const Ordered around(&context, false);
      const auto run = [&](std::int64_t i) {
        const Ordered body_in_order(&context, true);
        const StopScope scope(stop);  // the caller's flag, on this thread
        const InsideLoop inside;
        check_stop(stop);
        body(i);
      };
      oneapi::tbb::parallel_for(std::int64_t{0}, n, run, context);
      // When a body of an outer loop throws, oneTBB silently cancels the loops inside its other
      // bodies. We throw as well, so that the caller does not continue as if every body had run.
      if (context.is_group_execution_cancelled()) throw RuntimeFailure("interrupted");
    };
    // A loop inside a loop borrows idle threads of the same arena. It is isolated, so that a thread
    // that waits for it does not start an unrelated body of the outer loop.
    if (InsideLoop::yes()) {
      oneapi::tbb::this_task_arena::isolate(loop);
    } else {
      arena_of(thread_count()).execute(loop);
    }
    return;
  }
#endif
  for (std::int64_t i = 0; i < n; ++i) {
    check_stop(stop);
    body(i);
  }
}

}  // namespace esscher
