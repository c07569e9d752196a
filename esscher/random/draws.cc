#include "esscher/random/draws.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {

void sphere_point(const Stream& stream, std::uint64_t i, double radius, std::span<double> out) {
  const std::size_t d = out.size();
  if (d == 0) throw_argument("sphere_point", "dimension", "0", "an integer >= 1");
  stream.fill_normal(i * d, out);
  double square = 0;
  for (const double x : out) square += x * x;
  // In one dimension a normal is exactly zero with probability 2^-52. Any point will do then.
  if (square == 0) {
    out[0] = 1;
    square = 1;
  }
  const double factor = radius / std::sqrt(square);
  for (double& x : out) x *= factor;
}

CategoricalDraw::CategoricalDraw(const VectorView& weights) {
  double total = 0;
  for (Index k = 0; k < weights.size(); ++k) {
    if (!(weights(k) >= 0) || !std::isfinite(weights(k))) {
      throw_argument("categorical", "weights[" + std::to_string(k) + "]", to_text(weights(k)),
                     "a finite number >= 0");
    }
    total += weights(k);
    cumulative_.push_back(total);
  }
  if (!(total > 0) || !std::isfinite(total)) {
    throw_argument("categorical", "sum of weights", to_text(total), "a positive finite number");
  }
}

Index CategoricalDraw::operator()(double uniform) const {
  const double target = uniform * cumulative_.back();
  // upper_bound skips categories of weight zero. Rounding can reach the end, where the last
  // category of positive weight is the answer.
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), target);
  if (found != cumulative_.end()) return found - cumulative_.begin();
  return std::lower_bound(cumulative_.begin(), cumulative_.end(), cumulative_.back()) -
         cumulative_.begin();
}

double gamma_draw(const Stream& stream, double shape) {
  if (!(shape > 0) || !std::isfinite(shape)) {
    throw_argument("gamma_draw", "shape", to_text(shape), "a positive finite number");
  }
  if (shape < 1) {
    // Gamma(k) = Gamma(k+1) U^(1/k).
    return gamma_draw(stream.split(0), shape + 1) * std::pow(stream.uniform(0), 1 / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1 / std::sqrt(9 * d);
  for (std::uint64_t at = 0;; at += 4) {
    const double x = stream.normal(at);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = stream.uniform(at + 2);  // another block than the normal's
    const double x2 = x * x;
    // This implies the exact condition below, which needs two logarithms.
    if (u < 1 - 0.0331 * x2 * x2) return d * v;
    // log v = 3 log1p(c x) does not cancel when shape is huge.
    if (std::log(u) < 0.5 * x2 + d * (1 - v + 3 * std::log1p(c * x))) return d * v;
  }
}

double chi_square_draw(const Stream& stream, double dof) {
  return 2 * gamma_draw(stream, 0.5 * dof);
}

}  // namespace esscher
