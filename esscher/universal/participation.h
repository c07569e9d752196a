// How concentrated softmax weights are among a real number of Gaussian scores: for n iid scores
// s_l ~ N(0, tau^2) with weights omega,
//
//   mean_weight_square(n, tau) = E sum omega^2 = n int G_2 (1 - psi)^{n-1} du
//
// with psi and G_2 of universal/token_moments.h. It is H of universal/universal.h at whole n, and
// analytic in n, which may be any number from 1 to 1e300. 0 <= tau <= kMaxTau. The integrand is
// positive, so the relative accuracy is 1e-10 however small the answer is. The cost does not grow
// with n.
#pragma once

namespace esscher {

// Throws ArgumentError unless 1 <= n <= 1e300 and 0 <= tau <= kMaxTau.
double mean_weight_square(double n, double tau);

}  // namespace esscher
