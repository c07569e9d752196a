// D(L) of a problem as rows of a section, with the hypotheses and fitted constants of the paper's
// bounds: what the sections on Propositions 3.1 and 3.4 share.
//
//   {"kind":"point","setting","sigma","lambda","gamma","metric","L","D","std_error","low","high",
//    "constant","engine"}
//   {"kind":"hypothesis","setting","name","holds","value","text"}
//   {"kind":"fit","setting","sigma","metric","c1","c2","holds","fitted_up_to","worst_ratio"}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/concentration/bound.h"
#include "esscher/paper/section.h"

namespace esscher::paper {

struct Setting {
  std::string name;
  double sigma = 1;  // sub-Gaussian constant of the tokens
  Problem problem;
  StudyOptions study;
};

// Lengths 1 or 2, ... , 10^decades, `per_decade` a decade, whole powers of ten included.
std::vector<std::int64_t> geometric_lengths(int decades, int per_decade);

// sign = -1 (test only) compares with -X instead of X: D becomes E|X_hat + X|^2.
std::vector<Row> decay_rows(std::string_view section, const Setting& setting,
                            Proposition proposition, double sign, std::uint64_t seed);

// D(L) of one setting and metric, lengths increasing.
struct Decay {
  std::string setting;
  std::string metric;
  double sigma = 1, lambda = 0, gamma = 1;
  double constant = 0;  // lim L D(L); infinity in the slow regime
  std::string engine;
  std::vector<std::int64_t> L;
  std::vector<double> D, low, high;
  // -log(D_j/D_i)/log(L_j/L_i) over the last two decades, or all of a shorter curve.
  [[nodiscard]] double last_exponent() const;
};
std::vector<Decay> read_decays(const std::vector<Row>& rows);

// One pair (c1, c2) for every curve of a metric at once, as the propositions have it (constants do
// not depend on sigma): c2 is the slowest decay times sigma^2 seen up to L = fit_end, c1 makes the
// bound hold there; then it is tested on longer prompts.
struct CommonFit {
  double c1 = 0, c2 = 0;
  std::int64_t fit_end = 0;
  double worst_ratio = 0;  // largest D/bound on the lengths > fit_end
  std::string worst_at;
  [[nodiscard]] bool holds() const { return c2 > 0 && worst_ratio <= 1; }
};
CommonFit fit_common(const std::vector<Decay>& curves, const std::string& metric);
// c1 sigma^6 ln L / L^{c2/sigma^2}, or sigma^12 (ln L)^2 for grad_u; 0 at L = 1.
double common_bound(const CommonFit& fit, const std::string& metric, double sigma, std::int64_t L);

// Sentences of the hypotheses of each setting, once where settings agree.
std::vector<std::string> hypothesis_lines(const std::vector<Row>& rows);

}  // namespace esscher::paper
