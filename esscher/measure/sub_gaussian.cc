#include "esscher/measure/sub_gaussian.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/eigensystem.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

constexpr int kMaxIterations = 200;
constexpr double kConverged = 1e-14;
constexpr Index kSampleTokens = 64;
constexpr Index kMaxAxes = 16;
constexpr std::size_t kAscents = 12;

double ratio(const AnyMeasure& mu, const Vector& a) {
  const double square = a.squaredNorm();
  return square > 0 ? 2.0 * mu.centred_log_mgf(a) / square : 0.0;
}

// Iterates a -> (m_a - m)/f(a) to its fixed point. f never decreases on the way.
double ascend(const AnyMeasure& mu, Vector a) {
  double best = ratio(mu, a);
  for (int step = 0; step < kMaxIterations && best > 0; ++step) {
    a = (mu.mean_shift(a) / best).eval();
    if (!a.allFinite()) break;
    const double next = ratio(mu, a);
    if (!(next > best * (1 + kConverged))) return std::max(best, next);
    best = next;
  }
  return best;
}

struct Start {
  Vector a;
  double value = 0;
};

// The best radius along u on a coarse grid; u has length 1/sqrt(variance).
Start best_radius(const AnyMeasure& mu, const Vector& u) {
  Start best{u, 0};
  for (double radius = 0.125; radius < 1e5; radius *= 2) {
    const double value = ratio(mu, radius * u);
    if (value > best.value) best = {radius * u, value};
  }
  return best;
}

// Unit directions to start from. The caller tries both signs.
std::vector<Vector> directions(const AnyMeasure& mu, const Matrix& cov) {
  const Eigensystem system = eigensystem(cov);
  std::vector<Vector> list;
  for (Index i = 0; i < std::min(mu.dim(), kMaxAxes); ++i) {
    list.emplace_back(system.vectors.col(mu.dim() - 1 - i));
  }
  const Empirical sample = mu.sample(Stream(0), kSampleTokens);
  for (Index l = 0; l < sample.size(); ++l) {
    const Vector offset = sample.tokens().row(l).transpose() - mu.mean();
    if (offset.norm() > 0) list.emplace_back(offset.normalized());
  }
  return list;
}

// A place with a weight: the mean of the law on an event of that probability.
struct Landmark {
  double weight = 0;
  Vector place;
};
using Landmarks = std::vector<Landmark>;

Landmarks landmarks(const AnyMeasure& mu);

Landmarks of_mixture(const Mixture& mixture) {
  Landmarks out;
  for (Index k = 0; k < mixture.weights().size(); ++k) {
    const AnyMeasure& part = mixture.components()[static_cast<std::size_t>(k)];
    const double weight = mixture.weights()(k);
    out.push_back({weight, part.mean()});
    for (Landmark& inner : landmarks(part)) {
      out.push_back({weight * inner.weight, std::move(inner.place)});
    }
  }
  return out;
}

// An event of one of several independent parts leaves the others at their means.
Landmarks of_product(const Product& product) {
  Landmarks out;
  const Vector mean = product.mean();
  Index first = 0;
  for (const AnyMeasure& block : product.blocks()) {
    for (const Landmark& inner : landmarks(block)) {
      Vector place = mean;
      place.segment(first, block.dim()) = inner.place;
      out.push_back({inner.weight, std::move(place)});
    }
    first += block.dim();
  }
  return out;
}

Landmarks of_sum(const Sum& sum) {
  Landmarks out;
  for (const AnyMeasure& part : sum.parts()) {
    const Vector others = sum.mean() - part.mean();
    for (const Landmark& inner : landmarks(part))
      out.push_back({inner.weight, inner.place + others});
  }
  return out;
}

Landmarks landmarks(const AnyMeasure& mu) {
  Landmarks out;
  if (const auto* atoms = mu.as<Empirical>()) {
    for (Index l = 0; l < atoms->size(); ++l) {
      out.push_back({atoms->weights()(l), atoms->tokens().row(l).transpose()});
    }
  } else if (const auto* categorical = mu.as<Categorical>()) {
    for (Index i = 0; i < mu.dim(); ++i) {
      out.push_back({categorical->probs()(i), Vector::Unit(mu.dim(), i)});
    }
  } else if (const auto* affine = mu.as<Affine>()) {
    for (const Landmark& inner : landmarks(affine->inner())) {
      out.push_back({inner.weight, affine->c() + affine->B() * inner.place});
    }
  } else if (const auto* mixture = mu.as<Mixture>()) {
    return of_mixture(*mixture);
  } else if (const auto* product = mu.as<Product>()) {
    return of_product(*product);
  } else if (const auto* sum = mu.as<Sum>()) {
    return of_sum(*sum);
  }
  return out;
}

// Starts towards the landmarks whose bounds are largest.
std::vector<Start> landmark_starts(const AnyMeasure& mu) {
  std::vector<Start> starts;
  const Vector mean = mu.mean();
  for (const Landmark& mark : landmarks(mu)) {
    if (!(mark.weight > 0 && mark.weight < 0.5)) continue;
    const Vector offset = (mark.place - mean) / (1 - mark.weight);
    const double square = offset.squaredNorm();
    if (!(square > 0)) continue;
    const double odds = std::log1p(-mark.weight) - std::log(mark.weight);
    starts.push_back({(2 * odds / square) * offset, square * (1 - 2 * mark.weight) / (2 * odds)});
  }
  std::sort(starts.begin(), starts.end(),
            [](const Start& x, const Start& y) { return x.value > y.value; });
  starts.resize(std::min(starts.size(), kAscents));
  for (Start& start : starts) start.value = ratio(mu, start.a);
  return starts;
}

}  // namespace

double numeric_sub_gaussian(const AnyMeasure& mu) {
  const Vector origin = Vector::Zero(mu.dim());
  const Matrix cov = mu.tilted_cov(origin);
  const double variance = std::max(0.0, max_eigenvalue(cov));
  if (variance == 0) return 0.0;
  std::vector<Start> starts = landmark_starts(mu);
  for (const Vector& u : directions(mu, cov)) {
    for (const double sign : {1.0, -1.0}) {
      starts.push_back(best_radius(mu, (sign / std::sqrt(variance)) * u));
    }
  }
  std::sort(starts.begin(), starts.end(),
            [](const Start& x, const Start& y) { return x.value > y.value; });
  double best = variance;
  for (std::size_t i = 0; i < std::min(starts.size(), kAscents); ++i) {
    best = std::max(best, ascend(mu, starts[i].a));
  }
  return std::sqrt(best);
}

}  // namespace esscher
