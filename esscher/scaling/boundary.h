// Boundaries at finite length beside their limits, for Gaussian scores N(0, tau^2):
//
//   freezing    the tau where E sum omega^2 = 1/sqrt(pi log n), its asymptotic value at the boundary,
//               against sqrt(2 log n)
//   retrieval   the gap above the mean, in units of sqrt(log n), at which a token weighs 1/2 under
//               tau = c sqrt(log n), against 1/c + c/2 for c < sqrt(2) and sqrt(2) beyond
#pragma once

namespace esscher {

double freezing_deviation(double log_n);
double asymptotic_freezing_deviation(double log_n);

// Scores are c sqrt(log n) times standard normals, so that a gap g of these moves a score by
// c sqrt(log n) g.
double retrieval_gap(double c, double log_n);
double asymptotic_retrieval_gap(double c);

}  // namespace esscher
