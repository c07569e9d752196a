// Points of the integrals of prompt/group_integrals.h in u = -x for laws with long tails. In the middle
// the integrand varies on the scale 1 in x, in the tails on the scale of log x. Gauss-Legendre panels
// of 20 points: 3 wide in the middle, in the tails so wide that the tail's mass changes by e^3. Internal to
// group_integrals.cc.
#pragma once

#include <functional>

namespace esscher::detail {

// The sweep ends where log P is below this: second moments of one token of nu = 2.2 go so far.
inline constexpr double kTailLogEnd = -300;

struct TailSpan {
  double low, high;  // where the tails begin, with all log-weights added
  double centre_low,
      centre_high;  // their panels are even in the logarithm of the distance from these
  std::function<double(double x)> exponent;  // of the mass beyond x, at most
};

// What a point was: the logarithm of P, the number of tokens that are met, sum n psi, and its parts of
// E sum omega and of the second moments.
struct PointSize {
  double log_P, met, once, square;
};

// add(u, weight) is called for every point. The sweep goes down from `high` to where P is below rounding,
// on into the lower tail, and from `high` upwards until what is added is below rounding.
void sweep_tails(const TailSpan& span, const std::function<PointSize(double, double)>& add);

}  // namespace esscher::detail
