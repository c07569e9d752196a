// How fast does D(L) fall? Fits of y = log D on x = log L.
//
// A curve D(L_1..L_k) has relative covariance `cov` [k,k] = Cov(log D_i, log D_j) ~
// Cov(D_i,D_j)/(D_i D_j). Points that share random numbers are correlated, so intervals use cov
// whole. A curve without noise passes an empty matrix or zeros; the intervals of fit_power then
// describe the misfit of the straight line only, and are no intervals of a sample.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"
#include "esscher/estimate/interval.h"

namespace esscher {

// Whether a curve with this covariance has no noise.
bool is_noise_free(const MatrixView& cov);

// log D = log_c + slope * log L by least squares weighted by 1/cov_ii. Its error is the larger of
// the sandwich (X'WX)^-1 X'W cov W X (X'WX)^-1 and that of the misfit, which does not count where
// points have noise of their own (cov is diagonal) and an F test finds no more than it leaves.
struct PowerFit {
  double log_c = 0;
  double slope = 0;
  double std_error = 0;  // of the slope
  // Of the slope, the wider of two: Student's t with k - 2 degrees of freedom around the misfit
  // if it counts, and with those of the covariance around the noise.
  Interval ci;
};
// dof: degrees of freedom that cov was estimated with.
PowerFit fit_power(const std::vector<std::int64_t>& lengths, const VectorView& values,
                   const MatrixView& cov, double dof = std::numeric_limits<double>::infinity());

// -(log D_{i+1} - log D_i)/(log L_{i+1} - log L_i), placed at the geometric mean of the two
// lengths.
struct LocalExponent {
  double L = 0;
  double exponent = 0;
  double std_error = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "geometric mean of two neighbouring lengths");
    column("exponent", row.exponent, "", "exponent of the decay between them");
    column("std_error", row.std_error, "", "its standard error");
  }
};
std::vector<LocalExponent> local_exponents(const std::vector<std::int64_t>& lengths,
                                           const VectorView& values, const MatrixView& cov);

// Three shapes of decay, compared on the lengths >= 2.
enum class Shape { inverse, log_power, power };
constexpr auto enum_names(Shape) {
  return EnumNames<Shape, 3>{"shape",
                             {{{Shape::inverse, "c / L"},
                               {Shape::log_power, "c ln(L) / L^g"},
                               {Shape::power, "c / L^g"}}}};
}

// Generalised least squares in log-log. AIC = chi^2 + 2k with a covariance; for an exact curve the
// scale of the misfit is a parameter too: n log(RSS/n) + 2(k+1). `weight` are Akaike weights,
// sum 1.
struct ShapeFit {
  Shape shape = Shape::inverse;
  double log_c = 0;
  double g = 1;
  double aic = 0;
  double weight = 0;

  // For output only: a constant does not read back to the last bit.
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("shape", row.shape, "", "shape of the decay");
    double constant = std::exp(row.log_c);
    column("constant", constant, "", "c of the shape");
    column("g", row.g, "", "g of the shape");
    column("aic", row.aic, "", "Akaike's criterion");
    column("weight", row.weight, "", "Akaike weight");
  }
};
std::vector<ShapeFit> compare_shapes(const std::vector<std::int64_t>& lengths,
                                     const VectorView& values, const MatrixView& cov);

}  // namespace esscher
