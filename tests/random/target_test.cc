// ESSCHER_TARGET is read by the first kernel of a process, whichever it is: here a random one.
#include <array>
#include <cstdlib>
#include <functional>
#include <string>

#include "esscher/base/error.h"
#include "esscher/random/normal_sequences.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// Ends the process: 0 if the kernel refused the name, 1 if it ran.
[[noreturn]] void run_with_wrong_name(const std::function<void()>& kernel) {
  ::setenv("ESSCHER_TARGET", "MMX", 1);
  try {
    kernel();
  } catch (const ArgumentError& error) {
    std::exit(std::string(error.what()).find("MMX") == std::string::npos ? 2 : 0);
  }
  std::exit(1);
}

TEST(RandomTarget, EveryRandomKernelRefusesAWrongName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process each
  std::array<double, 64> wide{};
  std::array<float, 64> narrow{};
  const std::array<std::uint64_t, 2> first = {0, 8};
  const Stream stream(1);
  const auto refused = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(run_with_wrong_name([&] { stream.fill_uniform(0, wide); }), refused, "");
  EXPECT_EXIT(run_with_wrong_name([&] { stream.fill_normal(0, wide); }), refused, "");
  EXPECT_EXIT(run_with_wrong_name([&] { stream.fill_normal(0, narrow); }), refused, "");
  EXPECT_EXIT(run_with_wrong_name([&] { fill_normal_sequences(stream, first, wide); }), refused,
              "");
}

}  // namespace
}  // namespace esscher
