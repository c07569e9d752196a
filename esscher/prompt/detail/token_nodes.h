// What one token of a score law contributes to the integrands of prompt/group_integrals.h at
// v = u + b, and sums of it over tokens whose log-weights fall by equal steps. Internal to
// group_integrals.cc.
#pragma once

#include <optional>
#include <vector>

#include "esscher/measure/score_law.h"

namespace esscher::detail {

// Averages under q ~ p e^-y / phi, y = e^{v+s}.
struct TokenAt {
  double psi = 0;      // E[1 - e^-y]
  double log_phi = 0;  // -infinity where phi is below rounding
  double once = 0;     // E_q[y]
  double logs = 0;     // E_q[y log y]
  double twice = 0;    // E_q[y^2]
  double spread = 0;   // E_q[y^2|x|^2] - |E_q[yx]|^2
  Vector value;        // E_q[yx]
  bool small = false;  // value - e^v E[e^s x] is known by itself, as rest
  Vector rest;

  // Sums over p become averages; square is the sum of y^2|x|^2.
  void average(double phi, double square);
};

// The nodes of a law, with sums over those nodes whose y is so small, or so large, that e^-y is
// 1 - y + y^2/2 - y^3/6 or 0 to rounding. At v = -x in the tails of a law the tails answer.
class TokenNodes {
 public:
  explicit TokenNodes(ScoreLaw law);

  [[nodiscard]] TokenAt at(double v) const;
  [[nodiscard]] double psi(double v) const { return at(v).psi; }
  [[nodiscard]] const std::optional<LongTails>& tails() const { return law_.tails; }
  [[nodiscard]] double lowest() const { return law_.s[0]; }
  [[nodiscard]] double highest() const { return law_.s[law_.size() - 1]; }
  [[nodiscard]] Index width() const { return law_.width(); }
  // e^-highest E[e^s x], and the same of |x|: the second says what is rounding in the first.
  [[nodiscard]] const Vector& linear() const { return linear_; }
  [[nodiscard]] double linear_size() const { return linear_size_; }

 private:
  static constexpr int kPowers = 3;

  struct Low;
  [[nodiscard]] Low low(Index i, double log_y) const;
  [[nodiscard]] TokenAt single(double v) const;

  ScoreLaw law_;
  Vector mass_below_;  // [n+1] p of nodes < i
  Vector mass_above_;  // [n+1] p of nodes >= i
  // Sums over j <= i of e^{k(s_j - s_i)} times p, p (s_j - s_i), second and first, k = 1, 2, 3.
  Vector low_[kPowers], low_log_[kPowers], low_second_[kPowers];  // [n]
  Matrix low_first_[kPowers];                                     // [n,dv]
  Matrix high_first_;  // [n,dv] sum over j >= i of first e^{s_j - s_i}
  Vector high_;        // [n] the same of p
  Vector linear_;
  double linear_size_ = 0;
  double noise_ = 0;  // phi below this is rounding
};

// Sums over tokens l = 0 .. n-1 at v = v_0 + (k - l stride) delta, by running sums over the lattice.
class LadderSums {
 public:
  // Covers lattice points first .. last. Runs end where the product of all phi is negligible.
  LadderSums(const TokenNodes& nodes, double v0, double delta, long stride, long first, long last);

  struct Sum {
    double log_phi = 0, once = 0, logs = 0, twice = 0, spread = 0, psi = 0;
    Vector value;
  };
  // k is the lattice point of the first of `count` tokens.
  [[nodiscard]] Sum at(double k, double count) const;

 private:
  [[nodiscard]] const Sum* running(double k) const;

  long first_, stride_;
  Index width_;
  std::vector<Sum> sums_;  // sums_[k - first]: over k, k - stride, ..
};

}  // namespace esscher::detail
