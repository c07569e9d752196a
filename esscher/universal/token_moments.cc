#include "esscher/universal/token_moments.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "esscher/simd/dot.h"

namespace esscher {

namespace {

using Columns = TokenMoments::Columns;

constexpr double kStep = TokenMoments::kStep;
constexpr double kFineStep = 0.6;       // in units of g: error 2 exp(-2 pi^2 / 0.36) = 3e-24
constexpr double kReach = 8.8;          // standard deviations kept: e^{-8.8^2/2} = 2e-17
constexpr long kTableFirst = -6 * 900;  // log y from -900, where y^4 e^-y underflows harmlessly,
constexpr long kTableLast = 6 * 7;      // to 7, where e^-y = 0 in double

void fill_functions(const double y, Columns& rows, Eigen::Index row) {
  const double hit = -std::expm1(-y);
  rows(row, 0) = hit;
  double value = std::exp(-y);
  for (int k = 1; k <= 4; ++k) rows(row, k) = value > 0 ? value *= y : 0;
  rows(row, 5) = y * hit;
}

// Rows log y = j kStep + offset, j = first .. kTableLast.
std::shared_ptr<const Columns> make_table(long first, double offset) {
  auto rows = std::make_shared<Columns>(kTableLast - first + 1, 6);
  for (long j = first; j <= kTableLast; ++j) {
    fill_functions(std::exp(static_cast<double>(j) * kStep + offset), *rows, j - first);
  }
  return rows;
}

const double* column(const Columns& matrix, int j) { return matrix.col(j).data(); }

const std::shared_ptr<const Columns>& plain_table() {
  static const std::shared_ptr<const Columns> table = make_table(kTableFirst, 0);
  return table;
}

}  // namespace

TokenMoments::TokenMoments(double tau, double shift, int degree, double u_min)
    : tau_(tau), mu_(0), degree_(degree), fine_(tau * kFineStep < kStep) {
  if (fine_) {
    make_kernel(kFineStep, shift, kReach + 4 * tau);
    return;
  }
  // The factor y^4 moves the mean of g to 4 tau, but e^-y = 0 for y beyond the table.
  const double step = kStep / tau, end = (kTableLast * kStep - u_min) / tau + 2 * step;
  make_kernel(step, shift, std::min(kReach + 4 * tau, std::max(kReach, end)));
  table_first_ = kTableFirst;
  y_ = plain_table();
}

TokenMoments::TokenMoments(double tau, double shift, int degree, double u_min, double mu)
    : tau_(tau),
      mu_(mu),
      degree_(degree),
      fine_(tau * kFineStep < kStep),
      lattice_(std::lround(mu / kStep)) {
  if (fine_) {
    make_kernel(kFineStep, shift, kReach + 4 * tau);
    return;
  }
  // The excess also counts y beyond the table, where the factor y moves the mean of g to tau.
  const double step = kStep / tau, end = (kTableLast * kStep - u_min - mu) / tau + 2 * step;
  make_kernel(step, shift, std::min(kReach + 4 * tau, std::max(kReach + tau, end)));
  const long n = kernel_.rows();
  tail_y_.setZero(n + 1);
  for (long row = n - 1; row >= 0; --row) {
    const double g = static_cast<double>(kernel_first_ + row) * step - tau;
    tail_y_[row] =
        tail_y_[row + 1] + step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
  }
  const double lowest = (u_min + mu - kReach * tau) / kStep;
  table_first_ = std::max(kTableFirst, std::min(static_cast<long>(lowest), kTableLast) - 1);
  y_ = make_table(table_first_, mu - static_cast<double>(lattice_) * kStep);
}

void TokenMoments::make_kernel(double step, double shift, double reach) {
  kernel_first_ = -static_cast<long>(std::ceil(kReach / step));
  const long last = static_cast<long>(std::ceil(reach / step));
  const long n = last - kernel_first_ + 1;
  kernel_.resize(n, degree_ + 1);
  for (long row = 0; row < n; ++row) {
    const double g = static_cast<double>(kernel_first_ + row) * step;
    double value = step * std::exp(-0.5 * g * g) / std::sqrt(2 * std::numbers::pi);
    for (int j = 0; j <= degree_; ++j) {
      kernel_(row, j) = value;
      value *= g - shift;
    }
  }
  if (fine_) {
    growth_.resize(n);
    for (long row = 0; row < n; ++row) {
      growth_[row] = std::exp(tau_ * static_cast<double>(kernel_first_ + row) * step);
    }
    return;
  }
  tail_.setZero(n + 1);
  for (long row = n - 1; row >= 0; --row) tail_[row] = tail_[row + 1] + kernel_(row, 0);
}

TokenMoments::Window TokenMoments::window(long node) const {
  const long n = kernel_.rows(), i = node + lattice_;
  // At the left end, y times the Gaussian is e^-39 of its largest value over y <= 1.
  const double u = static_cast<double>(i) * kStep;
  const double centre = u + tau_ * tau_;
  const double peak = std::min(0.0, centre);
  const double left = centre - std::sqrt((peak - centre) * (peak - centre) + 78 * tau_ * tau_);
  long first = std::max(i + kernel_first_, static_cast<long>(std::floor(left / kStep)));
  first = std::clamp(first, table_first_, kTableLast + 1);
  const long last = std::min(i + kernel_first_ + n - 1, kTableLast);
  const long kernel = std::clamp(first - i - kernel_first_, 0L, n);
  const long tail = std::clamp(kTableLast + 1 - i - kernel_first_, 0L, n);
  return {first - table_first_, std::max(0L, last - first + 1), kernel, tail};
}

Columns TokenMoments::near(double u) const {
  const double scale = std::exp(u + mu_);
  Columns rows(kernel_.rows(), 6);
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
  double G[3];
  simd::dot_columns(column(*y_, 0) + w.first, y_->rows(), 3, column(kernel_, 0) + w.kernel, w.count,
                    G);
  const double G2xx = degree_ >= 2 ? dot(2, 2, w) : 0;
  return {G[0] + tail_[w.tail], G[1], G[2], G2xx};
}

double TokenMoments::third(long i) const {
  if (fine_) return near(static_cast<double>(i) * kStep).col(3).dot(kernel_.col(0));
  return dot(3, 0, window(i));
}

TokenMoments::Table TokenMoments::all(long i) const {
  Table G = Table::Zero();
  const auto fill = [&](const Columns& y, const Window& w) {
    for (int j = 0; j <= degree_; ++j) {
      simd::dot_columns(column(y, 0) + w.first, y.rows(), 5, column(kernel_, j) + w.kernel, w.count,
                        G.col(j).data());
    }
  };
  if (fine_) {
    fill(near(static_cast<double>(i) * kStep), {.first = 0, .count = kernel_.rows(), .kernel = 0});
    return G;
  }
  const Window w = window(i);
  fill(*y_, w);
  G(0, 0) += tail_[w.tail];
  return G;
}

double TokenMoments::excess(long i) const {
  const double u = static_cast<double>(i) * kStep;
  if (fine_) return near(u).col(5).dot(kernel_.col(0));
  const Window w = window(i);
  const double beyond =
      tail_y_[w.tail] > 0 ? tail_y_[w.tail] * std::exp(u + mu_ + 0.5 * tau_ * tau_) : 0.0;
  return dot(5, 0, w) + beyond;
}

double TokenMoments::dot(int k, int j, const Window& w) const {
  return simd::dot(column(*y_, k) + w.first, column(kernel_, j) + w.kernel, w.count);
}

// log1p keeps (1 - psi)^L accurate for tiny psi. psi may exceed 1 by rounding.
Survival::Survival(std::int64_t L, double psi) {
  const double log_phi = std::log1p(-std::min(psi, 1.0));
  double falling = 1;
  for (std::int64_t p = 1; p <= 4 && p <= L; ++p) {
    falling *= static_cast<double>(L - p + 1);
    power[p] = L == p ? falling : falling * std::exp(static_cast<double>(L - p) * log_phi);
  }
}

}  // namespace esscher
