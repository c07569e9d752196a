// Universal functions of a Gaussian prompt: what L iid scores s_l ~ N(0, tau^2) and their softmax
// weights omega do on average. Every expectation of softmax attention over Gaussian tokens is one
// of them times linear algebra (prompt/exact_gaussian.h).
//
//   S = sum omega s         v = sum omega (s - S)^2
//   h = sum omega^2         q = sum omega^2 (s - S)^2
//
// Computed by the Laplace representation (sum e^s)^-n = int t^{n-1}/(n-1)! exp(-t sum e^s) dt, as
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
// Range: 1 <= L (any 64-bit integer), 0 <= tau <= 600; relative accuracy 1e-10 or better (tested
// against 50-digit arithmetic). Nothing cancels: the functions are sums of positive integrands,
// or centred where a difference would be small. Cost does not grow with L.
#pragma once

#include <cstdint>

namespace esscher {

// Beyond about 10 softmax is frozen on one token at every length; where differences of frozen
// quantities still keep their digits decides the range.
inline constexpr double kMaxTau = 600.0;

struct Universal {
  double M1 = 0;         // E[S] = tau^2 (1 - H)
  double M2c = 0;        // E[(S - tau^2)^2]
  double H = 0;          // E[h]; 1/H is the effective sample size
  double M1_ratio = 0;   // M1 / tau^2 = 1 - H, finite at tau = 0 (1 - 1/L)
  double M2c_ratio = 0;  // M2c / tau^2, finite at tau = 0 (1/L)
  double error = 0;      // defect of the identity E[(sum omega)^2] = 1: quadrature and rounding
};

// With the mean of v.
struct Universal3 : Universal {
  double v1_ratio = 0;  // E[v - tau^2] / tau^2
  double p3 = 0;        // E[sum omega^3]
};

// The order-4 family, which errors of the gradients in U, K, Q need; each is divided by the power
// of tau that keeps it finite at tau = 0.
struct Universal4 : Universal3 {
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

}  // namespace esscher
