// The paper's bounds as contracts ([BB26] of docs/references.md):
//
//   Prop. 3.1  D(L) <= c_1 sigma^6 ln L / L^{c_2/sigma^2}          output
//   Prop. 3.4  grad_V likewise;  grad_U <= c_1 sigma^12 (ln L)^2 / L^{c_2/sigma^2}
//
// The hypotheses are that mu and nu are centred, sigma- and 1-sub-Gaussian with sigma >= 1, and
// have finite moments. The paper does not give the constants, and at L = 1 the right side is 0. The
// check therefore lists the hypotheses with their values, fits c_1 and c_2 on the shorter half of
// the lengths >= 2, and tests the bound on the longer half.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/concentration/study.h"

namespace esscher {

enum class Proposition { prop31, prop34 };

constexpr auto enum_names(Proposition) {
  return EnumNames<Proposition, 2>{"proposition",
                                   {{{Proposition::prop31, "3.1"}, {Proposition::prop34, "3.4"}}}};
}

struct Hypothesis {
  std::string name;
  bool holds = false;
  double value = 0;  // NaN where there is no number
  std::string text;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("name", row.name, "", "the hypothesis");
    column("holds", row.holds, "", "whether it holds");
    column("value", row.value, "", "the number it is about; nan where there is none");
    column("text", row.text, "", "the number in words");
  }
};

// The name of a hypothesis as a reader says it.
std::string hypothesis_words(const std::string& name);

struct BoundFit {
  Metric metric = Metric::output;
  double c1 = 0, c2 = 0;
  double sigma_power = 6, log_power = 1;
  std::int64_t fitted_up_to = 0;  // lengths 2..here gave the constants
  bool holds = false;             // on the longer ones
  std::optional<std::int64_t> first_violation = {};
  double worst_ratio = 0;  // largest D(L) / bound(L) on the tested lengths

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("metric", row.metric, "", "what is compared with its limit");
    column("c1", row.c1, "", "fitted c_1");
    column("c2", row.c2, "", "fitted c_2");
    column("fitted_up_to", row.fitted_up_to, "tokens", "lengths from 2 to here gave the constants");
    column("holds", row.holds, "", "whether the bound holds at the longer lengths");
    column("first_violation", row.first_violation, "tokens", "the shortest length where it fails");
    column("worst_ratio", row.worst_ratio, "", "largest D(L) / bound(L) at the longer lengths");
  }
};

enum class BoundStatus { holds, fails, no_fit };

constexpr auto enum_names(BoundStatus) {
  return EnumNames<BoundStatus, 3>{"status of a bound",
                                   {{{BoundStatus::holds, "holds"},
                                     {BoundStatus::fails, "fails"},
                                     {BoundStatus::no_fit, "no_fit"}}}};
}

// What the numbers say: the status of the fitted bound, and a text that also names the hypotheses
// that fail.
struct BoundVerdict {
  BoundStatus status = BoundStatus::no_fit;
  std::string text;
};
BoundVerdict bound_verdict(std::span<const Hypothesis> hypotheses, std::span<const BoundFit> fits);

struct BoundReport {
  Proposition proposition = Proposition::prop31;
  double sigma = 0;  // max(1, sub-Gaussian constant of mu)
  std::vector<Hypothesis> hypotheses;
  std::vector<BoundFit> fits;  // empty without a finite sigma or with fewer than 4 lengths >= 2
  BoundVerdict verdict;
};

// Moments of Assumption 3.3, int int |z'|^p |z|^q dmu_tilted dnu for p,q in {0,4,8}, are exact for
// Gaussian tokens and queries, and else estimated from `queries` draws of nu (tilted_moments.h).
BoundReport check_bound(Proposition proposition, const Problem& problem, const StudyResult& result,
                        std::uint64_t seed, Index queries = 256);

// bound(L) with the fitted constants, and the smallest L with bound(L) <= eps (0 if none below
// 10^18).
double bound_at(const BoundFit& fit, double sigma, std::int64_t L);
std::int64_t bound_length(const BoundFit& fit, double sigma, double eps);

}  // namespace esscher
