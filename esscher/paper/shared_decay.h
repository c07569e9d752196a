// Shared by the sections on Propositions 3.1 and 3.4: D(L) of a problem as rows, with the
// hypotheses of the bounds, curves read back from the rows, and one pair of constants for all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/concentration/bound.h"
#include "esscher/paper/section.h"

namespace esscher::paper {

// point: D at one length. hypothesis: one of the bound, with its value. fit: constants of one curve.
// known: D of a problem whose answer is known from elsewhere.
enum class DecayKind { point, hypothesis, fit, known };

constexpr auto enum_names(DecayKind) {
  return EnumNames<DecayKind, 4>{"kind of row",
                                 {{{DecayKind::point, "point"},
                                   {DecayKind::hypothesis, "hypothesis"},
                                   {DecayKind::fit, "fit"},
                                   {DecayKind::known, "known"}}}};
}

struct DecayRow {
  DecayKind kind = DecayKind::point;
  std::optional<std::string> setting = {};
  std::optional<double> sigma = {}, lambda = {}, gamma = {};
  std::optional<Metric> metric = {};
  std::optional<Length> L = {};
  std::optional<double> D = {}, std_error = {}, low = {}, high = {}, constant = {};
  std::optional<Engine> engine = {};
  std::optional<std::string> name = {};
  std::optional<bool> holds = {};
  std::optional<double> value = {};
  std::optional<std::string> text = {};
  std::optional<double> c1 = {}, c2 = {};
  std::optional<std::int64_t> fitted_up_to = {};
  std::optional<double> worst_ratio = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("kind", row.kind, "", "what the row holds");
    column("setting", row.setting, "", "law of the tokens, or the task");
    column("sigma", row.sigma, "", "sub-Gaussian constant of the tokens");
    column("lambda", row.lambda, "", "largest score variance over Gaussian queries");
    column("gamma", row.gamma, "", "predicted exponent of D(L)");
    column("metric", row.metric, "", "what is compared with its limit");
    column("L", row.L, "tokens", "length of the prompt");
    column("D", row.D, "", "mean-square error D(L)");
    column("std_error", row.std_error, "", "standard error");
    column("low", row.low, "", "lower end of the 95 % interval of D");
    column("high", row.high, "", "upper end of the 95 % interval of D");
    column("constant", row.constant, "tokens", "limit of L D(L)");
    column("engine", row.engine, "", "how the average over prompts was computed");
    column("name", row.name, "", "the hypothesis");
    column("holds", row.holds, "", "whether hypothesis or bound holds");
    column("value", row.value, "", "the number behind a hypothesis");
    column("text", row.text, "", "the same in words");
    column("c1", row.c1, "", "fitted constant of the bound");
    column("c2", row.c2, "", "fitted constant in the exponent of the bound");
    column("fitted_up_to", row.fitted_up_to, "tokens", "longest prompt of the fit");
    column("worst_ratio", row.worst_ratio, "", "largest D / bound on longer prompts");
  }
};

struct Setting {
  std::string name;
  double sigma = 1;  // sub-Gaussian constant of the tokens
  Problem problem;
  StudyOptions study;
};

// Tokens N(0, sigma^2 diag(1, 1/2)), queries N(0, I), |U| = 1/2: lambda = sigma^2/4.
Setting gaussian_setting(std::string name, double sigma, const Options& options);
// The same layer on +-1 tokens: sub-Gaussian with sigma = 1 and not Gaussian, by simulation.
Setting coin_setting(const Options& options);

// The points, hypotheses and fits of one setting.
std::vector<DecayRow> decay_rows(const Setting& setting, Proposition proposition,
                                 std::uint64_t seed);

// D(L) of one setting and metric, lengths increasing.
struct Decay {
  std::string setting;
  Metric metric = Metric::output;
  double sigma = 1, lambda = 0, gamma = 1;
  double constant = 0;  // lim L D(L); not finite in the slow regime
  Engine engine = Engine::exact;
  std::vector<std::int64_t> L = {};
  std::vector<double> D = {}, std_error = {}, low = {}, high = {};
  // -log(D_j/D_i)/log(L_j/L_i) over the last two decades, or all of a shorter curve.
  [[nodiscard]] double last_exponent() const;
  [[nodiscard]] double scaled_end() const;  // L D(L) of the longest prompt
};
std::vector<Decay> read_decays(std::span<const DecayRow> rows);

// One pair (c1, c2) for every curve of a metric at once, as the propositions have it (constants do
// not depend on sigma): c2 is the slowest decay times sigma^2 seen up to L = fit_end, c1 makes the
// bound hold there; then it is tested on longer prompts.
struct CommonFit {
  double c1 = 0, c2 = 0;
  std::int64_t fit_end = 0;
  double worst_ratio = 0;  // largest D/bound on the lengths > fit_end
  std::string worst_at = {};
  [[nodiscard]] bool holds() const { return c2 > 0 && worst_ratio <= 1; }
};
CommonFit fit_common(std::span<const Decay> curves, Metric metric);
// c1 sigma^6 ln L / L^{c2/sigma^2}, or sigma^12 (ln L)^2 for grad_u; 0 at L = 1.
double common_bound(const CommonFit& fit, Metric metric, double sigma, std::int64_t L);

// The hypotheses of the bounds over all settings, as sentences with the value of each setting.
// Moments are left out.
std::vector<StatedHypothesis> stated_hypotheses(std::span<const DecayRow> rows);

// What the figures of both sections draw: D with its interval, constant/L where there is one, and
// D / bound, under the column `series`.
struct DecaySheets {
  Sheet curves, asymptotes, ratios;
  // The columns of the series and of the panel that a curve belongs to.
  explicit DecaySheets(const std::string& series, const std::string& panel = "panel");
  void add(const std::string& label, const Decay& curve, const CommonFit& fit,
           const std::string& panel = "");
};

}  // namespace esscher::paper
