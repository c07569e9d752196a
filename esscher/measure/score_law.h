// The law of the score s = <a,z'> of one token, together with what is read of it, x = V z' - c, as
// weighted nodes:
//
//   E[g(s)] = sum_i p_i g(s_i)   E[g(s) x] = sum_i first_i g(s_i)   E[g(s)|x|^2] = sum_i second_i g(s_i)
//
// first_i is p_i E[x | s_i] and second_i is p_i E[|x|^2 | s_i]. This is all that expectations over
// finite prompts ask of a law of tokens (prompt/group_integrals.h). The centre c [dv] is chosen by the
// caller, usually as the value of an infinite prompt, so that small errors are no differences.
//
// Contract. For g(s) = y^j e^-y with y = t e^s, t > 0, j = 0, 1, 2, and for g(s) = e^s where its mean
// is finite, the sums hold 1e-12 relative to the same sums of absolute values. Such a g varies on
// the scale 1 in s, so that nodes of a continuous law need a distance of about 1/6. Nodes are sorted
// by s. Their p sum to 1, but single ones may be negative, because a law with many nodes is moved to
// a lattice by polynomial interpolation.
//
// How each law is served:
//
//   categorical, empirical, Rademacher    its atoms
//   Gaussian                              trapezoidal rule, step 1/6 in s or 0.6 deviations
//   sphere, ball                          density (1 - x^2)^{(D-3)/2} of x = s/(R|a|): midpoints of the
//                                         angle for even D, Gauss-Legendre panels for odd D
//   uniform, Laplace coordinates          Gauss-Legendre panels
//   product, sum, iid coordinates         all sums of nodes up to kMaxNodes of them, then
//                                         convolution on a lattice of step 1/16
//   mixture, affine image                 the nodes of its parts
//   Dirac                                 one node
//   elliptical                            a Gaussian per factor of the covariance
//   Student, nu >= 2.2                    Gauss-Legendre panels in the middle; tails (long_tail.h)
//   single index                          Gauss-Legendre panels of w'x, split at the kinks of the
//                                         link, plus an independent Gaussian; at any beta
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "esscher/measure/any_measure.h"
#include "esscher/measure/long_tail.h"

namespace esscher {

struct ScoreLaw {
  Vector s;                             // [n] increasing
  Vector p;                             // [n]
  Matrix first;                         // [n,dv]
  Vector second;                        // [n]
  std::optional<LongTails> tails = {};  // beyond which nodes say the mass only

  [[nodiscard]] Index size() const { return s.size(); }
  [[nodiscard]] Index width() const { return first.cols(); }
};

// What is read: the tilt a [d], V [dv,d] and the centre c [dv].
struct ScoreReading {
  Vector a;
  Matrix V;
  Vector c;
  // Tails must begin beyond these scores, because other parts of a mixture reach as far.
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

// Laws with more nodes are moved to the lattice, if that has fewer.
inline constexpr Index kMaxNodes = 1024;

// Whether score_law serves this measure; see the table above. A law that has a score law may still
// refuse a tilt that needs too many nodes.
bool has_score_law(const AnyMeasure& mu);
// Whether it serves this tilt a [d].
bool has_score_law(const AnyMeasure& mu, const Vector& a);
// Whether its scores have tails that fall like a power: Student laws, their affine images and
// mixtures. Sums and products with them have no score law.
bool has_long_tails(const AnyMeasure& mu);

// The nodes are refused with a CapabilityError that names the direct engine if the measure has none,
// or if its scores reach too far. Shapes that do not fit are a DimensionError.
ScoreLaw score_law(const AnyMeasure& mu, const ScoreReading& reading);

// -- The algebra that measures use to make theirs.

// Nodes s, p [n] in any order, with the mean E[Vz'|s] [n,dv] and variance tr Cov(Vz'|s) [n].
ScoreLaw score_nodes(const Vector& s, const Vector& p, const Matrix& mean, const Vector& variance,
                     const Vector& c);
// A score that is constant: E x = mean - c, tr Cov x = variance.
ScoreLaw constant_score(double s, const Vector& mean, double variance, const Vector& c);
// Scores s + shift.
ScoreLaw shifted(ScoreLaw law, double shift);
// Sum of independent tokens' scores and readings.
ScoreLaw independent_sum(const std::vector<ScoreLaw>& parts);
// The same of `start` and of parts of width 1, the k-th of which is read along column k of
// directions [dv,K].
ScoreLaw independent_sum(const ScoreLaw& start, const std::vector<ScoreLaw>& parts,
                         const Matrix& directions);
// Where the tails of a mixture of these laws begin, nothing if there are none. Every part needs nodes
// between these ends: laws with tails are made again with `low` and `high` in their reading.
std::optional<LongTails> tail_span(const std::vector<ScoreLaw>& parts);
// With probability weights[k], the law k.
ScoreLaw mixed(const Vector& weights, const std::vector<ScoreLaw>& parts);
// The same law with at most kMaxNodes nodes, or with the nodes of the lattice if these are more.
ScoreLaw compacted(ScoreLaw law);

// Gauss-Legendre nodes x and weights of the integral over [from, to], by panels of 20 nodes that are
// at most `panel` wide. A panel of 2.5 in s leaves 1e-18.
struct PanelRule {
  Vector x, w;
};
inline constexpr double kScorePanel = 2.5;
PanelRule panel_rule(double from, double to, double panel);
// The trapezoidal rule of a normal variable that serves scores of deviation tau.
PanelRule normal_rule(double tau);

}  // namespace esscher
