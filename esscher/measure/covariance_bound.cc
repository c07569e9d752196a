#include "esscher/measure/covariance_bound.h"

#include <algorithm>
#include <cmath>

#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/stationary.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

using Bound = std::optional<double>;

double top(const Matrix& G) { return std::max(0.0, max_eigenvalue(G)); }

double of_laplace(const Laplace& mu, double radius) {
  const double x = mu.b() * radius;
  if (!(x < 1)) return HUGE_VAL;
  return 2 * mu.b() * mu.b() * (1 + x * x) / ((1 - x * x) * (1 - x * x));
}

Bound of_elliptical(const Elliptical& mu, double radius) {
  double w = 0;
  for (Index i = 0; i < mu.scales().size(); ++i) {
    if (mu.weights()(i) > 0) w = std::max(w, mu.scales()(i));
  }
  const double l = top(mu.cov());
  // K' <= w, K'' <= w^2/4, and |Ga|^2 <= l^2 |a|^2.
  return w * l + 0.25 * w * w * l * l * radius * radius;
}

// |m_k(a) - m_k(0)| <= bound_k radius, and a law within a ball of radius s about any point has a
// covariance of at most s^2.
Bound of_mixture(const Mixture& mu, double radius) {
  double largest = 0, spread = 0;
  const Vector mean = mu.mean();
  for (Index k = 0; k < mu.weights().size(); ++k) {
    if (mu.weights()(k) == 0) continue;
    const AnyMeasure& part = mu.components()[static_cast<std::size_t>(k)];
    const Bound bound = covariance_bound(part, radius);
    if (!bound) return bound;
    largest = std::max(largest, *bound);
    spread = std::max(spread, (part.mean() - mean).norm() + *bound * radius);
  }
  return mu.weights().maxCoeff() == 1 ? largest : largest + spread * spread;
}

template <class Join>
Bound joined(const std::vector<AnyMeasure>& parts, double radius, const Join& join) {
  double out = 0;
  for (const AnyMeasure& part : parts) {
    const Bound bound = covariance_bound(part, radius);
    if (!bound) return bound;
    out = join(out, *bound);
  }
  return out;
}

}  // namespace

std::optional<double> covariance_bound(const AnyMeasure& mu, double radius) {
  if (const auto* gaussian = mu.as<Gaussian>()) return top(gaussian->cov());
  if (const auto* sequence = mu.as<Stationary>()) return top(sequence->token().cov());
  if (const auto* elliptical = mu.as<Elliptical>()) return of_elliptical(*elliptical, radius);
  if (mu.as<Dirac>() != nullptr) return 0;
  if (mu.as<Rademacher>() != nullptr) return 1;
  if (mu.as<Uniform>() != nullptr) return 1.0 / 3;
  if (mu.as<Categorical>() != nullptr) return 0.5;
  if (mu.as<Sphere>() != nullptr || mu.as<Ball>() != nullptr) {
    return mu.sub_gaussian() * mu.sub_gaussian();
  }
  if (const auto* laplace = mu.as<Laplace>()) return of_laplace(*laplace, radius);
  if (const auto* atoms = mu.as<Empirical>()) {
    const Vector centre = atoms->mean();
    return (atoms->tokens().rowwise() - centre.transpose()).rowwise().squaredNorm().maxCoeff();
  }
  if (const auto* affine = mu.as<Affine>()) {
    const double square = top(affine->B() * affine->B().transpose());
    const Bound inner = covariance_bound(affine->inner(), std::sqrt(square) * radius);
    return inner ? Bound(square == 0 ? 0 : square * *inner) : inner;
  }
  if (const auto* product = mu.as<Product>()) {
    return joined(product->blocks(), radius, [](double x, double y) { return std::max(x, y); });
  }
  if (const auto* sum = mu.as<Sum>()) {
    return joined(sum->parts(), radius, [](double x, double y) { return x + y; });
  }
  if (const auto* mixture = mu.as<Mixture>()) return of_mixture(*mixture, radius);
  return std::nullopt;
}

}  // namespace esscher
