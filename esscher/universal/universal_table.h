// The universal functions of one prompt length, tabulated in tau^2 for fast evaluation.
//
// log H and log(M2c/tau^2) are analytic in tau^2 from the bulk (H = e^{tau^2}/L) to the frozen
// regime (H near 1). universal() computes them at the Chebyshev points of a few wide panels. H and
// M2c/tau^2 themselves are then expanded in short pieces of equal width in tau, each a polynomial
// in tau^2, so that reading the table needs no exponential. The relative error is below 1e-11 in
// the values and 1e-9 in the derivatives (tested). M1 = tau^2 (1 - H) follows from H.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "esscher/universal/universal.h"

namespace esscher {

inline constexpr double kMaxTableTau = kMaxTau;

class UniversalTable {
 public:
  enum class Family { basic, order4 };

  // Values and their derivatives with respect to tau^2.
  struct Point {
    double M1, M2c, H, M1_ratio, M2c_ratio;
    double dM1, dM2c, dH, dM1_ratio, dM2c_ratio;
  };

  // The table covers 0 <= tau <= tau_max <= kMaxTableTau. Throws ArgumentError as universal() does.
  UniversalTable(std::int64_t L, double tau_max, Family family = Family::basic);

  [[nodiscard]] std::int64_t length() const { return L_; }
  [[nodiscard]] double tau_max() const { return tau_max_; }

  // Throws ArgumentError unless 0 <= tau2 <= tau_max^2.
  [[nodiscard]] Point at_tau2(double tau2) const;
  [[nodiscard]] Point at(double tau) const { return at_tau2(tau * tau); }

  // All values of universal4. Throws CapabilityError for a table of the basic family.
  [[nodiscard]] Universal4 order4_at_tau2(double tau2) const;

 private:
  static constexpr int kDegree = 9;

  struct Place {
    const double* coefficients;  // [kDegree + 1, functions], lowest power first
    double x;                    // local variable in [-1, 1]
    double dx;                   // dx/dtau^2
  };
  [[nodiscard]] Place place(double tau2) const;
  void tabulate();
  [[nodiscard]] std::size_t stride() const {
    return 2 + static_cast<std::size_t>(functions_) * (kDegree + 1);
  }

  std::int64_t L_;
  double tau_max_;
  double tau2_limit_;
  int functions_;
  double pieces_per_tau_;
  std::vector<double> pieces_;  // [pieces, stride]: centre, dx, polynomials
};

}  // namespace esscher
