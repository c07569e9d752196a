#include "esscher/prompt/token_moments.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace esscher {

namespace {

using Columns = TokenMoments::Columns;

constexpr double kStep = TokenMoments::kStep;
constexpr double kFineStep = 0.6;       // in units of g: error 2 exp(-2 pi^2 / 0.36) = 3e-24
constexpr double kReach = 8.8;          // standard deviations kept: e^{-8.8^2/2} = 2e-17
constexpr long kTableFirst = -6 * 900;  // log y from -900, where y^4 e^-y underflows harmlessly,
constexpr long kTableLast = 6 * 7;      // to 7, where e^-y = 0 in double

// Columns 1 - e^-y, y e^-y, .., y^4 e^-y at rows y.
void fill_functions(const double y, Columns& rows, Eigen::Index row) {
  rows(row, 0) = -std::expm1(-y);
  double value = std::exp(-y);
  for (int k = 1; k <= 4; ++k) rows(row, k) = value *= y;
}

const Columns& y_table() {
  static const Columns table = [] {
    Columns rows(kTableLast - kTableFirst + 1, 5);
    for (long j = kTableFirst; j <= kTableLast; ++j) {
      fill_functions(std::exp(static_cast<double>(j) * kStep), rows, j - kTableFirst);
    }
    return rows;
  }();
  return table;
}

}  // namespace

TokenMoments::TokenMoments(double tau, double shift, int degree, double u_min)
    : tau_(tau), degree_(degree), fine_(tau * kFineStep < kStep) {
  const double step = fine_ ? kFineStep : kStep / tau;
  // y^4 tilts g by 4 tau, but y beyond the table is worth nothing.
  double reach = kReach + 4 * tau;
  if (!fine_) {
    reach = std::min(reach, std::max(kReach, (kTableLast * kStep - u_min) / tau + 2 * step));
  }
  kernel_first_ = -static_cast<long>(std::ceil(kReach / step));
  const long last = static_cast<long>(std::ceil(reach / step));
  const long n = last - kernel_first_ + 1;
  kernel_.resize(n, degree + 1);
  for (long row = 0; row < n; ++row) {
    const double g = static_cast<double>(kernel_first_ + row) * step;
    double value = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
    for (int j = 0; j <= degree; ++j) {
      kernel_(row, j) = value;
      value *= g - shift;
    }
  }
  if (fine_) {
    growth_.resize(n);
    for (long row = 0; row < n; ++row) {
      growth_[row] = std::exp(tau * static_cast<double>(kernel_first_ + row) * step);
    }
  } else {
    tail_.setZero(n + 1);
    for (long row = n - 1; row >= 0; --row) tail_[row] = tail_[row + 1] + kernel_(row, 0);
  }
}

TokenMoments::Window TokenMoments::window(long i) const {
  const long n = kernel_.rows();
  // Left end: y times the Gaussian is e^-39 below its largest value for y <= 1 there.
  const double u = static_cast<double>(i) * kStep;
  const double centre = u + tau_ * tau_;
  const double peak = std::min(0.0, centre);
  const double left = centre - std::sqrt((peak - centre) * (peak - centre) + 78 * tau_ * tau_);
  long first = std::max(i + kernel_first_, static_cast<long>(std::floor(left / kStep)));
  first = std::max(first, kTableFirst);
  const long last = std::min(i + kernel_first_ + n - 1, kTableLast);
  const long kernel = std::min(first - i - kernel_first_, n);
  const long tail = std::clamp(kTableLast + 1 - i - kernel_first_, 0L, n);
  return {first - kTableFirst, std::max(0L, last - first + 1), kernel, tail_[tail]};
}

Columns TokenMoments::near(double u) const {
  const double scale = std::exp(u);
  Columns rows(kernel_.rows(), 5);
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    fill_functions(scale * growth_[row], rows, row);
  }
  return rows;
}

TokenMoments::Basic TokenMoments::basic(long i) const {
  if (fine_) {
    const Table G = all(i);
    return {G(0, 0), G(1, 0), G(2, 0), G(2, 2)};
  }
  const Window w = window(i);
  const auto y = y_table().middleRows(w.first, w.count);
  const auto weights = kernel_.middleRows(w.kernel, w.count);
  return {y.col(0).dot(weights.col(0)) + w.tail, y.col(1).dot(weights.col(0)),
          y.col(2).dot(weights.col(0)), degree_ >= 2 ? y.col(2).dot(weights.col(2)) : 0.0};
}

TokenMoments::Table TokenMoments::all(long i) const {
  Table G = Table::Zero();
  if (fine_) {
    const Columns y = near(static_cast<double>(i) * kStep);
    G.leftCols(degree_ + 1) = y.transpose() * kernel_;
    return G;
  }
  const Window w = window(i);
  G.leftCols(degree_ + 1) =
      y_table().middleRows(w.first, w.count).transpose() * kernel_.middleRows(w.kernel, w.count);
  G(0, 0) += w.tail;
  return G;
}

// log1p keeps (1 - psi)^L for tiny psi; psi may exceed 1 by rounding.
Survival::Survival(std::int64_t L, double psi) {
  const double log_phi = std::log1p(-std::min(psi, 1.0));
  double falling = 1;
  for (std::int64_t p = 1; p <= 4 && p <= L; ++p) {
    falling *= static_cast<double>(L - p + 1);
    power[p] = L == p ? falling : falling * std::exp(static_cast<double>(L - p) * log_phi);
  }
}

}  // namespace esscher
