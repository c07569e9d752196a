#include "esscher/prompt/detail/token_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "esscher/simd/exp.h"

namespace esscher::detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Below e^kLow, 1 - e^-y = y to rounding. Above e^kHigh, e^-y = 0.
constexpr double kLow = -38;
constexpr double kHigh = 6.56;
// phi is a sum of numbers of size 1 for laws on a lattice, where less than this is rounding.
constexpr double kNoise = 1e-17;

// 1 - e^-y from e^-y. Below 1/2 it is 2 e^{-y/2} sinh(y/2) with the series of sinh, whose first term
// left out is 1e-18 of the sum; nothing cancels.
Vector hits(const Vector& y, const Vector& survive) {
  const auto x = 0.5 * y.array();
  const Eigen::ArrayXd q = x.square();
  const Eigen::ArrayXd series =
      1 + q * (1.0 / 6 +
               q * (1.0 / 120 +
                    q * (1.0 / 5040 +
                         q * (1.0 / 362880 + q * (1.0 / 39916800 + q * (1.0 / 6227020800.0))))));
  return (y.array() < 0.5)
      .select(y.array() * survive.array().sqrt() * series, 1 - survive.array())
      .matrix();
}

void exp_in_place(Vector& x) {
  simd::exp_array(std::span<const double>(x.data(), static_cast<std::size_t>(x.size())),
                  std::span<double>(x.data(), static_cast<std::size_t>(x.size())));
}

}  // namespace

TokenNodes::TokenNodes(ScoreLaw law) : law_(std::move(law)) {
  const Index n = law_.size(), dv = law_.width();
  mass_below_ = Vector::Zero(n + 1);
  mass_above_ = Vector::Zero(n + 1);
  for (Index i = 0; i < n; ++i) mass_below_[i + 1] = mass_below_[i] + law_.p[i];
  for (Index i = n - 1; i >= 0; --i) mass_above_[i] = mass_above_[i + 1] + law_.p[i];
  low1_ = low2_ = law_.p;
  low_second_ = law_.second;
  low_log_ = Vector::Zero(n);
  low_first1_ = low_first2_ = high_first_ = law_.first;
  high_ = law_.p;
  for (Index i = 1; i < n; ++i) {
    const double fall = std::exp(law_.s[i - 1] - law_.s[i]);
    low_log_[i] = fall * (low_log_[i - 1] + (law_.s[i - 1] - law_.s[i]) * low1_[i - 1]);
    low1_[i] += fall * low1_[i - 1];
    low2_[i] += fall * fall * low2_[i - 1];
    low_second_[i] += fall * fall * low_second_[i - 1];
    low_first1_.row(i) += fall * low_first1_.row(i - 1);
    low_first2_.row(i) += fall * fall * low_first2_.row(i - 1);
  }
  for (Index i = n - 2; i >= 0; --i) {
    const double rise = std::exp(law_.s[i + 1] - law_.s[i]);
    high_[i] += rise * high_[i + 1];
    high_first_.row(i) += rise * high_first_.row(i + 1);
  }
  linear_ = Vector::Zero(dv);
  for (Index i = 0; i < n; ++i) {
    const double weight = std::exp(law_.s[i] - highest());
    linear_ += weight * law_.first.row(i).transpose();
    linear_size_ += weight * law_.first.row(i).norm();
  }
}

// One score: everything is y to a power.
TokenAt TokenNodes::single(double v) const {
  const double y = std::exp(std::min(v + law_.s[0], 300.0)), p = law_.p[0];
  const Vector x = law_.first.row(0).transpose() / p;
  return {.psi = -std::expm1(-y),
          .log_phi = -y,
          .once = y,
          .logs = y > 0 ? y * std::log(y) : 0,
          .twice = y * y,
          .spread = y * y * std::max(0.0, law_.second[0] / p - x.squaredNorm()),
          .value = y * x,
          .small = true,
          .rest = Vector::Zero(x.size())};
}

TokenAt TokenNodes::at(double v) const {
  if (law_.size() == 1) return single(v);
  const double* s = law_.s.data();
  const Index n = law_.size();
  const Index from = std::lower_bound(s, s + n, kLow - v) - s;
  const Index to = std::upper_bound(s, s + n, kHigh - v) - s;
  const Index m = to - from;
  const Vector log_y = law_.s.segment(from, m).array() + v;
  Vector y = log_y;
  exp_in_place(y);
  Vector survive = -y;
  exp_in_place(survive);
  const Vector hit = hits(y, survive);
  const auto p = law_.p.segment(from, m);
  const auto first = law_.first.middleRows(from, m);
  const Vector once = y.cwiseProduct(survive), twice = once.cwiseProduct(y);

  TokenAt out;
  double phi = p.dot(survive) + mass_below_[from];
  double excess = p.dot(y.cwiseProduct(hit));
  out.psi = p.dot(hit) + mass_above_[to];
  out.once = p.dot(once);
  out.logs = p.dot(once.cwiseProduct(log_y));
  out.twice = p.dot(twice);
  double square = law_.second.segment(from, m).dot(twice);
  out.value = first.transpose() * once;
  Vector missed = first.transpose() * y.cwiseProduct(hit);
  if (from > 0) {
    const double low = std::exp(v + s[from - 1]);
    out.psi += low * low1_[from - 1];
    out.once += low * low1_[from - 1];
    out.logs += low * (low_log_[from - 1] + (v + s[from - 1]) * low1_[from - 1]);
    out.twice += low * low * low2_[from - 1];
    excess += low * low * low2_[from - 1];
    square += low * low * low_second_[from - 1];
    out.value += low * low_first1_.row(from - 1).transpose();
    missed += low * low * low_first2_.row(from - 1).transpose();
  }
  if (to < n) {
    const double high = std::exp(v + s[to]);
    excess += high * high_[to];
    missed += high * high_first_.row(to).transpose();
  }
  out.log_phi = out.psi < 0.5 ? std::log1p(-out.psi) : phi > kNoise ? std::log(phi) : -kInfinity;
  if (out.psi < 0.5) phi = 1 - out.psi;
  if (out.log_phi == -kInfinity) {
    out.once = out.logs = out.twice = 0;
    out.value.setZero();
    return out;
  }
  const double linear = std::exp(v + highest());
  out.small = out.psi < 0.5 && std::abs(excess) < std::abs(out.once) && missed.allFinite() &&
              std::isfinite(linear);
  if (out.small) out.rest = (linear * out.psi * linear_ - missed) / phi;
  out.once /= phi;
  out.logs /= phi;
  out.twice /= phi;
  out.value /= phi;
  out.spread = std::max(0.0, square / phi - out.value.squaredNorm());
  return out;
}

LadderSums::LadderSums(const TokenNodes& nodes, double v0, double delta, long stride, long first,
                       long last)
    : first_(first), stride_(stride), width_(nodes.width()) {
  for (long k = first; k <= last; ++k) {
    const TokenAt one = nodes.at(v0 + delta * static_cast<double>(k));
    Sum sum{one.log_phi, one.once, one.logs, one.twice, one.spread, one.psi, one.value};
    if (k - stride >= first) {
      const Sum& before = sums_[static_cast<std::size_t>(k - stride - first)];
      sum.log_phi += before.log_phi;
      sum.once += before.once;
      sum.logs += before.logs;
      sum.twice += before.twice;
      sum.spread += before.spread;
      sum.psi += before.psi;
      sum.value += before.value;
    }
    sums_.push_back(std::move(sum));
    if (!std::isfinite(one.log_phi)) break;
  }
}

const LadderSums::Sum* LadderSums::running(double k) const {
  const double at = k - static_cast<double>(first_);
  if (at < 0) return nullptr;
  return &sums_[static_cast<std::size_t>(std::min(at, static_cast<double>(sums_.size()) - 1))];
}

LadderSums::Sum LadderSums::at(double k, double count) const {
  Sum out{.value = Vector::Zero(width_)};
  const Sum* all = running(k);
  if (all == nullptr) return out;
  out = *all;
  const Sum* beyond = running(k - count * static_cast<double>(stride_));
  if (beyond == nullptr || !std::isfinite(beyond->log_phi)) return out;
  out.log_phi -= beyond->log_phi;
  out.once -= beyond->once;
  out.logs -= beyond->logs;
  out.twice -= beyond->twice;
  out.spread -= beyond->spread;
  out.psi -= beyond->psi;
  out.value -= beyond->value;
  return out;
}

}  // namespace esscher::detail
