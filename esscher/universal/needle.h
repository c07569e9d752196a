// What one given token weighs among n Gaussian scores N(0, tau^2), and how far the weights spread:
//
//   needle_weight   E[ e^c / (e^c + sum e^s) ] = int e^{c+u} exp(-e^{c+u}) (1 - psi(u))^n du
//   weight_entropy  E[ -sum omega log omega ] = F - M1
//
// with psi of universal/token_moments.h, F of universal/free_energy.h and M1 = tau^2 shrink. The
// needle weighs 1/2 near c = log n + tau^2/2 while tau < sqrt(2 log n); beyond that it competes with
// the largest score, tau sqrt(2 log n). n is any real number, 1e15 and beyond, and 0 <= tau <= kMaxTau.
// The needle holds 1e-10 relative or 1e-15 absolute, whichever is more, and the entropy 1e-10
// relative to F. The cost does not grow with n.
#pragma once

namespace esscher {

// n >= 0. The score c may be any number: the weight is 0 at -infinity and 1 at +infinity.
double needle_weight(double n, double tau, double score);

// n >= 1.
double weight_entropy(double n, double tau);

}  // namespace esscher
