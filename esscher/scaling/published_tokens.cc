#include "esscher/scaling/published_tokens.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/measure/score_law.h"

namespace esscher {
namespace {

// P(1 - <x,y> < delta) ~ c_d delta^p.
double cap_constant(std::int64_t dim) {
  const auto d = static_cast<double>(dim);
  const double p = 0.5 * (d - 1);
  return std::exp(std::lgamma(0.5 * d) - std::lgamma(p) + (p - 1) * std::numbers::ln2) /
         (p * std::sqrt(std::numbers::pi));
}

// Nodes of a measure on gaps D that behaves like D^{p-1} dD at 0: the first unit in sqrt(D), which
// takes the singularity of d = 2, then panels in D.
struct GapNodes {
  std::vector<double> D, mass;
};

GapNodes gap_nodes(double end, const std::function<double(double)>& density) {
  GapNodes out;
  const double first = std::min(1.0, end);
  const PanelRule near = panel_rule(0, std::sqrt(first), 0.25);
  for (Index i = 0; i < near.x.size(); ++i) {
    const double D = near.x(i) * near.x(i);
    out.D.push_back(D);
    out.mass.push_back(near.w(i) * 2 * near.x(i) * density(D));
  }
  if (end <= first) return out;
  const PanelRule far = panel_rule(first, end, kScorePanel);
  for (Index i = 0; i < far.x.size(); ++i) {
    out.D.push_back(far.x(i));
    out.mass.push_back(far.w(i) * density(far.x(i)));
  }
  return out;
}

// int N_2 survival(W) du over the nodes; masses count tokens. The integrand dies like e^{2u} on the
// left; on the right `end` is where nothing survives.
double participation(const GapNodes& nodes, double end,
                     const std::function<double(double)>& survival) {
  constexpr double kStep = 0.25;
  double sum = 0;
  for (double u = end; u > end - 1e5; u -= kStep) {
    double W = 0, N2 = 0, small = 0;
    for (std::size_t i = 0; i < nodes.D.size(); ++i) {
      const double y = std::exp(std::min(u - nodes.D[i], 20.0));
      W -= nodes.mass[i] * std::expm1(-y);
      N2 += nodes.mass[i] * y * y * std::exp(-y);
      small += nodes.mass[i] * y;
    }
    const double term = N2 * survival(W);
    sum += term;
    if (small < 1e-2 && term < 1e-17 * sum) break;
  }
  return std::min(1.0, kStep * sum);
}

// Gaps up to this are integrated over; smaller kappas would need longer ones.
constexpr double kLongestGap = 2500;

// Beyond this u fewer than e^-40 prompts survive: kappa u^p = 40.
double last_place(double kappa, double p) { return std::pow(40 / kappa, 1 / p) + 6; }

void check_sphere(std::int64_t dim, double kappa) {
  if (dim < 2) throw_argument("sphere tokens", "dim", std::to_string(dim), "at least 2");
  const double least = 40 / std::pow(kLongestGap, 0.5 * static_cast<double>(dim - 1));
  if (!(kappa >= least && std::isfinite(kappa))) {
    throw_argument("sphere tokens", "kappa", to_text(kappa),
                   "at least " + to_text(least) + " for this dimension");
  }
}

void check_length(const char* what, double L) {
  if (!(L >= 2 && L <= 1e300))
    throw_argument(what, "length", to_text(L), "a length from 2 to 1e300");
}

}  // namespace

EquiangularRow equiangular_row(double L, double rho, double gamma) {
  check_length("equiangular tokens", L);
  if (!(rho >= 0 && rho < 1)) {
    throw_argument("equiangular tokens", "rho", to_text(rho), "a number in [0, 1)");
  }
  if (!(gamma >= 0 && std::isfinite(gamma))) {
    throw_argument("equiangular tokens", "gamma", to_text(gamma), "a number >= 0");
  }
  const double log_n = std::log(L);
  EquiangularRow out{.L = L, .rho = rho, .gamma = gamma, .beta = gamma * log_n};
  const double w = 1 / (1 + std::exp(std::log(L - 1) - gamma * (1 - rho) * log_n));
  // x_i' = (w - v) x_i + v S, S the sum of all tokens.
  const double v = (1 - w) / (L - 1), own = w - v;
  const double with_sum = 1 + (L - 1) * rho;  // <x_i, S>
  const double shared = 2 * own * v * with_sum + (v * L) * (v * with_sum);
  out.self_weight = w;
  out.inner_product = (own * own * rho + shared) / (own * own + shared);
  out.predicted_boundary = 1 / (1 - rho);
  out.boundary = std::log(L - 1) / ((1 - rho) * log_n);
  const double away = gamma * (1 - rho) - 1;
  out.predicted_inner_product = std::abs(away) < 1e-12 ? 4 * rho / (1 + 3 * rho)
                                : away < 0             ? 1
                                                       : rho;
  return out;
}

double sphere_scale(double L, std::int64_t dim, double kappa) {
  check_sphere(dim, kappa);
  check_length("sphere tokens", L);
  const double p = 0.5 * static_cast<double>(dim - 1);
  return std::exp((std::log(cap_constant(dim)) + std::log(L) - std::log(kappa)) / p);
}

double sphere_limit(std::int64_t dim, double kappa) {
  check_sphere(dim, kappa);
  const double p = 0.5 * static_cast<double>(dim - 1), end = last_place(kappa, p);
  const GapNodes nodes =
      gap_nodes(end + 45, [&](double D) { return kappa * p * std::pow(D, p - 1); });
  return participation(nodes, end, [](double W) { return std::exp(-W); });
}

double sphere_weight_square(double L, std::int64_t dim, double beta) {
  check_length("sphere tokens", L);
  if (dim < 2) throw_argument("sphere tokens", "dim", std::to_string(dim), "at least 2");
  if (!(beta > 0 && std::isfinite(beta))) {
    throw_argument("sphere tokens", "beta", to_text(beta), "a number > 0");
  }
  const double p = 0.5 * static_cast<double>(dim - 1);
  // kappa (1 - D/(2 beta))^{p-1} counts tokens; kappa is that of this beta.
  const double kappa = std::exp(std::log(cap_constant(dim)) + std::log(L) - p * std::log(beta));
  check_sphere(dim, kappa);
  const double end = std::min(last_place(kappa, p), 2 * beta + 6), reach = end + 45;
  const auto density = [&](double D) {
    return kappa * p * std::pow(D, p - 1) * std::pow(std::max(0.0, 1 - D / (2 * beta)), p - 1);
  };
  GapNodes nodes;
  if (reach < beta) {
    nodes = gap_nodes(reach, density);
  } else {
    // Both ends of the sphere are singular for d = 2: D and 2 beta - D from 0 to beta.
    nodes = gap_nodes(beta, density);
    const GapNodes far = gap_nodes(beta, [&](double D) { return density(2 * beta - D); });
    for (std::size_t i = 0; i < far.D.size(); ++i) {
      nodes.D.push_back(2 * beta - far.D[i]);
      nodes.mass.push_back(far.mass[i]);
    }
  }
  return participation(
      nodes, end, [&](double W) { return W < L ? std::exp((L - 1) * std::log1p(-W / L)) : 0.0; });
}

SphereRow sphere_row(double L, std::int64_t dim, double kappa) {
  const double beta = sphere_scale(L, dim, kappa), H = sphere_weight_square(L, dim, beta);
  return {.L = L,
          .dim = dim,
          .kappa = kappa,
          .beta = beta,
          .H = H,
          .predicted_H = sphere_limit(dim, kappa),
          .ess = 1 / H};
}

}  // namespace esscher
