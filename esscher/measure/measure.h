// A law of tokens mu on R^d, seen through its log moment generating function:
//
//   Lambda(a) = log int e^{<a,z'>} dmu(z')
//   m_a = grad Lambda(a)     mean of the exponentially tilted (Esscher-transformed) measure
//   C_a = Hess Lambda(a)     its covariance
//
// A type models Measure when it has the members of the concept below. a, v and the results have
// length d = dim(). Some members need a word:
//
//   cardinality()   number of tokens of a prompt (Empirical and its affine images), else infinity
//   sample(s, n)    n iid tokens; token l is a pure function of (s, l), so a shorter sample is a
//                   prefix of a longer one
//   sub_gaussian()  smallest sigma with Lambda(a) - <a,mean> <= sigma^2 |a|^2 / 2 for all a, or
//                   infinity
//
// Five members are optional. The first two keep relative accuracy where Lambda(a) - <a,mean> is far
// below <a,mean>; without them the plain difference is used. Without the third the matrix is
// formed; without the fourth the answer is false. Without the fifth differences of tilted_cov are
// taken.
//
//   centred_log_mgf(a)       Lambda(a) - <a,mean>
//   mean_shift(a)            m_a - mean
//   second_moment_times(v)   (E z'z'^T) v
//   strictly_sub_gaussian()  true if Lambda(a) - <a,mean> <= a'Cov a / 2 for all a
//   higher_cumulants(a,W,Y)  third and fourth cumulants at a, contracted with symmetric W, Y [d,d]
//                            (higher_cumulants.h)
//
// Errors: a wrong length is a DimensionError, a NaN or infinite a an ArgumentError, and a point
// where Lambda(a) is infinite a DomainError.
#pragma once

#include <concepts>
#include <string>

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/measure/higher_cumulants.h"
#include "esscher/random/stream.h"

namespace esscher {

class Empirical;

template <class M>
concept Measure = requires(const M& mu, const VectorView& a, const Stream& stream, Index n) {
  { mu.dim() } -> std::convertible_to<Index>;
  { mu.cardinality() } -> std::convertible_to<Length>;
  { mu.mean() } -> std::convertible_to<Vector>;
  { mu.second_moment() } -> std::convertible_to<Matrix>;
  { mu.log_mgf(a) } -> std::convertible_to<double>;
  { mu.tilted_mean(a) } -> std::convertible_to<Vector>;
  { mu.tilted_cov(a) } -> std::convertible_to<Matrix>;
  { mu.tilted_cov_times(a, a) } -> std::convertible_to<Vector>;
  { mu.sample(stream, n) } -> std::same_as<Empirical>;
  { mu.sub_gaussian() } -> std::convertible_to<double>;
  { mu.name() } -> std::convertible_to<std::string>;
};

template <class M>
double centred_log_mgf(const M& mu, const VectorView& a) {
  if constexpr (requires { mu.centred_log_mgf(a); }) {
    return mu.centred_log_mgf(a);
  } else {
    return mu.log_mgf(a) - a.dot(Vector(mu.mean()));
  }
}

template <class M>
Vector mean_shift(const M& mu, const VectorView& a) {
  if constexpr (requires { mu.mean_shift(a); }) {
    return mu.mean_shift(a);
  } else {
    return mu.tilted_mean(a) - mu.mean();
  }
}

template <class M>
Vector second_moment_times(const M& mu, const VectorView& v) {
  if constexpr (requires { mu.second_moment_times(v); }) {
    return mu.second_moment_times(v);
  } else {
    return mu.second_moment() * v;
  }
}

template <class M>
bool strictly_sub_gaussian(const M& mu) {
  if constexpr (requires { mu.strictly_sub_gaussian(); }) {
    return mu.strictly_sub_gaussian();
  } else {
    return false;
  }
}

template <class M>
HigherCumulants higher_cumulants(const M& mu, const VectorView& a, const MatrixView& W,
                                 const MatrixView& Y) {
  if constexpr (requires { mu.higher_cumulants(a, W, Y); }) {
    return mu.higher_cumulants(a, W, Y);
  } else {
    return differenced_cumulants([&mu](const Vector& b) -> Matrix { return mu.tilted_cov(b); }, a,
                                 W, Y);
  }
}

}  // namespace esscher
