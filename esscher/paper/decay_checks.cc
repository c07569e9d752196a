// What Propositions 3.1 and 3.4 are judged by: points, exponents and constants of D(L).
#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/number_text.h"
#include "esscher/paper/verdicts.h"

namespace esscher::paper {
namespace {

// Two decades each; the last one that a curve reaches is judged.
constexpr std::int64_t kWindows[][2] = {{1000000, 100000000}, {10000000000, 1000000000000}};

std::string key_of(const Decay& c) {
  const std::string metric(name(c.metric));
  return c.engine == Engine::exact ? metric : "coin " + metric;
}

std::string name_of(const Decay& c) {
  const std::string what = c.metric == Metric::output   ? "D"
                           : c.metric == Metric::grad_v ? "the error of ∇V"
                                                        : "the error of ∇U";
  return what + " of " + c.setting;
}

double at_length(const Decay& c, std::int64_t L) {
  for (std::size_t i = 0; i < c.L.size(); ++i) {
    if (c.L[i] == L) return c.D[i];
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void add_points(Checks& out, const Decay& c) {
  for (std::size_t i = 0; i < c.L.size(); ++i) {
    if (!has_independent(key_of(c), c.sigma, c.L[i])) continue;
    const bool exact = c.engine == Engine::exact;
    out.figures.push_back(against_independent(
        name_of(c) + ", L = " + brief(c.L[i]), c.D[i], exact ? 0 : c.std_error[i],
        exact ? kExactTolerance : 0, independent(key_of(c), c.sigma, c.L[i])));
  }
}

// The local exponent over the longest prompts that the curve reaches: against the independent one,
// and against gamma where the independent one is as close to it as the tolerance asks. Elsewhere gamma
// is known to be approached too slowly to be judged at L = 1e12.
void add_exponents(Checks& out, const Decay& c) {
  if (c.engine != Engine::exact) return;
  Judged judged;
  for (const auto& [from, to] : kWindows) {
    if (std::isnan(at_length(c, from)) || std::isnan(at_length(c, to))) continue;
    const IndependentValue &first = independent(key_of(c), c.sigma, from),
                           &second = independent(key_of(c), c.sigma, to);
    const auto x1 = static_cast<double>(from), x2 = static_cast<double>(to);
    const Exponent known =
        exponent_between(x1, first.value, first.error, x2, second.value, second.error);
    judged = {
        .what = "the exponent of " + name_of(c) + " over L = " + brief(from) + " .. " + brief(to),
        .value = exponent_between(x1, at_length(c, from), 0, x2, at_length(c, to), 0).value,
        .expected = known.value,
        .expected_error = known.error,
        .source = Source::independent,
        .tolerance = kExactTolerance};
  }
  if (judged.what.empty()) return;
  out.figures.push_back(judged);
  if (!(std::abs(judged.expected / c.gamma - 1) <= 0.9 * kRateTolerance)) return;
  judged.what += ", as predicted";
  judged.expected = c.gamma;
  judged.expected_error = 0;
  judged.source = Source::exponent;
  judged.tolerance = kRateTolerance;
  out.figures.push_back(std::move(judged));
}

// Close to lambda = 1/2 the limit is approached slower than any power.
void add_constant(Checks& out, const Decay& c) {
  if (c.engine != Engine::exact || !std::isfinite(c.constant) || !(c.lambda < 0.3)) return;
  out.figures.push_back({.what = "L times " + name_of(c) + ", L = " + brief(c.L.back()),
                         .value = c.scaled_end(),
                         .expected = c.constant,
                         .source = Source::closed_form,
                         .tolerance = kConstantTolerance});
}

void add_bound(Checks& out, std::span<const Decay> curves, Metric metric) {
  const CommonFit fit = fit_common(curves, metric);
  const std::string which(name(metric));
  out.conditions.push_back(
      {.what = which + " does not fall: the largest exponent that bounds it is " + brief(fit.c2),
       .holds = fit.c2 > 0});
  out.conditions.push_back({.what = which + " exceeds the bound by a factor " +
                                    brief(fit.worst_ratio) + " at " + fit.worst_at,
                            .holds = fit.worst_ratio <= 1});
}

// D of one sigma taken for that of another, and a slow exponent taken for 1.
void add_controls(Checks& out, std::span<const Decay> curves) {
  for (const Decay& c : curves) {
    if (c.engine != Engine::exact || c.sigma == 1) continue;
    const std::int64_t L = 1000;
    if (!has_independent(key_of(c), 1, L)) continue;
    out.controls.push_back(
        against_independent(name_of(c) + ", L = " + brief(L) + ", taken for that of σ = 1",
                            at_length(c, L), 0, kExactTolerance, independent(key_of(c), 1, L)));
    if (!(c.gamma < 0.9)) continue;
    out.controls.push_back({.what = "the exponent of " + name_of(c) + " taken for 1",
                            .value = c.last_exponent(),
                            .expected = 1,
                            .source = Source::exponent,
                            .tolerance = kRateTolerance});
  }
}

}  // namespace

Checks decay_checks(const DecayNumbers& n) {
  Checks out;
  for (const Decay& c : n.curves) {
    add_points(out, c);
    add_exponents(out, c);
    add_constant(out, c);
  }
  out.figures.insert(out.figures.end(), n.known.begin(), n.known.end());
  for (const Metric metric : {Metric::output, Metric::grad_v, Metric::grad_u}) {
    const bool there = std::any_of(n.curves.begin(), n.curves.end(),
                                   [&](const Decay& c) { return c.metric == metric; });
    if (there) add_bound(out, n.curves, metric);
  }
  add_controls(out, n.curves);
  out.controls.insert(out.controls.end(), n.known_controls.begin(), n.known_controls.end());
  return out;
}

}  // namespace esscher::paper
