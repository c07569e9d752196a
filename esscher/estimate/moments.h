// Running mean and variance of a stream of numbers, as a monoid: empty is neutral, merge is
// associative up to rounding, so blocks, threads and machines combine.
//
//   (n, mean, M2),  M2 = sum (x - mean)^2                  Welford / Chan et al. updates
//
// and the same for vectors, M2 = sum (x - mean)(x - mean)'.
#pragma once

#include <cstdint>
#include <span>

#include "esscher/base/estimate.h"
#include "esscher/base/linalg.h"

namespace esscher {

class Moments {
 public:
  Moments() = default;
  // From what count(), mean() and sum_of_squares() said, to go on.
  Moments(std::int64_t n, double mean, double sum_of_squares)
      : n_(n), mean_(mean), m2_(sum_of_squares) {}

  void add(double x);
  void merge(const Moments& other);

  [[nodiscard]] std::int64_t count() const { return n_; }
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double sum_of_squares() const { return m2_; }  // of x - mean
  // Unbiased variance of one observation; 0 for fewer than two.
  [[nodiscard]] double variance() const;
  // sqrt(variance / n); infinity for fewer than two observations: one number shows no spread.
  [[nodiscard]] double std_error() const;
  [[nodiscard]] Estimate estimate(Engine engine) const;

 private:
  std::int64_t n_ = 0;
  double mean_ = 0;
  double m2_ = 0;
};

// The moments of numbers that are all there: their mean and its standard error.
Moments moments_of(std::span<const double> values);

class CoMoments {
 public:
  void add(const VectorView& x);  // [k], the same k each time
  void merge(const CoMoments& other);

  [[nodiscard]] std::int64_t count() const { return n_; }
  [[nodiscard]] const Vector& mean() const { return mean_; }
  // Covariance [k,k] of the mean: how its entries move together; 0 for fewer than two.
  [[nodiscard]] Matrix covariance_of_mean() const;

 private:
  std::int64_t n_ = 0;
  Vector mean_;
  Matrix m2_;
};

}  // namespace esscher
