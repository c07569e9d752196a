// Tilting n weighted atoms. Empirical, Categorical and Mixture use this arithmetic.
//
// For weights p [n] (sum 1) and scores x [n] centred under them (sum p x = 0):
//
//   excess = log sum p e^x = log1p( sum p (e^x - 1 - x) )      every term >= 0: no cancellation
//   r      = p e^{x - excess}                                  tilted weights
//   dr     = r - p = p expm1(x - excess)
//
// A tilt of 1e-12 thus keeps its relative accuracy. A tilt of 1e4 does not overflow, because the
// largest score is subtracted before exp.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// e^x - 1 - x to a few ulp, by a series near 0.
double expm1_minus(double x);

struct DiscreteTilt {
  double excess = 0;
  Vector r;            // [n]
  Vector dr;           // [n]
  double log_top = 0;  // log sum p e^{x - x[top]}
  Index top = 0;       // atom with the largest score among those with p > 0
  bool small = false;  // all |x| <= 1: sums over dr are more accurate than sums over r
};

// Scores are x = scale * t, where scale > 0 is a power of two that keeps t in range.
DiscreteTilt discrete_tilt(const VectorView& p, const VectorView& t, double scale);

// z_l - m_a [n,d] of atoms [n,d] with tilted weights r. They are taken from the top atom first, so
// that nothing cancels when it has nearly all the weight.
Matrix tilted_deviations(const MatrixView& atoms, const DiscreteTilt& tilt);

// A power of two near max |a|, so that a / scale is exact and of order 1 (1 if a = 0).
double power_of_two_scale(const VectorView& a);

// log sum p e^s, given the mean score sum p s, the score of the top atom, and the tilt of the
// centred scores. It has two equal forms, mean + excess and s_top + log_top; the one that cancels
// less is taken.
double log_mgf_from(const DiscreteTilt& tilt, double mean_score, double top_score);

// Index of the atom that a uniform u in (0,1) selects; the last of cumulative [n] is 1.
Index select_atom(const VectorView& cumulative, double u);

// Partial sums of p; the last is set to 1.
Vector cumulative_sums(const VectorView& p);

}  // namespace esscher
