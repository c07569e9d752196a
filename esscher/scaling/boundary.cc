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

double asymptotic_averaging_deviation(double log_n) { return std::sqrt(2 * log_n / 3); }

double averaging_deviation(double log_n) {
  check(log_n);
  const double n = std::exp(log_n);
  return root(0, 2 * asymptotic_freezing_deviation(log_n) + 2, [&](double tau) {
    return 0.5 - std::exp(log_n - tau * tau) * mean_weight_square(n, tau);
  });
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

PhaseMap weight_map() {
  PhaseMap out;
  // Quotients of whole numbers print as they are meant.
  const auto tau = [](int i) { return 4 * i / 10.0; };
  for (double decade = 15; decade > 0.9; decade -= 0.5) {
    const double log_n = decade * std::numbers::ln10, n = std::exp(log_n);
    for (int i = 1; i <= 30; ++i) {
      out.cells.push_back({.x = tau(i), .y = decade, .value = mean_weight_square(n, tau(i))});
    }
    out.lines.push_back({.x = freezing_deviation(log_n), .y = decade});
    out.lines.push_back({.x = asymptotic_freezing_deviation(log_n), .y = decade, .exact = false});
  }
  return out;
}

PhaseMap needle_map(double log_n) {
  check(log_n);
  PhaseMap out;
  const double n = std::exp(log_n), scale = std::sqrt(log_n);
  for (int j = 20; j >= 0; --j) {
    const double gap = 2 * j / 10.0;
    for (int i = 1; i <= 20; ++i) {
      const double c = 15 * i / 100.0, tau = c * scale;
      out.cells.push_back({.x = c, .y = gap, .value = needle_weight(n, tau, tau * gap * scale)});
    }
  }
  for (int i = 2; i <= 40; ++i) {
    const double c = 75 * i / 1000.0;
    out.lines.push_back({.x = c, .y = retrieval_gap(c, log_n)});
    out.lines.push_back({.x = c, .y = asymptotic_retrieval_gap(c), .exact = false});
  }
  return out;
}

}  // namespace esscher
