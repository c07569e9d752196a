#include "esscher/measure/bessel_tilt.h"

#include <algorithm>
#include <array>
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

// From here on the expansions for large k serve.
double large_from(double nu) { return std::max(50.0, 4 * (nu + 1) * (nu + 1)); }

// Sums of D_j x^p h for a function h of j; x = j - top and h is taken relative to its value at
// `top`, so that cumulants of the narrow distribution of j keep their digits.
struct JointSums {
  double h0 = 0, h1 = 0, h2 = 0;

  void add(double x, double h, double D) {
    h0 += D * h;
    h1 += D * x * h;
    h2 += D * x * x * h;
  }
};

// mean(h), cov(j,h) and the joint cumulant of (j,j,h).
struct JointCumulants {
  double mean = 0, cov = 0, third = 0;
};

JointCumulants joint_cumulants(const JointSums& h, const JointSums& one, double at_top) {
  const double m1 = one.h1 / one.h0, m2 = one.h2 / one.h0;
  const double h0 = h.h0 / one.h0, h1 = h.h1 / one.h0, h2 = h.h2 / one.h0;
  return {at_top + h0, h1 - m1 * h0, h2 - 2 * m1 * h1 - m2 * h0 + 2 * m1 * m1 * h0};
}

// along = < radial >, across - along = < gap >.
struct SeriesCumulants {
  JointCumulants radial, gap;
};

SeriesCumulants series_cumulants(double nu, double k) {
  const double top = peak(nu, k);
  const auto radial = [nu](double j) { return (nu + 0.5) / ((2 * nu + 1 + j) * (nu + 1 + j)); };
  const auto gap = [nu](double j) { return j / ((2 * nu + 1 + j) * (nu + 1 + j)); };
  JointSums one, r, g;
  const double r_top = radial(top), g_top = gap(top);
  const auto add = [&](double j, double D) {
    one.add(j - top, 1, D);
    r.add(j - top, radial(j) - r_top, D);
    g.add(j - top, gap(j) - g_top, D);
  };
  add(top, 1);
  double D = 1;
  for (double j = top; D > kNegligible * one.h0 || j < top + 3; ++j) {
    D *= term_ratio(nu, k, j);
    add(j + 1, D);
  }
  D = 1;
  for (double j = top; j > 0 && D > kNegligible * one.h0; --j) {
    D /= term_ratio(nu, k, j - 1);
    add(j - 1, D);
  }
  return {joint_cumulants(r, one, r_top), joint_cumulants(g, one, g_top)};
}

BesselCumulants cumulants_large_k(double d, double k) {
  constexpr int kMaxTerms = 80;
  std::array<double, kMaxTerms> c{1.0};  // c_n k^-n
  BesselCumulants out{.mixed3 = -1 / k / k, .mixed4 = 2 / k / k / k};
  for (int n = 1; n < kMaxTerms; ++n) {
    double sum = (n - d) * c[n - 1] / k;
    for (int i = 1; i < n; ++i) sum -= c[i] * c[n - i];
    c[n] = 0.5 * sum;
    const double term = c[n] / k / k;
    out.along3 += n * (n + 1.0) * term;
    out.along4 -= n * (n + 1.0) * (n + 2.0) * term / k;
    out.mixed3 -= (n + 1.0) * term;
    out.mixed4 += (n + 1.0) * (n + 2.0) * term / k;
    if (std::abs(c[n]) * n * n < kNegligible * std::abs(c[1])) break;
  }
  out.across4 = out.mixed3 / k;
  return out;
}

}  // namespace

BesselCumulants bessel_cumulants(Index d, double k) {
  if (d == 1) {
    const double s = sech_squared(k);
    return {.along3 = -2 * std::tanh(k) * s, .along4 = s * (4 - 6 * s)};
  }
  const auto dim = static_cast<double>(d);
  const double nu = 0.5 * dim - 1;
  if (k < 1e-8) {
    const double f = -2 / (dim * dim * (dim + 2));
    return {.along3 = 3 * f * k, .mixed3 = f * k, .along4 = 3 * f, .mixed4 = f, .across4 = f};
  }
  if (k > large_from(nu)) return cumulants_large_k(dim, k);
  const auto [radial, gap] = series_cumulants(nu, k);
  return {.along3 = 2 * radial.cov / k,
          .mixed3 = -gap.mean / k,
          .along4 = (4 * radial.third - 2 * radial.cov) / k / k,
          .mixed4 = (gap.mean - 2 * gap.cov) / k / k,
          .across4 = -gap.mean / k / k};
}

BesselTilt bessel_tilt(Index d, double k) {
  if (d == 1) return {log_cosh(k), k < 1e-8 ? 1.0 : std::tanh(k) / k, sech_squared(k)};
  const double nu = 0.5 * static_cast<double>(d) - 1;
  if (k > large_from(nu)) return large_k(nu, k);
  const double top = peak(nu, k);
  return top < kFarPeak ? series_from_zero(nu, k) : series_from_peak(nu, k, top);
}

}  // namespace esscher
