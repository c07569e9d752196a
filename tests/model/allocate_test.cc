#include "esscher/model/allocate.h"

#include <gtest/gtest.h>

#include "esscher/base/error.h"

namespace esscher {
namespace {

HeadDiagnosis head_of(const std::string& name, double at8, double at16, double tail16) {
  HeadDiagnosis head;
  head.name = name;
  head.n = 100;
  head.dk = head.dv = 4;
  head.window =
      std::vector<WindowRow>{{.w = 8, .tail = Tail::none, .lin = at8, .state = 64},
                             {.w = 16, .tail = Tail::none, .lin = at16, .state = 128},
                             {.w = 16, .tail = Tail::finite, .lin = tail16, .state = 163},
                             {.w = 16, .tail = Tail::mixture, .lin = 0.001, .state = 165}};
  return head;
}

// All combinations of two heads by brute force: no plan within the bytes has a smaller sum of errors
// by more than the last step that did not fit.
TEST(Allocate, NothingWithinTheBytesIsMuchBetter) {
  const std::vector<HeadDiagnosis> heads = {head_of("a.L0.H1", 0.9, 0.5, 0.1),
                                            head_of("a.L2.H0", 0.3, 0.28, 0.2)};
  double before = 1e9;
  for (Index bytes = 512; bytes <= 6400; bytes += 64) {
    const Allocation got = allocate_windows(heads, 1, bytes);
    EXPECT_LE(got.bytes, bytes);
    EXPECT_LE(got.error, before + 1e-15);
    before = got.error;
  }
  EXPECT_EQ(before, 0.0);  // both caches
  // 512 + (163 - 64) * 4 bytes: the first head gains 0.8, the second 0.1.
  const Allocation one = allocate_windows(heads, 1, 512 + 396);
  EXPECT_EQ(one.plan.at(0, 1)->tail, Tail::finite);
  EXPECT_EQ(one.plan.at(2, 0)->window, 8);
  EXPECT_NEAR(one.error, 0.1 + 0.3, 1e-15);
}

TEST(Allocate, RefusesByName) {
  EXPECT_THROW(allocate_windows({head_of("first", 1, 1, 1)}, 1, 10000), ArgumentError);
  EXPECT_THROW(allocate_windows({head_of("L0.H0", 1, 1, 1)}, 1, 100), ArgumentError);
  HeadDiagnosis none = head_of("L0.H0", 1, 1, 1);
  none.window.reset();
  EXPECT_THROW(allocate_windows({none}, 1, 10000), ArgumentError);
}

}  // namespace
}  // namespace esscher
