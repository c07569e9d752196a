// The free energy of a Gaussian prompt: for n iid scores s_l ~ N(0, tau^2) with Z = sum e^{s_l},
//
//   F(n,tau) = E log Z = log n + int_0^tau M1(n,t)/t dt,    shrink(n,tau) = M1/tau^2 = 1 - E[h]
//
// with M1 and h of universal/universal.h. At n = inf these are log n + tau^2/2 and 1: what the limit
// says of the mass and of the tilted mean of n keys. A finite n has less of both, because the mean
// of e^s is carried by keys that are not there.
//
// log z = int (1{u < u0} - e^{-z e^u}) du - u0 - gamma for z > 0 and Euler's gamma makes F one
// integral. A step that is symmetric about u0 and smooth serves as well as 1{u < u0}:
//
//   F = int (Phi((u0 - u)/sigma) - (1 - psi)^n) du - u0 - gamma,   psi = E[1 - e^{-e^{u+s}}]
//
// with u0 near the place where (1 - psi)^n falls and sigma no narrower than that fall. Both functions
// are analytic in n, which may be any real number >= 1; 0 <= tau <= kMaxTau. The relative accuracy
// is 1e-10 or better for free_energy(), and kTableError absolute for the table.
#pragma once

namespace esscher {

struct FreeEnergy {
  double F = 0;
  double shrink = 0;  // M1 / tau^2; 1 - 1/n at tau = 0
};

// Throws ArgumentError unless n >= 1 and 0 <= tau <= kMaxTau. It takes about 0.1 ms.
FreeEnergy free_energy(double n, double tau);

// The same for a loop that asks at every token, by Chebyshev interpolation in (log n, tau). Panels
// are computed when they are first needed and kept for the process; a panel has the same bits
// whoever asks first. Beyond kTableTau or kTableLength it is free_energy().
inline constexpr double kTableTau = 8;
inline constexpr double kTableLength = 1e9;
inline constexpr double kTableError = 1e-8;
FreeEnergy tabulated_free_energy(double n, double tau);

}  // namespace esscher
