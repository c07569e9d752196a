#include "esscher/measure/bessel_tilt.h"

#include <algorithm>
#include <cmath>

#include "esscher/measure/scalar_forms.h"

namespace esscher {
namespace {

constexpr double kLog2 = 0.693147180559945309417;
constexpr double kPi = 3.14159265358979323846;
constexpr double kNegligible = 1e-19;
constexpr double kHuge = 1e250;
// A sum whose largest term lies beyond this j starts at that term instead of at j = 0.
constexpr double kFarPeak = 1e5;

double term_ratio(double nu, double k, double j) {
  // (2nu+2j+1)/(2nu+j+1) = 1 at j = 0, also where both vanish (d = 1).
  const double front = j == 0 ? 1.0 : (2 * nu + 2 * j + 1) / (2 * nu + j + 1);
  return 0.5 * k * front / (j + 1) * (k / (nu + j + 1));
}

struct Sums {
  double weight = 0;  // sum D_j, with D at the start = 1
  double across = 0;
  double along = 0;

  void add(double nu, double j, double D) {
    weight += D;
    const double front = j == 0 ? 0.5 : (nu + 0.5 + j) / (2 * nu + 1 + j);
    const double radial = j == 0 ? 0.5 : (nu + 0.5) / (2 * nu + 1 + j);
    across += D * front / (nu + 1 + j);
    along += D * radial / (nu + 1 + j);
  }
  void scale(double factor) {
    weight *= factor;
    across *= factor;
    along *= factor;
  }
};

BesselTilt series_from_zero(double nu, double k) {
  Sums rest;  // without j = 0, so that log1p sees a small sum
  double log_scale = 0;
  double D = 1;
  double j = 0;
  double one = 1;
  while (true) {
    const double ratio = term_ratio(nu, k, j);
    D *= ratio;
    j += 1;
    if (ratio < 1 && D < kNegligible * (one + rest.weight) && D < kNegligible * rest.weight) break;
    rest.add(nu, j, D);
    if (D == 0) break;
    if (rest.weight > kHuge) {
      const double factor = 1 / kHuge;
      rest.scale(factor);
      D *= factor;
      one *= factor;
      log_scale += std::log(kHuge);
    }
  }
  Sums all = rest;
  all.add(nu, 0, one);
  BesselTilt out;
  out.log_mgf =
      log_scale == 0 ? 0.5 * std::log1p(rest.weight) : 0.5 * (log_scale + std::log(all.weight));
  out.across = all.across / all.weight;
  out.along = all.along / all.weight;
  return out;
}

// The j with D_{j+1}/D_j about 1, by bisection, since the ratio decreases in j.
double peak(double nu, double k) {
  double low = 0;
  double high = 2 * k + 1;
  if (term_ratio(nu, k, 0) <= 1) return 0;
  while (high - low > 0.5) {
    const double middle = 0.5 * (low + high);
    (term_ratio(nu, k, middle) > 1 ? low : high) = middle;
  }
  return std::floor(low);
}

BesselTilt series_from_peak(double nu, double k, double top) {
  Sums sums;
  sums.add(nu, top, 1);
  double D = 1;
  for (double j = top; D > kNegligible * sums.weight; ++j) {
    D *= term_ratio(nu, k, j);
    sums.add(nu, j + 1, D);
  }
  D = 1;
  for (double j = top; j > 0 && D > kNegligible * sums.weight; --j) {
    D /= term_ratio(nu, k, j - 1);
    sums.add(nu, j - 1, D);
  }
  // D_top = Gamma(2nu+2j+1)/Gamma(2nu+j+1) (k/2)^{2j} / (j! (Gamma(nu+j+1)/Gamma(nu+1))^2)
  const double log_top = std::lgamma(2 * nu + 2 * top + 1) - std::lgamma(2 * nu + top + 1) +
                         2 * top * std::log(0.5 * k) - std::lgamma(top + 1) -
                         2 * (std::lgamma(nu + top + 1) - std::lgamma(nu + 1));
  return {0.5 * (log_top + std::log(sums.weight)), sums.across / sums.weight,
          sums.along / sums.weight};
}

// I_nu(k) ~ e^k / sqrt(2 pi k) * value, value = sum (-1)^j a_j(nu) / k^j; and d value / dk.
struct Hankel {
  double value = 1;
  double slope = 0;
};

Hankel hankel(double nu, double k) {
  Hankel out;
  double term = 1;
  for (int j = 1; j < 200; ++j) {
    const double odd = 2.0 * j - 1;
    term *= -(2 * nu - odd) * (2 * nu + odd) / (8.0 * j * k);
    out.value += term;
    out.slope -= j * term / k;
    if (std::abs(term) * j < kNegligible * k) {
      if (std::abs(term) < kNegligible) break;
    }
  }
  return out;
}

BesselTilt large_k(double nu, double k) {
  const Hankel low = hankel(nu, k);
  const Hankel high = hankel(nu + 1, k);
  const double A = high.value / low.value;
  BesselTilt out;
  out.log_mgf = std::lgamma(nu + 1) + nu * (kLog2 - std::log(k)) + k - 0.5 * std::log(2 * kPi * k) +
                std::log(low.value);
  out.across = A / k;
  out.along = (high.slope - A * low.slope) / low.value;
  return out;
}

}  // namespace

BesselTilt bessel_tilt(Index d, double k) {
  if (d == 1) return {log_cosh(k), k < 1e-8 ? 1.0 : std::tanh(k) / k, sech_squared(k)};
  const double nu = 0.5 * static_cast<double>(d) - 1;
  if (k > std::max(50.0, 4 * (nu + 1) * (nu + 1))) return large_k(nu, k);
  const double top = peak(nu, k);
  return top < kFarPeak ? series_from_zero(nu, k) : series_from_peak(nu, k, top);
}

}  // namespace esscher
