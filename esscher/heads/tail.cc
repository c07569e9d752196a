#include "esscher/heads/tail.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/universal/free_energy.h"
#include "esscher/universal/universal.h"

namespace esscher {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// F and M1/tau^2 at any tau.
FreeEnergy at_any_tau(double count, double tau) {
  if (tau <= kMaxTau) return tabulated_free_energy(count, tau);
  const FreeEnergy end = free_energy(count, kMaxTau);
  return {.F = end.F * tau / kMaxTau, .shrink = end.shrink * kMaxTau / tau};
}

TailValue component(Tail tail, const ScoreMixture& scores, Index c, double count) {
  const double n = scores.weights(c) * count;
  if (!(n > 0)) return {.log_mass = kNothing, .value = scores.mean.row(c)};
  const Vector mean = scores.mean.row(c);
  const Vector cross = scores.cross.row(c);
  const double first = std::log(n) + scores.mu(c);
  switch (tail) {
    case Tail::none: return {.log_mass = kNothing, .value = mean};
    case Tail::mean: return {.log_mass = first, .value = mean};
    case Tail::first: return {.log_mass = first, .value = mean + cross};
    case Tail::finite: {
      const FreeEnergy finite = at_any_tau(n, std::sqrt(scores.tau2(c)));
      return {.log_mass = scores.mu(c) + finite.F, .value = mean + finite.shrink * cross};
    }
    default: return {.log_mass = first + 0.5 * scores.tau2(c), .value = mean + cross};
  }
}

}  // namespace

TailValue merge(const TailValue& a, const TailValue& b) {
  const double top = std::max(a.log_mass, b.log_mass);
  if (top == kNothing) return a;
  const double wa = std::exp(a.log_mass - top);
  const double wb = std::exp(b.log_mass - top);
  return {.log_mass = top + std::log(wa + wb),
          .value = (wa / (wa + wb)) * a.value + (wb / (wa + wb)) * b.value};
}

TailValue tail_value(Tail tail, const ScoreMixture& scores, double count) {
  TailValue out = component(tail, scores, 0, count);
  for (Index c = 1; c < scores.weights.size(); ++c) {
    out = merge(out, component(tail, scores, c, count));
  }
  return out;
}

Index tail_state(Tail tail, Index dk, Index dv, Index components) {
  const Index mean = 1 + dk + dv;
  const Index square = dk * (dk + 1) / 2;
  switch (tail) {
    case Tail::none: return 0;
    case Tail::mean: return mean;
    case Tail::first: return mean + dk * dv;
    default: return components * (mean + dk * dv + square);
  }
}

Index tail_multiply_adds(Tail tail, Index dk, Index dv, Index components) {
  const Index linear = dk + dk * dv;
  switch (tail) {
    case Tail::none: return 0;
    case Tail::mean: return dk;
    case Tail::first: return linear;
    default: return components * (linear + dk * (dk + 1) / 2 + dk);
  }
}

}  // namespace esscher
