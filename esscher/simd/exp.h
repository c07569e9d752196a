// The exponential that all kernels share, and what it promises.
//
//   x < lowest             0, also at -inf; e^lowest is 1.6e-38 in float, 3e-308 in double
//   lowest <= x <= highest error at most max_ulp units in the last place, on every target
//   x > highest            +inf
//   NaN                    NaN
//
// The test of this folder reads the same table (exp_contract).
#pragma once

#include <span>
#include <type_traits>

namespace esscher::simd {

template <class T>
struct ExpContract {
  T lowest;
  T highest;
  double max_ulp;
};

template <class T>
constexpr ExpContract<T> exp_contract() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  if constexpr (std::is_same_v<T, float>) {
    return {-87.0f, 88.37f, 1.25};
  } else {
    return {-708.0, 709.43, 1.25};
  }
}

// y[i] = e^{x[i]}. y may be x. The sizes must agree.
void exp_array(std::span<const float> x, std::span<float> y);
void exp_array(std::span<const double> x, std::span<double> y);

}  // namespace esscher::simd
