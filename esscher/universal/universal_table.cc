#include "esscher/universal/universal_table.h"

#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/linalg.h"
#include "esscher/base/parallel.h"

namespace esscher {

namespace {

constexpr int kPanelNodes = 20;
// Ends of the panels in tau. The functions have a branch cut on tau^2 < 0, so panels get narrower
// towards 0. The functions change fastest where softmax freezes, at tau between sqrt(log L / 2) and
// sqrt(2 log L) < 9.4. Beyond it they are nearly powers of tau.
constexpr std::array<double, 23> kPanels = {0,  0.5, 1,   1.5, 2,   3,   4,           5,
                                            6,  7,   8,   9,   10,  12,  16,          24,
                                            40, 64,  100, 160, 250, 400, kMaxTableTau};

constexpr int kBasicFunctions = 2;
constexpr int kAllFunctions = 8;
constexpr int kSigned = 4;  // the one function that is not tabulated as its logarithm

using Pair = Eigen::Array2d;

double chebyshev_point(int k, int n) { return std::cos(std::numbers::pi * (k + 0.5) / n); }

// The logarithm of a positive number; the floor replaces the exact zeros of L = 1.
double log_positive(double x) { return std::log(std::max(x, 1e-300)); }

void sample(std::int64_t L, double tau, int functions, double* out) {
  if (functions == kBasicFunctions) {
    const Universal u = universal(L, tau);
    out[0] = std::log(u.H);
    out[1] = std::log(u.M2c_ratio);
    return;
  }
  const Universal4 u = universal4(L, tau);
  out[0] = std::log(u.H);
  out[1] = std::log(u.M2c_ratio);
  out[2] = std::log(u.v2_ratio);
  out[3] = log_positive(u.q_ratio);
  out[kSigned] = u.vh_ratio / std::sqrt(u.v2_ratio * u.h2);  // has either sign
  out[5] = std::log(u.h2);
  out[6] = std::log(u.p3);
  out[7] = log_positive(u.n2);
}

// One panel [tau_lo, tau_hi]: Chebyshev coefficients from samples at the Chebyshev points of tau^2.
struct Panel {
  double centre, half;
  Matrix coefficients;  // [kPanelNodes, functions]

  // tau2 [n] -> [n, functions]
  [[nodiscard]] Matrix operator()(const Vector& tau2) const {
    const Eigen::ArrayXd x = (tau2.array() - centre) / half;
    Matrix basis(tau2.size(), kPanelNodes);  // T_j(x)
    basis.col(0).setOnes();
    basis.col(1) = x;
    for (int j = 2; j < kPanelNodes; ++j) {
      basis.col(j) = 2 * x * basis.col(j - 1).array() - basis.col(j - 2).array();
    }
    return basis * coefficients;
  }
};

std::vector<Panel> make_panels(double tau_max, int functions) {
  std::vector<Panel> panels;
  // E h^2 freezes at smaller tau and faster than H, so the functions of order 4 get quarter panels.
  const int splits = functions == kBasicFunctions ? 1 : 4;
  for (std::size_t i = 0; i + 1 < kPanels.size(); ++i) {
    const double width = (kPanels[i + 1] - kPanels[i]) / splits;
    for (int part = 0; part < splits; ++part) {
      const double begin = kPanels[i] + part * width;
      if (begin >= tau_max && !panels.empty()) return panels;
      const double end = std::clamp(tau_max, begin + 0.2, begin + width);
      const double lo = begin * begin, hi = end * end;
      panels.push_back({0.5 * (lo + hi), 0.5 * (hi - lo), Matrix(kPanelNodes, functions)});
    }
  }
  return panels;
}

// Samples every panel and turns the samples into Chebyshev coefficients.
void fill_panels(std::int64_t L, int functions, std::vector<Panel>& panels) {
  std::vector<Matrix> samples(panels.size(), Matrix(kPanelNodes, functions));
  parallel_for(static_cast<std::int64_t>(panels.size()) * kPanelNodes, [&](std::int64_t job) {
    const auto i = static_cast<std::size_t>(job / kPanelNodes);
    const int k = static_cast<int>(job % kPanelNodes);
    const double tau2 = panels[i].centre + panels[i].half * chebyshev_point(k, kPanelNodes);
    sample(L, std::sqrt(std::max(0.0, tau2)), functions, samples[i].row(k).data());
  });
  Matrix transform(kPanelNodes, kPanelNodes);
  for (int j = 0; j < kPanelNodes; ++j) {
    for (int k = 0; k < kPanelNodes; ++k) {
      transform(j, k) = (j == 0 ? 1.0 : 2.0) / kPanelNodes *
                        std::cos(std::numbers::pi * j * (k + 0.5) / kPanelNodes);
    }
  }
  for (std::size_t i = 0; i < panels.size(); ++i) panels[i].coefficients = transform * samples[i];
}

}  // namespace

UniversalTable::UniversalTable(std::int64_t L, double tau_max, Family family)
    : L_(L),
      tau_max_(tau_max),
      tau2_limit_(tau_max * tau_max),
      functions_(family == Family::basic ? kBasicFunctions : kAllFunctions),
      pieces_per_tau_(family == Family::basic ? 16 : 32) {
  if (L < 1) throw_argument("UniversalTable", "L", std::to_string(L), "an integer >= 1");
  if (!(tau_max >= 0 && tau_max <= kMaxTableTau)) {
    throw_argument("UniversalTable", "tau_max", to_text(tau_max),
                   "a number in [0, " + to_text(kMaxTableTau) + "]");
  }
  tabulate();
}

void UniversalTable::tabulate() {
  std::vector<Panel> panels = make_panels(tau_max_, functions_);
  fill_panels(L_, functions_, panels);
  constexpr int n = kDegree + 1;
  // One small inverse turns values at n Chebyshev points into coefficients of powers of x.
  Vector points(n);
  Matrix powers(n, n);
  for (int k = 0; k < n; ++k) {
    points[k] = chebyshev_point(k, n);
    for (int j = 0; j < n; ++j) powers(k, j) = std::pow(points[k], j);
  }
  const Matrix fit = powers.inverse();
  const auto count = static_cast<std::size_t>(std::floor(tau_max_ * pieces_per_tau_)) + 1;
  pieces_.resize(count * stride());
  std::size_t p = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double tau_lo = static_cast<double>(i) / pieces_per_tau_;
    const double tau_hi = tau_lo + 1 / pieces_per_tau_;
    const double centre = 0.5 * (tau_lo * tau_lo + tau_hi * tau_hi);
    const double half = 0.5 * (tau_hi * tau_hi - tau_lo * tau_lo);
    while (p + 1 < panels.size() && centre > panels[p].centre + panels[p].half) ++p;
    Matrix values = panels[p]((centre + half * points.array()).matrix());
    for (int f = 0; f < functions_; ++f) {
      if (f != kSigned) values.col(f) = values.col(f).array().exp();
    }
    double* out = &pieces_[i * stride()];
    out[0] = centre;
    out[1] = 1 / half;
    // Differences from one value are expanded, so that a constant, such as H = 1 at L = 1, is
    // exact.
    const Eigen::RowVectorXd level = values.row(0);
    values.rowwise() -= level;
    Eigen::Map<Matrix> polynomials(out + 2, n, functions_);
    polynomials = fit * values;
    polynomials.row(0) += level;
  }
}

UniversalTable::Place UniversalTable::place(double tau2) const {
  if (!(tau2 >= 0 && tau2 <= tau2_limit_)) {
    throw_argument("UniversalTable", "tau2", to_text(tau2),
                   "a number in [0, " + to_text(tau2_limit_) + "]");
  }
  const auto i = static_cast<std::size_t>(std::sqrt(tau2) * pieces_per_tau_);
  const double* piece = &pieces_[i * stride()];
  return {piece + 2, (tau2 - piece[0]) * piece[1], piece[1]};
}

// H and M2c/tau^2 are evaluated in one vector. Even and odd powers are summed apart, which halves
// the latency of Horner's rule.
UniversalTable::Point UniversalTable::at_tau2(double tau2) const {
  static_assert(kDegree == 9);
  const Place at = place(tau2);
  const auto c = [&](int j) { return Pair::Map(at.coefficients + j * functions_); };
  const double x = at.x, y = x * x;
  const Pair even = c(0) + y * (c(2) + y * (c(4) + y * (c(6) + y * c(8))));
  const Pair odd = c(1) + y * (c(3) + y * (c(5) + y * (c(7) + y * c(9))));
  const Pair value = even + x * odd;
  const Pair slope_even = c(1) + y * (3 * c(3) + y * (5 * c(5) + y * (7 * c(7) + y * 9 * c(9))));
  const Pair slope_odd = 2 * c(2) + y * (4 * c(4) + y * (6 * c(6) + y * 8 * c(8)));
  const Pair slope = (slope_even + x * slope_odd) * at.dx;
  Point r;
  r.H = value[0];
  r.dH = slope[0];
  r.M2c_ratio = value[1];
  r.dM2c_ratio = slope[1];
  r.M1_ratio = 1 - r.H;
  r.dM1_ratio = -r.dH;
  r.M1 = tau2 * r.M1_ratio;
  r.dM1 = r.M1_ratio + tau2 * r.dM1_ratio;
  r.M2c = tau2 * r.M2c_ratio;
  r.dM2c = r.M2c_ratio + tau2 * r.dM2c_ratio;
  return r;
}

Universal4 UniversalTable::order4_at_tau2(double tau2) const {
  if (functions_ != kAllFunctions) {
    throw CapabilityError(
        "UniversalTable: this table holds M1, M2c and H only; build it with Family::order4");
  }
  const Place at = place(tau2);
  using Values = Eigen::Array<double, kAllFunctions, 1>;
  Values value = Values::Map(at.coefficients + kDegree * functions_);
  for (int j = kDegree - 1; j >= 0; --j) {
    value = value * at.x + Values::Map(at.coefficients + j * functions_);
  }
  Universal4 u;
  u.H = value[0];
  u.M2c_ratio = value[1];
  u.v2_ratio = value[2];
  u.q_ratio = L_ == 1 ? 0.0 : value[3];
  u.h2 = value[5];
  u.vh_ratio = value[kSigned] * std::sqrt(u.v2_ratio * u.h2);
  u.p3 = value[6];
  u.n2 = L_ == 1 ? 0.0 : value[7];
  u.v1_ratio = tau2 * (2 * u.p3 - u.H) - u.M2c_ratio;
  u.M1_ratio = L_ == 1 ? 0.0 : 1 - u.H;
  u.M1 = tau2 * u.M1_ratio;
  u.M2c = tau2 * u.M2c_ratio;
  return u;
}

}  // namespace esscher
