#include "esscher/measure/tail_growth.h"

#include <algorithm>
#include <utility>

#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/link_pair.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/stationary.h"
#include "esscher/measure/student.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

using Growth = std::optional<TailGrowth>;

bool is_bounded(const AnyMeasure& mu) {
  return mu.as<Empirical>() != nullptr || mu.as<Categorical>() != nullptr ||
         mu.as<Rademacher>() != nullptr || mu.as<Uniform>() != nullptr ||
         mu.as<Sphere>() != nullptr || mu.as<Ball>() != nullptr || mu.as<Dirac>() != nullptr;
}

Matrix block_diagonal(const Matrix& a, const Matrix& b) {
  Matrix out = Matrix::Zero(a.rows() + b.rows(), a.rows() + b.rows());
  out.topLeftCorner(a.rows(), a.rows()) = a;
  out.bottomRightCorner(b.rows(), b.rows()) = b;
  return out;
}

// Every pair of forms of independent parts is joined.
template <class Join>
Growth folded(const std::vector<AnyMeasure>& parts, const Join& join) {
  Growth out = tail_growth(parts.front());
  for (std::size_t k = 1; k < parts.size() && out; ++k) {
    const Growth next = tail_growth(parts[k]);
    if (!next || static_cast<Index>(out->forms.size() * next->forms.size()) > kMaxMixtureComponents)
      return std::nullopt;
    std::vector<Matrix> forms;
    for (const Matrix& G : out->forms) {
      for (const Matrix& H : next->forms) forms.push_back(join(G, H));
    }
    out = TailGrowth{std::move(forms), join(out->wild, next->wild)};
  }
  return out;
}

Growth mixed(const Mixture& mixture) {
  TailGrowth out{{}, Matrix::Zero(mixture.dim(), mixture.dim())};
  for (Index k = 0; k < mixture.weights().size(); ++k) {
    if (mixture.weights()(k) == 0) continue;
    Growth part = tail_growth(mixture.components()[static_cast<std::size_t>(k)]);
    if (!part) return std::nullopt;
    out.wild += part->wild;
    std::move(part->forms.begin(), part->forms.end(), std::back_inserter(out.forms));
    if (static_cast<Index>(out.forms.size()) > kMaxMixtureComponents) return std::nullopt;
  }
  return out;
}

Growth scaled(const Elliptical& law) {
  const Matrix zero = Matrix::Zero(law.dim(), law.dim());
  double largest = 0;
  for (Index i = 0; i < law.scales().size(); ++i) {
    if (law.weights()(i) > 0) largest = std::max(largest, law.scales()(i));
  }
  return TailGrowth{{largest * law.cov()}, zero};
}

// A link that grows has different forms on different sides, and a link of degree two is wild on one
// side only: neither is of this shape.
Growth of_link(const LinkPair& pair) {
  if (!pair.link().is_bounded()) return std::nullopt;
  Matrix form = Matrix::Zero(2, 2);
  form(0, 0) = pair.rho() * pair.rho();
  return TailGrowth{{form}, Matrix::Zero(2, 2)};
}

}  // namespace

bool TailGrowth::bounded() const {
  return wild.isZero(0) &&
         std::all_of(forms.begin(), forms.end(), [](const Matrix& G) { return G.isZero(0); });
}

std::optional<TailGrowth> tail_growth(const AnyMeasure& measure) {
  const Matrix zero = Matrix::Zero(measure.dim(), measure.dim());
  if (const auto* gaussian = measure.as<Gaussian>()) return TailGrowth{{gaussian->cov()}, zero};
  if (is_bounded(measure)) return TailGrowth{{zero}, zero};
  if (const auto* sequence = measure.as<Stationary>()) {
    return TailGrowth{{sequence->token().cov()}, zero};
  }
  if (const auto* elliptical = measure.as<Elliptical>()) return scaled(*elliptical);
  if (const auto* student = measure.as<Student>()) return TailGrowth{{zero}, student->cov()};
  if (const auto* single = measure.as<SingleIndex>()) return tail_growth(single->expanded());
  if (const auto* pair = measure.as<LinkPair>()) return of_link(*pair);
  if (measure.as<Laplace>() != nullptr) {
    return TailGrowth{{zero}, Matrix::Identity(measure.dim(), measure.dim())};
  }
  if (const auto* affine = measure.as<Affine>()) {
    Growth out = tail_growth(affine->inner());
    if (!out) return out;
    const auto image = [affine](const Matrix& G) -> Matrix {
      return affine->B() * G * affine->B().transpose();
    };
    for (Matrix& G : out->forms) G = image(G);
    out->wild = image(out->wild);
    return out;
  }
  if (const auto* product = measure.as<Product>()) return folded(product->blocks(), block_diagonal);
  if (const auto* sum = measure.as<Sum>()) {
    return folded(sum->parts(), [](const Matrix& G, const Matrix& H) -> Matrix { return G + H; });
  }
  if (const auto* mixture = measure.as<Mixture>()) return mixed(*mixture);
  return std::nullopt;
}

}  // namespace esscher
