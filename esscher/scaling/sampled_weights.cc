#include "esscher/scaling/sampled_weights.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "esscher/base/stop.h"
#include "esscher/estimate/quantile.h"
#include "esscher/scaling/detail/normal.h"

namespace esscher {
namespace {

// sum e^{2s} / (sum e^s)^2, about the largest score.
double weight_square(const std::vector<double>& s) {
  const double top = *std::max_element(s.begin(), s.end());
  double one = 0, two = 0;
  for (const double x : s) {
    const double e = std::exp(x - top);
    one += e;
    two += e * e;
  }
  return two / (one * one);
}

}  // namespace

double sampled_weight_square(double n, double tau, const Stream& stream, std::uint64_t i) {
  const Stream own = stream.split(i);
  if (n <= kAllScores) {
    std::vector<double> s(static_cast<std::size_t>(std::llround(n)));
    own.fill_normal(0, s);
    for (double& x : s) x *= tau;
    return weight_square(s);
  }
  std::vector<double> u(kTopScores);
  own.fill_uniform(0, u);
  double sum = 0;
  for (double& x : u) x = sum -= std::log(x);
  // The other n + 1 - k exponentials: a gamma variable, by the cube of a normal (Wilson-Hilferty),
  // right to 1/n.
  const Stream rest = own.split(1);
  const double shape = n + 1 - kTopScores, w = 1 / (9 * shape);
  const double total = sum + shape * std::pow(1 - w + std::sqrt(w) * rest.normal(0), 3);
  const auto score = [&](double gamma) {
    return std::numbers::sqrt2 * boost::math::erfc_inv(2 * gamma / total);
  };
  const double g = score(u.back()), top = tau * score(u.front());
  double one = 0, two = 0;
  for (const double gamma : u) {
    const double e = std::exp(tau * score(gamma) - top);
    one += e;
    two += e * e;
  }
  // log m_j - j top; Phi(g) is near 1.
  const double others = n - kTopScores, below = normal_cdf(g);
  const auto moment = [&](double j) {
    const double power = std::log(others) + 0.5 * j * j * tau * tau - j * top;
    return std::exp(power + log_normal_cdf(g - j * tau)) / below;
  };
  const double m1 = moment(1), m2 = moment(2);
  one += std::max(0.0, m1 + std::sqrt(std::max(0.0, m2 - m1 * m1 / others)) * rest.normal(1));
  two += m2;
  return std::min(1.0, two / (one * one));
}

std::optional<Estimate> median_weight_square(const ScoreModel& scores, double f, double n,
                                             int draws, const Stream& stream) {
  if (!scores.is_gaussian() && n * draws > kMaxDrawnTokens) return std::nullopt;
  std::vector<double> h(static_cast<std::size_t>(draws));
  for (std::size_t i = 0; i < h.size(); ++i) {
    check_stop();
    if (scores.is_gaussian()) {
      h[i] = sampled_weight_square(n, scores.deviation(f), stream, i);
      continue;
    }
    const LayerScores& layer = *scores.layer();
    const Empirical prompt = layer.mu.sample(stream.split(i), std::llround(n));
    const Vector s = prompt.tokens() * (f * layer.attention.tilt(layer.z));
    h[i] = weight_square(std::vector<double>(s.data(), s.data() + s.size()));
  }
  return median_estimate(h, scores.is_gaussian() ? Engine::sampled : Engine::direct);
}

}  // namespace esscher
