// Where the integrals of two_tilts.h are summed: lattices of u and u', nodes of the wider score,
// and what the narrower score and the values are given it.
#pragma once

#include <algorithm>
#include <cmath>

#include "esscher/universal/integration_span.h"
#include "esscher/universal/laplace_jets.h"
#include "esscher/universal/two_tilts.h"

namespace esscher::detail {

// A lattice of u for one of the heads, 0 or 1.
struct TiltAxis {
  static constexpr Index kRows = 2;                            // of LaplaceJets in a step
  static constexpr double kStep = kRows * LaplaceJets::kStep;  // of u and u'

  double first;
  Index n;

  TiltAxis(const TwoTilts& t, Index head, std::int64_t L) {
    const double tau = std::sqrt(std::max(0.0, t.cov(head, head)));
    const IntegrationSpan span = integration_span(t.weights, t.mu.col(head), tau, L, 1);
    first = span.left;
    n = static_cast<Index>(std::ceil((span.right - span.left) / kStep)) + 1;
  }
  [[nodiscard]] double at(Index i) const { return first + static_cast<double>(i) * kStep; }
  [[nodiscard]] double last() const { return at(n - 1); }
  // The orders of derivatives [kOrders,n] at the points of the lattice, moved by `shift`.
  [[nodiscard]] Matrix orders(const LaplaceJets& jets, double shift) const {
    const Matrix all = jets.rows(first + shift, kRows * n);
    using Every = Eigen::OuterStride<>;
    return Eigen::Map<const Matrix, 0, Every>(all.data(), n, all.cols(), Every(kRows * all.cols()))
        .transpose();
  }
};

// Deviations of s from its mean, with weights of sum 1. The trapezoidal rule of step h errs by
// e^{-pi^2/h} times (2 pi/h)^k for k derivatives: by 1e-13 for values at h = 1/3. Gradients take
// five derivatives and would lose six digits; half the step leaves 1e-11.
struct ScoreNodes {
  static constexpr double kValueStep = TiltAxis::kStep;
  static constexpr double kGradientStep = TiltAxis::kStep / 2;
  static constexpr double kReach = 8.5;     // deviations of s that are kept
  static constexpr double kNodeStep = 0.6;  // deviations of s, at most

  Eigen::ArrayXd x, w;

  ScoreNodes(double tau, double most) {
    const double step = std::min(most, kNodeStep * tau);
    const auto half = tau > 0 ? static_cast<Index>(kReach * tau / step) : 0;
    x = Eigen::ArrayXd::LinSpaced(2 * half + 1, -step * static_cast<double>(half),
                                  step * static_cast<double>(half));
    w = tau > 0 ? Eigen::ArrayXd((-(x / tau).square() / 2).exp())
                : Eigen::ArrayXd(Eigen::ArrayXd::Ones(1));
    w /= w.sum();
  }
};

// The narrower score given the wider one: s' = mu' + ratio (s - mu) + r, r of deviation rho.
struct ScoreRegression {
  double tau, ratio, rho;

  explicit ScoreRegression(const TwoTilts& t) {
    const double tau2 = std::max(0.0, t.cov(0, 0));
    tau = std::sqrt(tau2);
    ratio = tau2 > 0 ? t.cov(0, 1) / tau2 : 0;
    rho = std::sqrt(std::max(0.0, t.cov(1, 1) - ratio * t.cov(0, 1)));
  }
};

}  // namespace esscher::detail
