// Slow twins of the kernels: the formulas of tilt.h in long double, in two plain passes, without
// blocking and without shifts. Tests and benchmarks compare the kernels with them.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "esscher/tilt/state.h"
#include "esscher/tilt/tilt.h"

namespace esscher::slow {

template <class T>
long double dot(std::span<const T> a, const T* x) {
  long double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += static_cast<long double>(a[j]) * x[j];
  return sum;
}

// The weights omega and the scalars of the state for keys [n,dk].
template <class T>
std::vector<long double> weights(std::span<const T> a, const Rows<T>& keys,
                                 std::span<const T> log_weights, TiltState& state) {
  std::vector<long double> w(static_cast<std::size_t>(keys.n));
  long double max = -std::numeric_limits<long double>::infinity(), norm = 0;
  for (Index l = 0; l < keys.n; ++l) {
    long double& s = w[static_cast<std::size_t>(l)];
    s = dot(a, keys.data + l * keys.stride);
    if (!log_weights.empty()) s += log_weights[static_cast<std::size_t>(l)];
    max = std::max(max, s);
  }
  for (long double& s : w) norm += s = std::isinf(max) ? 0 : std::exp(s - max);
  state.max = static_cast<double>(max);
  state.norm = static_cast<double>(norm);
  state.count = keys.n;
  return w;
}

// Every moment of TiltState for rows x [n,d] and t_l = <r, values_l>; no product if r is empty.
template <class T>
TiltState tilt_state(std::span<const T> a, std::span<const T> r, const Rows<T>& keys,
                     const Rows<T>& values, const Rows<T>& x, std::span<const T> log_weights) {
  TiltState state = TiltState::neutral(x.d, !r.empty(), true);
  const std::vector<long double> w = weights(a, keys, log_weights, state);
  if (state.empty()) return state;
  using Real = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
  Real sum = Real::Zero(x.d), product = Real::Zero(x.d);
  Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic> second(x.d, x.d);
  second.setZero();
  long double norm = 0, t_sum = 0;
  const auto row = [&x](Index l) {
    return Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>(x.data + l * x.stride, x.d)
        .template cast<long double>();
  };
  const auto t = [&](Index l) {
    return r.empty() ? 0.0L : dot(r, values.data + l * values.stride);
  };
  for (Index l = 0; l < x.n; ++l) {
    const long double w_l = w[static_cast<std::size_t>(l)];
    norm += w_l;
    sum += w_l * row(l);
    t_sum += w_l * t(l);
  }
  for (Index l = 0; l < x.n; ++l) {
    const Real centred = row(l) - sum / norm;
    const long double w_l = w[static_cast<std::size_t>(l)];
    product += w_l * (t(l) - t_sum / norm) * centred;
    second += w_l * centred * centred.transpose();
  }
  state.t_sum = static_cast<double>(t_sum);
  state.sum = sum.template cast<double>();
  if (!r.empty()) state.product = product.template cast<double>();
  state.second = second.template cast<double>();
  return state;
}

template <class T>
TiltState tilt(std::span<const T> a, const Rows<T>& keys, const Rows<T>& values,
               std::span<const T> log_weights = {}) {
  return tilt_state<T>(a, {}, keys, values, values, log_weights);
}

template <class T>
TiltState tilt_product(std::span<const T> a, std::span<const T> r, const Rows<T>& keys,
                       const Rows<T>& values, std::span<const T> log_weights = {}) {
  return tilt_state<T>(a, r, keys, values, keys, log_weights);
}

}  // namespace esscher::slow
