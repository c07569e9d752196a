#include "esscher/measure/link_pair.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/detail/panels.h"
#include "esscher/measure/discrete_tilt.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {
namespace {

constexpr double kHalfLog2Pi = 0.91893853320467274178;
constexpr double kTolerance = 1e-14;
constexpr double kRounding = 4e-16;  // of beta g, relative
constexpr double kBaseReach = 12;    // nodes of a = 0 lie within, e^{-72} is left out
constexpr double kSmallIndex = 0.5;  // tilts up to here reweight the nodes of a = 0
constexpr double kSmallLink = 0.1;
constexpr double kReach = 10;  // |v| up to here has panels of equal width
constexpr double kWidestPanel = 1;
constexpr double kMostPanels = 2e4;   // of equal width
constexpr double kLargestPush = 1e6;  // standard deviations that a link may move the index by
constexpr double kLargestBend = 1e6;

std::span<const double> as_span(const Vector& x) {
  return {x.data(), static_cast<std::size_t>(x.size())};
}

std::span<double> as_span(Vector& x) { return {x.data(), static_cast<std::size_t>(x.size())}; }

// Breakpoints centre +- first 2^k up to the edges.
void add_scales(std::vector<double>& out, double centre, double first, double reach) {
  for (double step = first; step < 4 * reach; step *= 2) {
    for (const double v : {centre - step, centre + step}) {
      if (std::abs(v) < reach) out.push_back(v);
    }
  }
}

// How far panels of equal width reach: an oscillating link has its next peak within a period.
double near_reach(const Link& link, double rho) {
  return kReach + (link.oscillates() ? 2 * M_PI / rho : 0);
}

// Breakpoints on [-reach, reach]: equal panels near u = 0, all scales around u = 0, around H = 0
// and around the kinks. H = centre + rho u.
std::vector<double> breakpoints(const Link& link, double centre, double rho, double reach) {
  std::vector<double> out = {-reach, reach};
  const double near = std::min(reach, near_reach(link, rho));
  const double width = link.oscillates() ? std::min(kWidestPanel, 0.5 / rho) : kWidestPanel;
  const double step = std::max(width, 2 * near / kMostPanels);
  for (double u = 0; u < near; u += step) {
    out.push_back(u);
    out.push_back(-u);
  }
  add_scales(out, 0, kReach, reach);
  std::vector<double> centres = link.kinks();
  centres.push_back(0);
  for (const double kink : centres) {
    const double u = (kink - centre) / rho;
    if (std::abs(u) < reach) out.push_back(u);
    add_scales(out, u, 0.5 / rho, reach);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

LinkPair::LinkPair(double rho, Link link)
    : rho_(checked_positive("link pair", "rho", rho)), link_(std::move(link)) {
  const PanelNodes nodes = panel_nodes(
      [](std::span<const double> v, std::span<double> out) {
        std::transform(v.begin(), v.end(), out.begin(), [](double x) { return -0.5 * x * x; });
      },
      breakpoints(link_, 0, rho_, kBaseReach), {.tolerance = kTolerance});
  base_ = nodes.v;
  base_weights_ = nodes.weights;
  const Vector H = rho_ * base_;
  base_values_.resize(H.size());
  link_(as_span(H), as_span(base_values_));
  mean_ = base_weights_.dot(base_values_);
  base_values_.array() -= mean_;
  deviation_ = std::sqrt(base_weights_.dot(base_values_.cwiseAbs2()));
  const double cross = rho_ * base_weights_.dot(base_.cwiseProduct(base_values_));
  second_moment_.resize(2, 2);
  second_moment_ << rho_ * rho_, cross, cross, deviation_ * deviation_ + mean_ * mean_;
}

// Rises of g are taken from the centre, so that a large mean does not cancel in the deviations.
void LinkPair::place(double centre, const Vector& steps, Nodes& nodes) const {
  Matrix moves(steps.size(), 2);
  Vector rises(steps.size());
  link_.rise(centre, as_span(steps), as_span(rises));
  moves << steps, rises;
  const Vector mean = moves.transpose() * nodes.weights;
  nodes.deviations = moves.rowwise() - mean.transpose();
  nodes.shift = Vector{{centre + mean(0), (link_(centre) - mean_) + mean(1)}};
}

LinkPair::Nodes LinkPair::nodes(const VectorView& a) const {
  check_tilt("link pair", a, 2);
  const double c = rho_ * a(0), beta = a(1);
  const bool is_quadratic = link_.coefficients().size() > 0;
  if (is_quadratic && !(2 * beta * link_.coefficients()(2) * rho_ * rho_ < 1)) {
    throw DomainError("single_index: beta is " + to_text(beta) +
                      ", expected 2 beta c2 rho^2 < 1 with c2 = " +
                      to_text(link_.coefficients()(2)) + ", rho^2 = " + to_text(rho_ * rho_) +
                      " (the log-MGF of a label of degree two is infinite outside)");
  }
  if (std::abs(c) <= kSmallIndex && std::abs(beta) * deviation_ <= kSmallLink) {
    return reweighted(c, beta);
  }
  return is_quadratic ? gaussian(c, beta) : adaptive(c, beta);
}

LinkPair::Nodes LinkPair::reweighted(double c, double beta) const {
  const double scale = power_of_two_scale(Vector{{c, beta}});
  Vector t = (c / scale) * base_ + (beta / scale) * base_values_;
  t.array() -= base_weights_.dot(t);
  const DiscreteTilt tilt = discrete_tilt(base_weights_, t, scale);
  Nodes out;
  out.weights = tilt.r;
  out.centred_log_mgf = tilt.excess;
  // Sums over dr keep the relative accuracy of tiny tilts, also where far nodes are not small.
  Vector dr(t.size());
  for (Index i = 0; i < t.size(); ++i) {
    dr(i) = base_weights_(i) * std::expm1(t(i) * scale - tilt.excess);
  }
  place(0, rho_ * base_, out);
  out.shift = Vector{{rho_ * base_.dot(dr), base_values_.dot(dr)}};
  return out;
}

// beta (c1 H + c2 H^2) - v^2/2 + c v is a quadratic in v with H = rho v: the law stays Gaussian.
LinkPair::Nodes LinkPair::gaussian(double c, double beta) const {
  const double c1 = link_.coefficients()(1), c2 = link_.coefficients()(2);
  const double bend = 2 * beta * c2 * rho_ * rho_;  // < 1
  const double drift = c + beta * c1 * rho_;
  const double scale = 1 / std::sqrt(1 - bend), centre = drift / (1 - bend);
  Nodes out;
  out.weights = base_weights_;
  place(rho_ * centre, rho_ * scale * base_, out);
  out.centred_log_mgf = 0.5 * drift * centre - 0.5 * std::log1p(-bend) - 0.5 * bend;
  const double mean_square = centre * centre + scale * scale;
  out.shift = Vector{{rho_ * centre, c1 * rho_ * centre + c2 * rho_ * rho_ * (mean_square - 1)}};
  return out;
}

// The index is v = m + u. A link that rises linearly for H > 0 has its peak at m = beta rho if that
// is on its rising side; there psi is -u^2/2 up to rounding.
LinkPair::Nodes LinkPair::adaptive(double c, double beta) const {
  const double size = std::abs(beta), push = size * link_.slope() * rho_;
  if (push > kLargestPush) return far(c, beta, push / kLargestPush);
  const bool rises = link_.far_slopes() == std::vector{0.0, 1.0};
  const double m = rises && c + beta * rho_ > 0 ? beta * rho_ : 0;
  const double h = rho_ * c, centre = h + rho_ * m, step = rho_ * m;
  double rise = 0;  // g(centre) - g(h)
  link_.rise(h, std::span(&step, 1), std::span(&rise, 1));
  const LogDensity psi = [&](std::span<const double> u, std::span<double> out) {
    std::array<double, 64> steps;
    for (std::size_t i = 0; i < u.size(); ++i) steps[i] = rho_ * u[i];
    link_.rise(centre, std::span<const double>(steps.data(), u.size()), out);
    for (std::size_t i = 0; i < u.size(); ++i) {
      out[i] = (beta * out[i] - m * u[i]) - 0.5 * u[i] * u[i];
    }
  };
  const double reach =
      2 * push + std::hypot(push, std::sqrt(4 * size * link_.offset() + 100)) + kReach;
  // An oscillating link passes the rounding of its argument on.
  const double argument = link_.oscillates() ? std::abs(centre) : 0;
  const double rounding = kRounding * (size * (link_.offset() + argument) + push * kReach);
  const PanelNodes nodes =
      panel_nodes(psi, breakpoints(link_, centre, rho_, reach),
                  {.tolerance = std::max(kTolerance, rounding),
                   .bend = 1 + std::min(size * rho_ * rho_, kLargestBend),
                   .bend_reach = link_.oscillates() ? near_reach(link_, rho_) : 0});
  Nodes out;
  out.weights = nodes.weights;
  place(centre, rho_ * nodes.v, out);
  out.centred_log_mgf = 0.5 * c * c + beta * (link_(h) - mean_) + (beta * rise - 0.5 * m * m) +
                        (nodes.log_integral - kHalfLog2Pi);
  return out;
}

// A link that grows is homogeneous far out: the law at f a is that at a, moved to f times its mean.
LinkPair::Nodes LinkPair::far(double c, double beta, double f) const {
  Nodes out = adaptive(c / f, beta / f);
  out.centred_log_mgf = f * (f * out.centred_log_mgf);
  out.shift = Vector{{f * out.shift(0), link_(f * out.shift(0)) - mean_}};
  return out;
}

double LinkPair::log_mgf(const VectorView& a) const {
  const double centred = centred_log_mgf(a);
  return centred + a(1) * mean_;
}

double LinkPair::centred_log_mgf(const VectorView& a) const {
  return std::max(0.0, nodes(a).centred_log_mgf);
}

Vector LinkPair::tilted_mean(const VectorView& a) const { return mean() + mean_shift(a); }

Vector LinkPair::mean_shift(const VectorView& a) const { return nodes(a).shift; }

Matrix LinkPair::tilted_cov(const VectorView& a) const {
  const Nodes at = nodes(a);
  const Matrix out = at.deviations.transpose() * at.weights.asDiagonal() * at.deviations;
  return 0.5 * (out + out.transpose());
}

Vector LinkPair::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("link pair", "v", v.size(), 2);
  return tilted_cov(a) * v;
}

HigherCumulants LinkPair::higher_cumulants(const VectorView& a, const MatrixView& W,
                                           const MatrixView& Y) const {
  const Nodes at = nodes(a);
  return discrete_cumulants(at.deviations, at.weights, W, Y);
}

Empirical LinkPair::sample(const Stream& stream, Index n) const {
  check_sample_size("link pair", n);
  Vector v(n);
  stream.fill_normal(0, as_span(v));
  const Vector H = rho_ * v;
  Vector y(n);
  link_(as_span(H), as_span(y));
  Matrix tokens(n, 2);
  tokens << H, y;
  return Empirical(std::move(tokens));
}

double LinkPair::sub_gaussian() const {
  if (link_.coefficients().size() > 0 && link_.coefficients()(2) != 0) return HUGE_VAL;
  double largest = numeric_sub_gaussian(*this);
  // Far out along (1, s) the pair is (H, s H) up to a bounded part.
  for (const double s : link_.far_slopes()) {
    largest = std::max(largest, rho_ * std::hypot(1.0, s));
  }
  return largest;
}

}  // namespace esscher
