// What the tests of the kernels share: both number types and every target of this machine.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "esscher/simd/targets.h"
#include "esscher/tilt/tilt.h"

namespace esscher::testing {

using Reals = ::testing::Types<float, double>;

template <class T>
inline constexpr double kEps = std::numeric_limits<T>::epsilon();

template <class Body>
void on_every_target(const Body& body) {
  for (const std::string& target : simd::supported_targets()) {
    simd::force_target(target);
    ASSERT_EQ(tilt_target(), target);
    SCOPED_TRACE(target);
    body();
  }
  simd::force_target("");
}

}  // namespace esscher::testing
