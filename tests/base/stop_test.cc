#include "esscher/base/stop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"

namespace esscher {
namespace {

TEST(Stop, parallel_for_ends_before_its_next_body) {
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    StopFlag flag{false};
    const StopScope scope(&flag);
    std::atomic<int> bodies{0};
    const auto body = [&](std::int64_t) {
      ++bodies;
      flag = true;
    };
    EXPECT_THROW(parallel_for(100000, body), RuntimeFailure);
    EXPECT_LT(bodies, 1000);
  }
  set_thread_count(0);
}

TEST(Stop, nested_loops_see_the_flag_on_whatever_thread_they_run) {
  StopFlag flag{false};
  const StopScope scope(&flag);
  std::atomic<int> seen{0};
  parallel_for(64, [&](std::int64_t) {
    parallel_for(2, [&](std::int64_t) { seen += current_stop_flag() == &flag; });
  });
  EXPECT_EQ(seen, 128);
}

TEST(Stop, a_loop_that_returns_has_run_every_body) {
  set_thread_count(4);
  std::atomic<int> lies = 0;
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(parallel_for(8,
                              [&](std::int64_t i) {
                                if (i == 5) throw ArgumentError("from one body");
                                std::atomic<int> ran = 0;
                                parallel_for(200, [&](std::int64_t) {
                                  std::this_thread::sleep_for(std::chrono::microseconds(20));
                                  ++ran;
                                });
                                if (ran != 200) ++lies;
                              }),
                 ArgumentError);
  }
  EXPECT_EQ(lies, 0);
  set_thread_count(0);
}

TEST(Stop, scopes_nest_and_end) {
  EXPECT_EQ(current_stop_flag(), nullptr);
  const StopFlag outer{false}, inner{true};
  {
    const StopScope first(&outer);
    EXPECT_NO_THROW(check_stop());
    {
      const StopScope second(&inner);
      EXPECT_THROW(check_stop(), RuntimeFailure);
    }
    EXPECT_EQ(current_stop_flag(), &outer);
  }
  EXPECT_EQ(current_stop_flag(), nullptr);
}

}  // namespace
}  // namespace esscher
