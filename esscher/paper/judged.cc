#include "esscher/paper/judged.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"

namespace esscher::paper {
namespace {

constexpr IndependentValue kValues[] = {
#include "esscher/paper/independent_values.inc"
};

const IndependentValue* find(std::string_view what, double parameter, std::int64_t L) {
  for (const IndependentValue& v : kValues) {
    if (v.what != what || v.L != L) continue;
    if (std::abs(v.parameter - parameter) <= 1e-7 * std::abs(parameter)) return &v;
  }
  return nullptr;
}

std::string difference_text(const Judged& j) {
  return j.what + " is " + brief_with_error(j.value, j.error) + " instead of " + brief(j.expected) +
         " (" + std::string(name(j.source)) + ", tolerance " + brief(100 * j.tolerance) + " %)";
}

}  // namespace

bool Judged::agrees() const {
  const double allowed = tolerance * std::abs(expected) + kJudgedErrors * (error + expected_error);
  return std::abs(value - expected) <= allowed;
}

// f v fails above if f (v - k e) > E + a, v / f below if (v + k e)/f < E - a, with the part a of the
// allowance that a factor leaves as it is.
double Judged::noticed() const {
  const double v = std::abs(value), spread = kJudgedErrors * error, E = std::abs(expected);
  const double fixed = tolerance * E + kJudgedErrors * expected_error;
  if (!(v > spread) || !(E > fixed)) return std::numeric_limits<double>::infinity();
  return std::max({1.0, (E + fixed) / (v - spread), (v + spread) / (E - fixed)});
}

Judged Judged::planted(double factor) const {
  Judged out = *this;
  out.value *= factor;
  out.error *= factor;
  return out;
}

void must_fall(Checks& checks, const std::string& what, std::span<const std::int64_t> lengths,
               std::span<const double> values) {
  for (std::size_t i = 1; i < lengths.size(); ++i) {
    checks.conditions.push_back({.what = what + " does not fall from L = " + brief(lengths[i - 1]) +
                                         " to L = " + brief(lengths[i]) + ": " +
                                         brief(values[i - 1]) + ", " + brief(values[i]),
                                 .holds = values[i] < values[i - 1]});
  }
}

const Judged& bluntest(const Checks& checks) {
  return *std::max_element(
      checks.figures.begin(), checks.figures.end(),
      [](const Judged& a, const Judged& b) { return a.noticed() < b.noticed(); });
}

std::string trouble_of(const Checks& checks) {
  if (checks.figures.empty()) return "nothing was judged";
  for (const Judged& j : checks.figures) {
    if (!j.agrees()) return difference_text(j);
  }
  for (const Condition& c : checks.conditions) {
    if (!c.holds) return c.what;
  }
  for (const Judged& j : checks.figures) {
    if (j.noticed() <= kNoticed) continue;
    return j.what + " is too uncertain to be judged: only a factor of " + brief(j.noticed()) +
           " would be noticed (" + brief_with_error(j.value, j.error) + ")";
  }
  if (checks.controls.empty()) return "no control was run, so the check might be unable to fail";
  for (const Judged& j : checks.controls) {
    if (!j.agrees()) continue;
    return "the check cannot fail: " + j.what + " passes it with " + brief(j.value) + " where " +
           brief(j.expected) + " is expected";
  }
  return "";
}

std::string sharpness(const Checks& checks) {
  const Judged& blunt = bluntest(checks);
  const std::size_t n = checks.figures.size(), m = checks.controls.size();
  std::string out =
      n == 1 ? "One figure was judged" : "In all, " + std::to_string(n) + " figures were judged";
  // Rounded up, so that the sentence is true of the number as it is printed.
  const double above = blunt.noticed() - 1;
  const double unit = std::pow(10.0, std::floor(std::log10(std::max(above, 1e-15))) - 1);
  out += (n == 1 ? ": a factor of "
                 : "; the bluntest, “" + blunt.what + "”, would show a factor of ") +
         brief(1 + std::ceil(std::max(above, 1e-15) / unit) * unit, 16) +
         (n == 1 ? " in " + blunt.what + " would be noticed" : " and the others a smaller one");
  return out + (m == 1 ? ". The control, " + checks.controls[0].what + ", fails as it must."
                       : ". The " + std::to_string(m) + " controls fail, as they must.");
}

Verdict verdict_of(const Checks& checks, VerdictStatus status, const std::string& text) {
  const std::string trouble = trouble_of(checks);
  if (!trouble.empty()) return Verdict::unless(trouble, VerdictStatus::fails, {});
  return {.status = status, .text = text + " " + sharpness(checks)};
}

PageTable judged_table(const Checks& checks) {
  PageTable table{.title = "What was judged",
                  .sheet = {.columns = {"figure", "value", "error", "expected", "source",
                                        "tolerance", "agrees", "change noticed, %"},
                            .rows = {}}};
  const auto add = [&](const Judged& j, const std::string& what, bool control) {
    const double noticed = j.noticed();
    table.sheet.add(what, j.value, j.error, j.expected, j.source, j.tolerance,
                    j.agrees() ? "yes" : "no",
                    control || !std::isfinite(noticed) ? Value() : cell(100 * (noticed - 1)));
  };
  for (const Judged& j : checks.figures) add(j, j.what, false);
  for (const Judged& j : checks.controls) add(j, "control, must not agree: " + j.what, true);
  return table;
}

bool has_independent(std::string_view what, double parameter, std::int64_t L) {
  return find(what, parameter, L) != nullptr;
}

const IndependentValue& independent(std::string_view what, double parameter, std::int64_t L) {
  if (const IndependentValue* v = find(what, parameter, L)) return *v;
  throw ArgumentError("independent: no value of \"" + std::string(what) + "\" at " +
                      brief(parameter) + ", L = " + brief(L) +
                      "; tests/paper/independent.py makes them");
}

Judged against_independent(std::string what, double value, double error, double tolerance,
                           const IndependentValue& expected) {
  return {.what = std::move(what),
          .value = value,
          .error = error,
          .expected = expected.value,
          .expected_error = expected.error,
          .source = Source::independent,
          .tolerance = tolerance};
}

Exponent exponent_between(double x1, double y1, double e1, double x2, double y2, double e2) {
  const double width = std::log(x2 / x1);
  return {-std::log(y2 / y1) / width, std::hypot(e1 / y1, e2 / y2) / width};
}

}  // namespace esscher::paper
