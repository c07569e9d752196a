#include "esscher/measure/gaussian_view.h"

#include "esscher/measure/affine.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

using Law = std::optional<GaussianMixtureLaw>;

GaussianLaw image(const Affine& map, const GaussianLaw& law) {
  const Matrix cov = map.B() * law.cov * map.B().transpose();
  return {map.c() + map.B() * law.mean, 0.5 * (cov + cov.transpose())};
}

GaussianLaw joined(const GaussianLaw& a, const GaussianLaw& b) {
  const Index n = a.mean.size();
  const Index m = b.mean.size();
  GaussianLaw out{Vector(n + m), Matrix::Zero(n + m, n + m)};
  out.mean << a.mean, b.mean;
  out.cov.topLeftCorner(n, n) = a.cov;
  out.cov.bottomRightCorner(m, m) = b.cov;
  return out;
}

GaussianLaw added(const GaussianLaw& a, const GaussianLaw& b) {
  return {a.mean + b.mean, a.cov + b.cov};
}

// Combines every pair of components: the law of two independent mixtures put together.
template <class Combine>
Law all_pairs(const GaussianMixtureLaw& a, const GaussianMixtureLaw& b, const Combine& combine) {
  if (a.weights.size() * b.weights.size() > kMaxMixtureComponents) return std::nullopt;
  GaussianMixtureLaw out{Vector(a.weights.size() * b.weights.size()), {}};
  for (Index i = 0; i < a.weights.size(); ++i) {
    for (Index j = 0; j < b.weights.size(); ++j) {
      out.weights(i * b.weights.size() + j) = a.weights(i) * b.weights(j);
      out.components.push_back(combine(a.components[i], b.components[j]));
    }
  }
  return out;
}

template <class Combine>
Law folded(const std::vector<AnyMeasure>& parts, const Combine& combine) {
  Law out = gaussian_mixture_law(parts.front());
  for (std::size_t k = 1; k < parts.size() && out; ++k) {
    const Law next = gaussian_mixture_law(parts[k]);
    if (!next) return std::nullopt;
    out = all_pairs(*out, *next, combine);
  }
  return out;
}

Law mixed(const Mixture& mixture) {
  std::vector<double> weights;
  GaussianMixtureLaw out;
  for (Index k = 0; k < mixture.weights().size(); ++k) {
    if (mixture.weights()(k) == 0) continue;
    const Law part = gaussian_mixture_law(mixture.components()[k]);
    if (!part) return std::nullopt;
    for (Index i = 0; i < part->weights.size(); ++i) {
      weights.push_back(mixture.weights()(k) * part->weights(i));
      out.components.push_back(part->components[i]);
    }
    if (static_cast<Index>(weights.size()) > kMaxMixtureComponents) return std::nullopt;
  }
  out.weights = Eigen::Map<const Vector>(weights.data(), static_cast<Index>(weights.size()));
  return out;
}

// One Gaussian per factor of the covariance.
Law scaled(const Elliptical& law) {
  std::vector<double> weights;
  GaussianMixtureLaw out;
  for (Index i = 0; i < law.scales().size(); ++i) {
    if (law.weights()(i) == 0) continue;
    weights.push_back(law.weights()(i));
    out.components.push_back({law.mean(), law.scales()(i) * law.cov()});
  }
  out.weights = Eigen::Map<const Vector>(weights.data(), static_cast<Index>(weights.size()));
  return out;
}

}  // namespace

std::optional<GaussianLaw> gaussian_law(const AnyMeasure& measure) {
  const Law law = gaussian_mixture_law(measure);
  if (!law || law->components.size() != 1) return std::nullopt;
  return law->components.front();
}

std::optional<GaussianMixtureLaw> gaussian_mixture_law(const AnyMeasure& measure) {
  if (const auto* gaussian = measure.as<Gaussian>()) {
    return GaussianMixtureLaw{Vector::Ones(1), {{gaussian->mean(), gaussian->cov()}}};
  }
  if (const auto* dirac = measure.as<Dirac>()) {
    return GaussianMixtureLaw{Vector::Ones(1),
                              {{dirac->point(), Matrix::Zero(measure.dim(), measure.dim())}}};
  }
  if (const auto* elliptical = measure.as<Elliptical>()) return scaled(*elliptical);
  if (const auto* single = measure.as<SingleIndex>()) {
    return gaussian_mixture_law(single->expanded());
  }
  if (const auto* affine = measure.as<Affine>()) {
    Law law = gaussian_mixture_law(affine->inner());
    if (law) {
      for (GaussianLaw& part : law->components) part = image(*affine, part);
    }
    return law;
  }
  if (const auto* product = measure.as<Product>()) return folded(product->blocks(), joined);
  if (const auto* sum = measure.as<Sum>()) return folded(sum->parts(), added);
  if (const auto* mixture = measure.as<Mixture>()) return mixed(*mixture);
  return std::nullopt;
}

}  // namespace esscher
