// Boundaries at finite length beside their limits, for Gaussian scores N(0, tau^2):
//
//   freezing    the tau where E sum omega^2 = 1/sqrt(pi log n), its asymptotic value at the boundary,
//               against sqrt(2 log n)
//   averaging   the tau where E sum omega^2 is half of e^{tau^2}/n, what an average over all tokens has:
//               rare dominant tokens carry the rest; against sqrt(2/3 log n)
//   retrieval   the gap above the mean, in units of sqrt(log n), at which a token weighs 1/2 under
//               tau = c sqrt(log n), against 1/c + c/2 for c < sqrt(2) and sqrt(2) beyond
#pragma once

#include <vector>

namespace esscher {

double freezing_deviation(double log_n);
double asymptotic_freezing_deviation(double log_n);

double averaging_deviation(double log_n);
double asymptotic_averaging_deviation(double log_n);

// Scores are c sqrt(log n) times standard normals, so that a gap g of these moves a score by
// c sqrt(log n) g.
double retrieval_gap(double c, double log_n);
double asymptotic_retrieval_gap(double c);

// Phase diagrams on grids, each with its boundaries as lines (kind "exact" or "limit").
struct MapCell {
  double x = 0, y = 0;  // (tau, log10 n), or (c, gap)
  double value = 0;
};
struct MapLine {
  double x = 0, y = 0;
  bool exact = true;
};
struct PhaseMap {
  std::vector<MapCell> cells = {};  // y falling, then x rising
  std::vector<MapLine> lines = {};
};

// E sum omega^2 over (tau, log10 n), log10 n from 1 to 15, with the freezing boundary.
PhaseMap weight_map();
// The weight of a token `gap` sqrt(log n) deviations above the mean under tau = c sqrt(log n), over
// (c, gap), with the retrieval boundary.
PhaseMap needle_map(double log_n);

}  // namespace esscher
