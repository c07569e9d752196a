#include "esscher/scaling/boundary.h"

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/universal/needle.h"
#include "esscher/universal/participation.h"

namespace esscher {
namespace {

// The zero of a rising function.
template <class Function>
double root(double low, double high, const Function& rises) {
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (rises(middle) < 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

void check(double log_n) {
  if (!(log_n > 0 && log_n < 690)) {
    throw_argument("scaling", "log n", to_text(log_n), "a number in (0, 690)");
  }
}

}  // namespace

double asymptotic_freezing_deviation(double log_n) { return std::sqrt(2 * log_n); }

double freezing_deviation(double log_n) {
  check(log_n);
  const double target = 1 / std::sqrt(std::numbers::pi * log_n), n = std::exp(log_n);
  return root(0, 4 * asymptotic_freezing_deviation(log_n) + 4,
              [&](double tau) { return mean_weight_square(n, tau) - target; });
}

double asymptotic_retrieval_gap(double c) {
  return c < std::numbers::sqrt2 ? 1 / c + c / 2 : std::numbers::sqrt2;
}

double retrieval_gap(double c, double log_n) {
  check(log_n);
  if (!(c > 0)) throw_argument("scaling", "c", to_text(c), "a number > 0");
  const double tau = c * std::sqrt(log_n), n = std::exp(log_n);
  const double gap = root(0, 4 * asymptotic_retrieval_gap(c) * std::sqrt(log_n) + 8 / tau,
                          [&](double g) { return needle_weight(n, tau, tau * g) - 0.5; });
  return gap / std::sqrt(log_n);
}

}  // namespace esscher
