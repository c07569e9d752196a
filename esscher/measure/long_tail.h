// Scores whose tails fall like a power, beyond the nodes of a score law (measure/score_law.h). Score and
// reading of a part are those of Student's law,
//
//   s = middle + tau t,  t ~ t_nu     E[x | t] = mean + t slope     tr Cov(x | t) = across (nu + t^2)
//
// Far out the density hardly changes over the scale 1, on which y^j e^-y varies, y = e^{s - x}. So
// averages over scores near x are sums over a few nodes (prompt/detail/tail_token.h), at any x.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

class LongTail {
 public:
  LongTail(double nu, double middle, double tau);

  double weight = 1;   // of the part
  Vector mean, slope;  // [dv]
  double across = 0;

  [[nodiscard]] double nu() const { return nu_; }
  [[nodiscard]] double middle() const { return middle_; }
  [[nodiscard]] double t(double s) const { return (s - middle_) / tau_; }
  // Of s, times the weight.
  [[nodiscard]] double density(double s) const;
  // P(score > s) and P(score < s), times the weight.
  [[nodiscard]] double above(double s) const { return weight * upper(t(s)); }
  [[nodiscard]] double below(double s) const { return weight * upper(-t(s)); }
  // The rate -d log P(score further from the middle)/d log |s - middle|; it tends to nu.
  [[nodiscard]] double exponent(double s) const;
  void shift(double by) { middle_ += by; }

 private:
  [[nodiscard]] double upper(double t) const;

  double nu_, middle_, tau_;
  double factor_;       // of the density of t
  double tail_factor_;  // of the series of its tail
};

// The tails of a law: scores below `low` and above `high`, where its other parts have none.
struct LongTails {
  double low = 0, high = 0;
  std::vector<LongTail> parts = {};
};

}  // namespace esscher
