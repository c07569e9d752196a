// The paper's bounds as contracts ([BB26] of docs/references.md):
//
//   Prop. 3.1  D(L) <= c_1 sigma^6 ln L / L^{c_2/sigma^2}          output
//   Prop. 3.4  grad_V likewise;  grad_U <= c_1 sigma^12 (ln L)^2 / L^{c_2/sigma^2}
//
// for mu, nu centred, sigma- and 1-sub-Gaussian, sigma >= 1, with finite moments. The constants are
// not explicit and at L = 1 the right side is 0, so the check is: hypotheses with their values,
// then c_1, c_2 fitted on the shorter half of the lengths (>= 2) and the bound tested on the rest.
#pragma once

#include <string>
#include <vector>

#include "esscher/concentration/study.h"

namespace esscher {

enum class Proposition { prop31, prop34 };

struct Hypothesis {
  std::string name;
  bool holds = false;
  double value = 0;  // NaN where there is no number
  std::string text;
};

struct BoundFit {
  Metric metric = Metric::output;
  double c1 = 0, c2 = 0;
  double sigma_power = 6, log_power = 1;
  std::int64_t fitted_up_to = 0;     // lengths 2..here gave the constants
  bool holds = false;                // on the longer ones
  std::int64_t first_violation = 0;  // 0 if none
  double worst_ratio = 0;            // largest D(L) / bound(L) on the tested lengths
};

struct BoundReport {
  Proposition proposition = Proposition::prop31;
  double sigma = 0;  // max(1, sub-Gaussian constant of mu)
  std::vector<Hypothesis> hypotheses;
  std::vector<BoundFit> fits;  // empty without a finite sigma or with fewer than 4 lengths >= 2
  std::string verdict;
};

// Moments of Assumption 3.3, int int |z'|^p |z|^q dmu_tilted dnu for p,q in {0,4,8}, are averages
// over `queries` draws of nu.
BoundReport check_bound(Proposition proposition, const Problem& problem, const StudyResult& result,
                        std::uint64_t seed, Index queries = 256);

// bound(L) with the fitted constants, and the smallest L with bound(L) <= eps (0 if none below
// 10^18).
double bound_at(const BoundFit& fit, double sigma, std::int64_t L);
std::int64_t bound_length(const BoundFit& fit, double sigma, double eps);

Json to_json(const BoundReport& report);

}  // namespace esscher
