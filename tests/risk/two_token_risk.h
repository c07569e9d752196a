// The risk of a head on two tokens in one dimension without noise, by brute force.
#pragma once

#include <cmath>
#include <vector>

#include "esscher/risk/readout.h"

namespace esscher::testing {

// U reads the query alone, r the label alone.
inline Readout two_token_head(double alpha, double readout) {
  Readout at{Matrix::Zero(2, 2), Vector::Zero(2)};
  at.U(0, 0) = alpha;
  at.r(1) = readout;
  return at;
}

// E (readout sum omega x_l - x)^2/2 over x, x_1, x_2 ~ N(0,1) with weights e^{alpha x x_l}: w^2 averages
// to 1. A trapezoidal rule, right to 1e-10.
inline double two_token_risk(double alpha, double readout) {
  constexpr int kPoints = 121;
  constexpr double kReach = 8;
  std::vector<double> g, p;
  double total = 0, sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    g.push_back(kReach * (2.0 * i / (kPoints - 1) - 1));
    p.push_back(std::exp(-g.back() * g.back() / 2));
    total += p.back();
  }
  for (std::size_t x = 0; x < g.size(); ++x) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      for (std::size_t j = 0; j < g.size(); ++j) {
        const double omega = 1 / (1 + std::exp(-alpha * g[x] * (g[i] - g[j])));
        const double miss = readout * (omega * g[i] + (1 - omega) * g[j]) - g[x];
        sum += p[x] * p[i] * p[j] * miss * miss;
      }
    }
  }
  return sum / (2 * total * total * total);
}

// Where risks along alpha are smallest between these two, by the golden section.
inline double best_two_token_alpha(double readout, double low, double high) {
  const double part = (std::sqrt(5.0) - 1) / 2;
  while (high - low > 1e-6) {
    const double left = high - part * (high - low), right = low + part * (high - low);
    if (two_token_risk(left, readout) < two_token_risk(right, readout)) {
      high = right;
    } else {
      low = left;
    }
  }
  return (low + high) / 2;
}

}  // namespace esscher::testing
