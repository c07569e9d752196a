#include "esscher/measure/discrete_tilt.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace esscher {
namespace {

// Above this exp(x) is close to overflow. There excess is of the order of x, so nothing cancels.
constexpr double kLargeScore = 500.0;

Index top_atom(const VectorView& p, const VectorView& t) {
  Index top = 0;
  double best = -std::numeric_limits<double>::infinity();
  for (Index l = 0; l < p.size(); ++l) {
    if (p(l) > 0 && t(l) > best) {
      best = t(l);
      top = l;
    }
  }
  return top;
}

double largest_score(const VectorView& p, const VectorView& t) {
  double largest = 0;
  for (Index l = 0; l < p.size(); ++l) {
    if (p(l) > 0) largest = std::max(largest, std::abs(t(l)));
  }
  return largest;
}

}  // namespace

double expm1_minus(double x) {
  if (std::abs(x) > 0.75) return std::expm1(x) - x;
  double term = 0.5 * x * x;
  double sum = 0;
  for (int k = 3; std::abs(term) > std::abs(sum) * 1e-18; ++k) {
    sum += term;
    term *= x / k;
  }
  return sum;
}

DiscreteTilt discrete_tilt(const VectorView& p, const VectorView& t, double scale) {
  const Index n = p.size();
  DiscreteTilt out;
  out.top = top_atom(p, t);
  out.small = largest_score(p, t) * scale <= 1.0;
  const double x_top = t(out.top) * scale;
  out.r = Vector::Zero(n);
  out.dr = Vector::Zero(n);
  double excess = 0;
  double total = 0;
  for (Index l = 0; l < n; ++l) {
    if (p(l) == 0) continue;
    out.r(l) = p(l) * std::exp((t(l) - t(out.top)) * scale);
    total += out.r(l);
    if (x_top < kLargeScore) excess += p(l) * expm1_minus(t(l) * scale);
  }
  out.r /= total;
  out.log_top = std::log(total);
  out.excess = x_top < kLargeScore ? std::log1p(excess) : x_top + out.log_top;
  if (!out.small) {
    out.dr = out.r - p;
    return out;
  }
  for (Index l = 0; l < n; ++l) {
    if (p(l) > 0) out.dr(l) = p(l) * std::expm1(t(l) * scale - out.excess);
  }
  return out;
}

Matrix tilted_deviations(const MatrixView& atoms, const DiscreteTilt& tilt) {
  Matrix out = atoms.rowwise() - atoms.row(tilt.top);
  const Vector shift = out.transpose() * tilt.r;
  out.rowwise() -= shift.transpose();
  return out;
}

double power_of_two_scale(const VectorView& a) {
  const double largest = a.size() == 0 ? 0.0 : a.cwiseAbs().maxCoeff();
  if (largest == 0) return 1.0;
  return std::ldexp(1.0, std::clamp(std::ilogb(largest), -1000, 1000));
}

double log_mgf_from(const DiscreteTilt& tilt, double mean_score, double top_score) {
  const double centred_size = std::abs(mean_score) + tilt.excess;
  return centred_size < std::abs(top_score) + 1.0 ? mean_score + tilt.excess
                                                  : top_score + tilt.log_top;
}

Index select_atom(const VectorView& cumulative, double u) {
  const double* begin = cumulative.data();
  const double* end = begin + cumulative.size();
  return std::min<Index>(std::upper_bound(begin, end, u) - begin, cumulative.size() - 1);
}

Vector cumulative_sums(const VectorView& p) {
  Vector sums(p.size());
  double total = 0;
  Index last = 0;
  for (Index l = 0; l < p.size(); ++l) {
    total += p(l);
    sums(l) = total;
    if (p(l) > 0) last = l;
  }
  for (Index l = last; l < p.size(); ++l) sums(l) = 1.0;
  return sums;
}

}  // namespace esscher
