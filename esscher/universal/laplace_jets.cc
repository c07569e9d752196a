#include "esscher/universal/laplace_jets.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr Index kWidth = LaplaceJets::kOrders + 1;
using Row = Eigen::Array<double, 1, kWidth>;
constexpr Index kPoints = 12;         // of an interpolation
constexpr double kFinest = 1.0 / 12;  // lattice of log y
constexpr double kReach = 9;          // deviations of g that are kept
constexpr double kNarrow = 0.14;      // below it nodes follow g, not the lattice

// Lagrange weights of the points 0 .. kPoints-1 at x.
std::array<double, kPoints> interpolation(double x) {
  std::array<double, kPoints> out{};
  for (Index l = 0; l < kPoints; ++l) {
    double w = 1;
    for (Index m = 0; m < kPoints; ++m) {
      if (m != l) w *= (x - static_cast<double>(m)) / static_cast<double>(l - m);
    }
    out[l] = w;
  }
  return out;
}

}  // namespace

// D_0 .. D_6 at y, with 1 - e^-y in place 0: D_j = q_j(y) e^-y, q_{j+1} = y (q_j' - q_j).
void laplace_functions(double log_y, double* out) {
  if (log_y > 6.7) {
    std::fill_n(out, kWidth, 0.0);
    out[0] = 1;
    return;
  }
  const double y = std::exp(log_y), e = std::exp(-y), ye = y * e;
  out[0] = -std::expm1(-y);
  out[1] = -ye;
  out[2] = ye * (-1 + y);
  out[3] = ye * (-1 + y * (3 - y));
  out[4] = ye * (-1 + y * (7 + y * (-6 + y)));
  out[5] = ye * (-1 + y * (15 + y * (-25 + y * (10 - y))));
  out[6] = ye * (-1 + y * (31 + y * (-90 + y * (65 + y * (-15 + y)))));
  out[7] = 0;
}

LaplaceJets::LaplaceJets(double tau, double v_min, double v_max)
    : tau_(tau),
      refined_(tau < 4 ? 2 : 1),
      coarse_(tau < 4 ? 1 : static_cast<Index>(std::min(tau / 4, 1e3))),
      step_(kStep * static_cast<double>(coarse_) / static_cast<double>(refined_)) {
  if (!(tau >= 0 && tau <= kMaxTau)) {
    throw CapabilityError("exact prompts: scores have standard deviation tau = " + to_text(tau) +
                          ", the exact engine reaches tau = " + to_text(kMaxTau) +
                          "; use engine = direct");
  }
  const double low = std::floor(v_min / step_) - static_cast<double>(kPoints) / 2;
  const double high = std::ceil(v_max / step_) + static_cast<double>(kPoints) / 2;
  first_ = low * step_;
  orders_ = Matrix::Zero(static_cast<Index>(high - low) + 2, kWidth);
  if (tau_ < kNarrow) {
    fill_direct();
  } else {
    fill_by_lattice();
  }
}

// Nodes at 0.6 deviations leave 2 exp(-2 pi^2/0.36) = 3e-24.
void LaplaceJets::fill_direct() {
  constexpr double kNodeStep = 0.6;
  const Index half = tau_ > 0 ? static_cast<Index>(kReach / kNodeStep) : 0;
  Vector weight(2 * half + 1);
  for (Index j = -half; j <= half; ++j) {
    const double g = kNodeStep * static_cast<double>(j);
    weight[j + half] = std::exp(-g * g / 2);
  }
  weight /= weight.sum();
  std::array<double, kWidth> at{};
  for (Index i = 0; i < orders_.rows(); ++i) {
    for (Index j = -half; j <= half; ++j) {
      laplace_functions(
          first_ + static_cast<double>(i) * step_ + tau_ * kNodeStep * static_cast<double>(j),
          at.data());
      for (Index k = 0; k < kWidth; ++k) orders_(i, k) += weight[j + half] * at[k];
    }
  }
}

// Row i is the sum over m of weight[m] D(log y = v_i + m node), a product with a table of D that
// all rows share.
void LaplaceJets::fill_by_lattice() {
  const Index skip = tau_ < 2 * kNarrow ? 1 : 2;  // nodes of g in steps of the table
  const double node = kFinest * static_cast<double>(skip);
  const auto half = static_cast<Index>(std::ceil(kReach * tau_ / node));
  Vector weight(2 * half + 1);
  for (Index m = -half; m <= half; ++m) {
    const double g = node * static_cast<double>(m) / tau_;
    weight[m + half] = std::exp(-g * g / 2);
  }
  weight /= weight.sum();
  const auto stride = static_cast<Index>(std::lround(step_ / kFinest));
  const Index count = (orders_.rows() - 1) * stride + 2 * half * skip + 1;
  Matrix table(count, kWidth);
  const double start = first_ - static_cast<double>(half) * node;
  for (Index j = 0; j < count; ++j) {
    laplace_functions(start + static_cast<double>(j) * kFinest, &table(j, 0));
  }
  for (Index i = 0; i < orders_.rows(); ++i) {
    Row sum = Row::Zero();
    const double* row = &table(i * stride, 0);
    for (Index m = 0; m < weight.size(); ++m, row += skip * kWidth) {
      sum += weight[m] * Eigen::Map<const Row>(row);
    }
    orders_.row(i) = sum.matrix();
  }
}

Matrix LaplaceJets::rows(double v, Index n) const {
  Matrix out(n, kOrders);
  // Rows i, i + coarse_, .. stand at the same distance from a point of the lattice.
  for (Index turn = 0; turn < std::min(coarse_, n); ++turn) {
    const double place = (v + kStep * static_cast<double>(turn) - first_) / step_;
    const double base = std::floor(place) - static_cast<double>(kPoints) / 2 + 1;
    const std::array<double, kPoints> weight = interpolation(place - base);
    const double* start = &orders_(static_cast<Index>(base), 0);
    for (Index i = turn; i < n; i += coarse_, start += refined_ * kWidth) {
      Row sum = Row::Zero();
      const double* row = start;
      for (Index l = 0; l < kPoints; ++l, row += kWidth) {
        sum += weight[l] * Eigen::Map<const Row>(row);
      }
      out.row(i) = sum.head<kOrders>().matrix();
    }
  }
  return out;
}

}  // namespace esscher
