#include "esscher/concentration/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/concentration/tilted_moments.h"
#include "esscher/estimate/smallest_length.h"
#include "esscher/prompt/errors.h"

namespace esscher {
namespace {

Hypothesis centred(const std::string& who, const AnyMeasure& m) {
  const double norm = m.mean().norm();
  return {who + " is centred", norm <= 1e-12, norm, "|mean| = " + brief(norm)};
}

// The number, with its error where there is one, and how it was found.
std::string found(double value, double std_error, const std::string& how) {
  return (std_error > 0 ? brief_with_error(value, std_error) : brief(value)) + ", " + how;
}

void add_moments(const Problem& problem, std::uint64_t seed, Index queries,
                 std::vector<Hypothesis>& out) {
  const TiltedMoments m = tilted_moments(problem, queries, seed);
  const double norm = std::pow(m.output4, 0.25);
  // d x^(1/4) = x^(-3/4) dx / 4.
  const double norm_error = m.output4_error > 0 ? m.output4_error * norm / (4 * m.output4) : 0;
  out.push_back({"|T[mu]| in L4(nu) is finite", m.finite && std::isfinite(norm), norm,
                 m.finite ? "|T[mu]|_L4 = " + found(norm, norm_error, m.how) : m.how});
  for (Index p = 0; p < 3; ++p) {
    for (Index q = 0; q < 3; ++q) {
      if (p + q == 0) continue;
      const double value = m.value(p, q);
      out.push_back(
          {"moment p=" + std::to_string(4 * p) + " q=" + std::to_string(4 * q) + " is finite",
           m.finite && std::isfinite(value), value,
           m.finite ? found(value, m.std_error(p, q), m.how) : m.how});
    }
  }
}

BoundFit fit_bound(Metric metric, const StudyResult& result, double sigma) {
  BoundFit fit;
  fit.metric = metric;
  if (reads_covariance(metric)) fit.sigma_power = 12, fit.log_power = 2;
  std::vector<const StudyRow*> rows;
  for (const StudyRow& r : result.rows) {
    if (r.metric == metric && r.L >= 2 && r.value > 0) rows.push_back(&r);
  }
  if (rows.size() < 4) return fit;
  const std::size_t half = (rows.size() + 1) / 2;
  // The exponent is the slowest local decay seen, so that ln L is slack and not a parameter. c_1 comes
  // from the upper ends of the intervals.
  double g = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 1 < half; ++i) {
    const double dx =
        std::log(static_cast<double>(rows[i + 1]->L) / static_cast<double>(rows[i]->L));
    g = std::min(g, std::log(rows[i]->value / rows[i + 1]->value) / dx);
  }
  fit.c2 = g * sigma * sigma;
  fit.c1 = 1;
  double c1 = 0;
  for (std::size_t i = 0; i < half; ++i)
    c1 = std::max(c1, rows[i]->ci.hi / bound_at(fit, sigma, rows[i]->L));
  fit.c1 = c1;
  fit.fitted_up_to = rows[half - 1]->L;
  fit.holds = true;
  for (std::size_t i = half; i < rows.size(); ++i) {
    const double ratio = rows[i]->ci.lo / bound_at(fit, sigma, rows[i]->L);
    fit.worst_ratio = std::max(fit.worst_ratio, ratio);
    if (ratio > 1 && fit.holds) {
      fit.holds = false;
      fit.first_violation = rows[i]->L;
    }
  }
  return fit;
}

}  // namespace

std::string hypothesis_words(const std::string& name) {
  static const std::map<std::string, std::string> words{
      {"mu is centred", "Tokens are centred"},
      {"mu is sub-Gaussian", "Tokens are sub-Gaussian, with a constant σ"},
      {"sigma >= 1", "Their constant σ is at least 1"},
      {"nu is centred", "Queries are centred"},
      {"nu is 1-sub-Gaussian", "Queries are sub-Gaussian with a constant of at most 1"},
      {"nu is a law", "Queries have a law"},
      {"L >= 2", "Prompts have at least two tokens"},
      {"|T[mu]| in L4(nu) is finite", "The norm of T[μ] over queries has a finite fourth moment"}};
  const auto found = words.find(name);
  return found == words.end() ? name : found->second;
}

double bound_at(const BoundFit& fit, double sigma, std::int64_t L) {
  const double x = static_cast<double>(L);
  return fit.c1 * std::pow(sigma, fit.sigma_power) * std::pow(std::log(x), fit.log_power) *
         std::pow(x, -fit.c2 / (sigma * sigma));
}

std::int64_t bound_length(const BoundFit& fit, double sigma, double eps) {
  if (!(fit.c2 > 0) || !(fit.c1 > 0)) return 0;
  constexpr std::int64_t kMax = 1000000000000000000;
  // (ln L)^p / L^g rises up to L = e^{p/g}. The answer lies on the falling branch.
  const double peak = std::exp(std::min(41.0, fit.log_power * sigma * sigma / fit.c2));
  const std::int64_t from = std::max<std::int64_t>(2, static_cast<std::int64_t>(peak));
  const auto bound = [&](std::int64_t L) { return bound_at(fit, sigma, L); };
  return smallest_length(bound, eps, {.from = from, .to = kMax}).length.value_or(0);
}

BoundReport check_bound(Proposition proposition, const Problem& problem, const StudyResult& result,
                        std::uint64_t seed, Index queries) {
  if (!problem.is_plain()) {
    throw CapabilityError("bound: the propositions are about iid tokens, not about [prompt]");
  }
  BoundReport report;
  report.proposition = proposition;
  const double sigma = problem.mu.sub_gaussian();
  auto& h = report.hypotheses;
  h.push_back(centred("mu", problem.mu));
  h.push_back({"mu is sub-Gaussian", std::isfinite(sigma), sigma, "sigma = " + brief(sigma)});
  // A law with sigma < 1 satisfies the definition with sigma = 1 as well.
  report.sigma = std::max(1.0, sigma);
  h.push_back({"sigma >= 1", true, report.sigma,
               sigma >= 1 ? "sigma = " + brief(sigma)
                          : "sigma = " + brief(sigma) + ", so the bound is taken at 1"});
  if (problem.nu) {
    const double nu_sigma = problem.nu->sub_gaussian();
    h.push_back(centred("nu", *problem.nu));
    h.push_back({"nu is 1-sub-Gaussian", nu_sigma <= 1 + 1e-12, nu_sigma,
                 "its constant is " + brief(nu_sigma)});
  } else {
    h.push_back({"nu is a law", false, kUnknown, "queries are given points"});
  }
  const std::int64_t shortest = result.rows.empty() ? 0 : result.rows.front().L;
  h.push_back({"L >= 2", shortest >= 2, static_cast<double>(shortest),
               shortest >= 2 ? "shortest L is " + std::to_string(shortest)
                             : "at L = 1 the bound reads 0; L = 1 is left out"});
  add_moments(problem, seed, queries, h);

  if (std::isfinite(sigma)) {
    for (const MetricFit& m : result.fits) {
      if ((m.metric == Metric::output) != (proposition == Proposition::prop31)) continue;
      BoundFit fit = fit_bound(m.metric, result, report.sigma);
      if (fit.fitted_up_to > 0) report.fits.push_back(std::move(fit));
    }
  }
  report.verdict = bound_verdict(h, report.fits);
  return report;
}

BoundVerdict bound_verdict(std::span<const Hypothesis> hypotheses, std::span<const BoundFit> fits) {
  std::string text;
  for (const Hypothesis& x : hypotheses) {
    if (!x.holds) text += (text.empty() ? "" : "; ") + x.name + " fails (" + x.text + ")";
  }
  if (text.empty()) text = "all hypotheses hold";
  if (fits.empty()) {
    return {BoundStatus::no_fit, text +
                                     ". No fit: it needs a finite sigma, a metric of this "
                                     "proposition and 4 lengths >= 2"};
  }
  text += ". With constants fitted on the shorter half of the lengths the bound ";
  const bool holds = std::all_of(fits.begin(), fits.end(), [](const auto& f) { return f.holds; });
  return {holds ? BoundStatus::holds : BoundStatus::fails,
          text + (holds ? "holds" : "FAILS") + " on the rest"};
}

}  // namespace esscher
