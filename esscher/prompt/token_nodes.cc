#include "esscher/prompt/detail/token_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "esscher/prompt/detail/tail_token.h"
#include "esscher/simd/exp.h"

namespace esscher::detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Below e^kLow, 1 - e^-y = y - y^2/2 + y^3/6 to rounding, and y^2 e^-y = y^2 - y^3 to 2e-11, where all
// nodes with more weight have a larger y. Above e^kHigh, e^-y = 0.
constexpr double kLow = -12;
constexpr double kHigh = 6.56;
// phi is a sum of numbers of size 1 for laws on a lattice, where less than this is rounding. Prompts of
// one token with long tails ask for smaller ones.
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

void TokenAt::average(double phi, double square) {
  once /= phi;
  logs /= phi;
  twice /= phi;
  value /= phi;
  spread = std::max(0.0, square / phi - value.squaredNorm());
}

TokenNodes::TokenNodes(ScoreLaw law) : law_(std::move(law)) {
  const Index n = law_.size(), dv = law_.width();
  mass_below_ = Vector::Zero(n + 1);
  mass_above_ = Vector::Zero(n + 1);
  for (Index i = 0; i < n; ++i) mass_below_[i + 1] = mass_below_[i] + law_.p[i];
  for (Index i = n - 1; i >= 0; --i) mass_above_[i] = mass_above_[i + 1] + law_.p[i];
  high_first_ = law_.first;
  high_ = law_.p;
  for (int k = 0; k < kPowers; ++k) {
    low_[k] = law_.p;
    low_log_[k] = Vector::Zero(n);
    low_second_[k] = law_.second;
    low_first_[k] = law_.first;
  }
  for (Index i = 1; i < n; ++i) {
    const double gap = law_.s[i - 1] - law_.s[i], fall = std::exp(gap);
    double power = 1;
    for (int k = 0; k < kPowers; ++k) {
      power *= fall;
      low_log_[k][i] = power * (low_log_[k][i - 1] + gap * low_[k][i - 1]);
      low_[k][i] += power * low_[k][i - 1];
      low_second_[k][i] += power * low_second_[k][i - 1];
      low_first_[k].row(i) += power * low_first_[k].row(i - 1);
    }
  }
  for (Index i = n - 2; i >= 0; --i) {
    const double rise = std::exp(law_.s[i + 1] - law_.s[i]);
    high_[i] += rise * high_[i + 1];
    high_first_.row(i) += rise * high_first_.row(i + 1);
  }
  noise_ = law_.tails && law_.p.minCoeff() >= 0 ? 0 : kNoise;
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

// Sums over the nodes up to i, whose y is at most `y`, by powers of it.
struct TokenNodes::Low {
  double psi, once, logs, twice, excess, square;
  Vector value, missed;
};

TokenNodes::Low TokenNodes::low(Index i, double log_y) const {
  const double y = std::exp(log_y), y2 = y * y, y3 = y2 * y;
  const double a = y * low_[0][i], b = y2 * low_[1][i], c = y3 * low_[2][i];
  const double once = a - b + c / 2;
  return {.psi = a - b / 2 + c / 6,
          .once = once,
          .logs = log_y * once + y * low_log_[0][i] - y2 * low_log_[1][i] + y3 / 2 * low_log_[2][i],
          .twice = b - c,
          .excess = b - c / 2,
          .square = y2 * low_second_[1][i] - y3 * low_second_[2][i],
          .value =
              (y * low_first_[0].row(i) - y2 * low_first_[1].row(i) + y3 / 2 * low_first_[2].row(i))
                  .transpose(),
          .missed = (y2 * low_first_[1].row(i) - y3 / 2 * low_first_[2].row(i)).transpose()};
}

TokenAt TokenNodes::at(double v) const {
  if (law_.size() == 1) return single(v);
  if (law_.tails && (-v > law_.tails->high || -v < law_.tails->low))
    return tail_token(*law_.tails, -v);
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
    const Low sums = low(from - 1, v + s[from - 1]);
    out.psi += sums.psi;
    phi -= sums.psi;
    out.once += sums.once;
    out.logs += sums.logs;
    out.twice += sums.twice;
    excess += sums.excess;
    square += sums.square;
    out.value += sums.value;
    missed += sums.missed;
  }
  if (to < n) {
    const double high = std::exp(v + s[to]);
    excess += high * high_[to];
    missed += high * high_first_.row(to).transpose();
  }
  out.log_phi = out.psi < 0.5 ? std::log1p(-out.psi) : phi > noise_ ? std::log(phi) : -kInfinity;
  if (out.psi < 0.5) phi = 1 - out.psi;
  if (out.log_phi == -kInfinity) {
    out.once = out.logs = out.twice = 0;
    out.value.setZero();
    return out;
  }
  const double linear = std::exp(v + highest());
  out.small = !law_.tails && out.psi < 0.5 && std::abs(excess) < std::abs(out.once) &&
              missed.allFinite() && std::isfinite(linear);
  if (out.small) out.rest = (linear * out.psi * linear_ - missed) / phi;
  out.average(phi, square);
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
