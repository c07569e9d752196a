// Universal functions of a Gaussian prompt: averages over L iid scores s_l ~ N(0, tau^2) with
// softmax weights omega. Every expectation of softmax attention over Gaussian tokens is made of
// them by linear algebra (prompt/exact_gaussian.h). They are averages of
//
//   S = sum omega s         v = sum omega (s - S)^2
//   h = sum omega^2         q = sum omega^2 (s - S)^2
//
// By the Laplace representation (sum e^s)^-n = int t^{n-1}/(n-1)! exp(-t sum e^s) dt they are
// one-dimensional integrals over u = log t of the token moments
//
//   psi = E[1 - e^-y],   G_k[f] = E[y^k e^-y f(s)],   y = e^{u+s}
//
// With n = sum_j k_j, f_B = prod_{j in B} f_j and k(B) = sum_{j in B} k_j,
//
//   E prod_j (sum omega^{k_j} f_j)
//     = sum over the set partitions of the factors j into p blocks B of
//       L!/(L-p)! int prod_B G_{k(B)}[f_B] (1-psi)^{L-p} du / (n-1)!
//
// L is any 64-bit integer >= 1, and 0 <= tau <= 600. The relative accuracy is 1e-10 or better,
// tested against 50-digit arithmetic. Nothing cancels, because the functions are integrals of
// positive integrands, or are centred where a difference would be small. The cost does not grow
// with L.
#pragma once

#include <cstdint>

namespace esscher {

// For tau above about 10 softmax is frozen on one token at every length. The range ends where
// differences of frozen quantities begin to lose their digits.
inline constexpr double kMaxTau = 600.0;

struct Universal {
  double M1 = 0;         // E[S] = tau^2 (1 - H)
  double M2c = 0;        // E[(S - tau^2)^2]
  double H = 0;          // E[h]; 1/H is the effective sample size
  double M1_ratio = 0;   // M1 / tau^2 = 1 - H, finite at tau = 0 (1 - 1/L)
  double M2c_ratio = 0;  // M2c / tau^2, finite at tau = 0 (1/L)
  double error = 0;      // defect of the identity E[(sum omega)^2] = 1: quadrature and rounding
};

// The same with the mean of v.
struct Universal3 : Universal {
  Universal3() = default;
  explicit Universal3(const Universal& u) : Universal(u) {}

  double v1_ratio = 0;  // E[v - tau^2] / tau^2
  double p3 = 0;        // E[sum omega^3]
};

// The functions of order 4, which errors of the gradients in U, K and Q need. Each is divided by
// the power of tau that keeps it finite at tau = 0.
struct Universal4 : Universal3 {
  Universal4() = default;
  explicit Universal4(const Universal& u) : Universal3(u) {}

  double v2_ratio = 0;  // E[(v - tau^2)^2] / tau^4
  double q_ratio = 0;   // E[q] / tau^2
  double vh_ratio = 0;  // E[(v - tau^2) h] / tau^2
  double h2 = 0;        // E[h^2]
  double n2 = 0;        // E[h - 2 sum omega^3 + h^2] = E|diag(omega) - omega omega'|_F^2
};

// Throws ArgumentError unless L >= 1 and 0 <= tau <= kMaxTau.
Universal universal(std::int64_t L, double tau);
Universal3 universal3(std::int64_t L, double tau);  // at little more than the cost of universal()
Universal4 universal4(std::int64_t L, double tau);
// universal4() if the order-4 family is asked for, else universal() with zeros for that family.
Universal4 universal_up_to(bool order4, std::int64_t L, double tau);

}  // namespace esscher
