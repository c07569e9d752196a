#include "esscher/scaling/crossover.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/measure/score_law.h"
#include "esscher/scaling/detail/normal.h"

namespace esscher {
namespace {

constexpr double kEuler = std::numbers::egamma;

// Scores as nodes: log of n times the weight of each. Weights may be negative (measure/score_law.h).
struct Nodes {
  std::vector<double> s, mass;
};

// W and N_1 .. N_5.
constexpr int kPowers = 5;
struct Sums {
  double W = 0, N[kPowers + 1] = {};
};

// One score of mass m at s - u = v.
void add(Sums& out, double m, double v) {
  if (v > 6) {  // e^-y vanishes
    out.W += m;
    return;
  }
  const double y = std::exp(v), e = std::exp(-y);
  out.W -= m * std::expm1(-y);
  double term = m * e;
  for (int j = 1; j <= kPowers; ++j) out.N[j] += term *= y;
}

// The trapezoidal rule in s. N_2 may be smaller than W by many powers of ten, so that no node is left
// out for being small.
Sums gaussian_sums(double log_n, double tau, double u) {
  const double step = std::min(0.25, 0.25 * tau);
  const double reach = 9 * tau + 1;
  // Scores far above u are counted by W alone, and their tail is that of the normal law.
  const double low = std::min(0.0, u) - reach, high = u + reach;
  const double scale = log_n + std::log(step / (tau * std::sqrt(2 * std::numbers::pi)));
  Sums out;
  for (double v = std::floor((low - u) / step) * step; v <= high - u; v += step) {
    const double x = (u + v) / tau;
    add(out, std::exp(scale - 0.5 * x * x), v);
  }
  return out;
}

Sums node_sums(const Nodes& nodes, double u) {
  Sums out;
  for (std::size_t i = 0; i < nodes.s.size(); ++i) add(out, nodes.mass[i], nodes.s[i] - u);
  return out;
}

Nodes layer_nodes(const LayerScores& layer, double f, double log_n) {
  const Vector a = f * layer.attention.tilt(layer.z);
  const ScoreLaw law =
      score_law(layer.mu, {.a = a, .V = Matrix::Zero(1, a.size()), .c = Vector::Zero(1)});
  Nodes out;
  for (Index i = 0; i < law.size(); ++i) {
    out.s.push_back(law.s(i));
    out.mass.push_back(law.p(i) * std::exp(log_n));
  }
  return out;
}

// The place where W = 1, and the sums there.
struct Place {
  double u = 0;
  Sums at = {};
};

Place place_of(const ScoreModel& scores, double f, double log_n) {
  if (!(log_n > 0)) throw_argument("scaling", "log n", to_text(log_n), "a number > 0");
  const double tau = scores.deviation(f);
  Nodes nodes;
  if (!scores.is_gaussian()) nodes = layer_nodes(*scores.layer(), f, log_n);
  const auto sums = [&](double u) {
    return scores.is_gaussian() && tau > 0 ? gaussian_sums(log_n, tau, u) : node_sums(nodes, u);
  };
  if (scores.is_gaussian() && !(tau > 0)) nodes = {.s = {0}, .mass = {std::exp(log_n)}};
  // log W falls with u, at a rate between 0 and 1, so that Newton's steps in log W do not run away.
  Place out{
      .u = std::min(log_n + scores.log_mgf(f, 1), scores.mean(f) + tau * std::sqrt(2 * log_n) + 1)};
  out.at = sums(out.u);
  for (int i = 0; i < 60; ++i) {
    const double log_w = std::log(out.at.W);
    if (!(std::abs(log_w) > 1e-12)) break;
    out.u += std::clamp(log_w * out.at.W / std::max(out.at.N[1], 1e-300), -20.0, 20.0);
    out.at = sums(out.u);
  }
  return out;
}

// int value e^{-p x} e^{-W} dx for W = e^{-a x}.
double integral(double value, double p, double a) { return value * std::tgamma(p / a) / a; }

// Over tau^2.
double gaussian_error(const Sums& at, double tau) {
  const double* N = at.N;
  const double t2 = tau * tau, a = N[1], b = 2 - N[3] / N[2];
  const double P = N[2] + t2 * (N[2] - 3 * N[3] + N[4]);
  const double next = N[3] + t2 * (4 * N[3] - 5 * N[4] + N[5]);  // E[|x|^2 y^3 e^-y]
  return integral(P, 2 - next / P, a) + integral(t2 * N[2] * N[2], 2 * b, a);
}

double layer_error(const LayerScores& layer, double f, double log_n, const Place& place) {
  const Vector a = f * layer.attention.tilt(layer.z);
  const Matrix& V = layer.attention.V();
  const ScoreLaw law = score_law(layer.mu, {.a = a, .V = V, .c = V * layer.mu.tilted_mean(a)});
  double P = 0, next = 0;
  Vector R = Vector::Zero(V.rows()), beyond = R;  // beyond = n E[x y^2 e^-y]
  for (Index i = 0; i < law.size(); ++i) {
    const double v = law.s(i) - place.u;
    if (v > 6) continue;  // e^-y vanishes
    const double y = std::exp(v), one = std::exp(log_n + v - y);
    R += one * law.first.row(i).transpose();
    beyond += one * y * law.first.row(i).transpose();
    P += one * y * law.second(i);
    next += one * y * y * law.second(i);
  }
  if (!(P > 0)) return 0;  // every token is read as the same
  const double rate = place.at.N[1], square = R.squaredNorm();
  const double own = integral(P, 2 - next / P, rate);
  if (!(square > 0)) return own;
  // Where R is lost in rounding, so is its rate; |R|^2 is then nothing beside P.
  return own + integral(square, std::clamp(2 - 2 * R.dot(beyond) / square, rate, 4.0), rate);
}

}  // namespace

double Crossover::needle(double score) const {
  // x = e^t: the integrand falls doubly exponentially on the right and like e^t on the left.
  constexpr double kStep = 0.125;
  double sum = 0;
  for (double t = -40; t < 5; t += kStep) {
    const double power = rate * (t + place - score);
    if (power < 7) sum += std::exp(t - std::exp(t) - std::exp(power));
  }
  return std::min(1.0, kStep * sum);
}

Crossover crossover(const ScoreModel& scores, double f, double log_n) {
  const Place place = place_of(scores, f, log_n);
  const double a = place.at.N[1], b = 2 - place.at.N[3] / place.at.N[2];
  return {.H = integral(place.at.N[2], b, a),
          .free_energy = place.u + kEuler * (1 / a - 1),
          .place = place.u,
          .rate = a};
}

double crossover_error(const ScoreModel& scores, double f, double log_n) {
  const Place place = place_of(scores, f, log_n);
  if (scores.is_gaussian()) return gaussian_error(place.at, scores.deviation(f));
  if (!std::isfinite(scores.log_mgf(f, 1))) return std::numeric_limits<double>::quiet_NaN();
  return layer_error(*scores.layer(), f, log_n, place);
}

double crossover_entropy(const ScoreModel& scores, double f, double log_n) {
  constexpr double kStep = 1e-4;
  const double up = crossover(scores, f * (1 + kStep), log_n).free_energy;
  const double down = crossover(scores, f * (1 - kStep), log_n).free_energy;
  return 0.5 * (up + down) - (up - down) / (2 * kStep);
}

double freezing_crossover(double tau, double log_n) {
  const auto rest = [&](double y) { return tau * tau / 2 + tau * y - log_n - log_normal_cdf(y); };
  double low = -tau, high = log_n / tau + tau;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (rest(middle) < 0 ? low : high) = middle;
  }
  const double y = 0.5 * (low + high);
  return std::exp(-0.5 * y * y - log_normal_cdf(y)) / (tau * std::sqrt(2 * std::numbers::pi));
}

}  // namespace esscher
