// A figure that a verdict judges, and what its judgement is worth.
//
//   |value - expected| <= tolerance |expected| + kJudgedErrors (error + expected_error)
//
// The test is two-sided. `noticed` is the smallest factor f such that both f value and value / f,
// with errors multiplied by the same factor, would fail it: the size that a planted error must have
// to be seen. A figure with noticed() > kNoticed is too blunt to judge, and its section fails.
//
//   Checks checks;
//   checks.figures.push_back({.what = "risk at L = 100", .value = 0.1562, .error = 1e-5,
//                             .expected = 0.15624, .source = Source::independent,
//                             .tolerance = 0.01});
//   checks.controls.push_back(..);   // the same check where the statement is false: it must fail
//   const std::string trouble = trouble_of(checks);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/report/page.h"

namespace esscher::paper {

// Where an expected value comes from: a formula, tests/paper/independent.py (NumPy, none of this
// library), or the exponent that the statement predicts.
enum class Source { closed_form, independent, exponent };

constexpr auto enum_names(Source) {
  return EnumNames<Source, 3>{"source",
                              {{{Source::closed_form, "closed form"},
                                {Source::independent, "independent value"},
                                {Source::exponent, "predicted exponent"}}}};
}

inline constexpr double kJudgedErrors = 5;  // standard or quadrature errors that are allowed
inline constexpr double kNoticed = 1.2;

struct Judged {
  std::string what = {};
  double value = 0;
  double error = 0;  // standard or quadrature error of the value
  double expected = 0;
  double expected_error = 0;
  Source source = Source::closed_form;
  double tolerance = 0;  // relative to the expected value

  [[nodiscard]] bool agrees() const;
  [[nodiscard]] double noticed() const;  // infinity if no factor would be noticed
  // The same figure with its value and error multiplied.
  [[nodiscard]] Judged planted(double factor) const;
};

// A claim that has no expected value: a monotone curve, a status.
struct Condition {
  std::string what = {};  // a sentence for the reader if it is broken
  bool holds = false;
};

struct Checks {
  std::vector<Judged> figures = {};
  std::vector<Judged> controls = {};  // must not agree
  std::vector<Condition> conditions = {};
};

// Adds "NAME falls from L = .. to L = .." for each pair of neighbours, point by point.
void must_fall(Checks& checks, const std::string& what, std::span<const std::int64_t> lengths,
               std::span<const double> values);

// What is wrong, empty if nothing: nothing judged, a figure that disagrees or is too blunt, a broken
// condition, no control, or a control that agrees.
std::string trouble_of(const Checks& checks);

// "In all, 12 figures were judged; the bluntest, “the risk at L = 10”, would show a factor of 1.03 and
// the others a smaller one. The 2 controls fail, as they must."
std::string sharpness(const Checks& checks);

// The figure with the largest noticed(); the checks have one.
const Judged& bluntest(const Checks& checks);

// Verdict::unless of the trouble, with the text and the sharpness behind it.
Verdict verdict_of(const Checks& checks, VerdictStatus status, const std::string& text);

// Every figure and control with its expected value, source, and noticed() - 1 in per cent.
PageTable judged_table(const Checks& checks);

// A value of independent_values.inc. Throws ArgumentError if there is none.
struct IndependentValue {
  std::string_view what;
  double parameter = 0;  // sigma, eps or time; 0 if there is none
  std::int64_t L = 0;    // 0 if there is none
  double value = 0;
  double error = 0;
};
const IndependentValue& independent(std::string_view what, double parameter, std::int64_t L);
bool has_independent(std::string_view what, double parameter, std::int64_t L);

// The figure of this value against the independent one.
Judged against_independent(std::string what, double value, double error, double tolerance,
                           const IndependentValue& expected);

// -log(y2/y1)/log(x2/x1): the exponent of a fall between two points, and its error from theirs.
struct Exponent {
  double value = 0, error = 0;
};
Exponent exponent_between(double x1, double y1, double e1, double x2, double y2, double e2);

}  // namespace esscher::paper
