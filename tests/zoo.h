// One of every measure in R^3, plus deep compositions: the list that "for every measure" tests use.
#pragma once

#include <vector>

#include "esscher/esscher.h"

namespace esscher::testing {

inline constexpr Index kZooDim = 3;

struct ZooEntry {
  const char* label;
  AnyMeasure measure;
};

inline Matrix zoo_matrix(std::uint64_t seed, Index rows, Index cols) {
  Matrix out(rows, cols);
  Stream(seed).fill_normal(0, std::span<double>(out.data(), static_cast<std::size_t>(out.size())));
  return out;
}

inline Vector zoo_vector(std::uint64_t seed, Index n) { return zoo_matrix(seed, n, 1).col(0); }

inline std::vector<ZooEntry> zoo() {
  const Index d = kZooDim;
  const Matrix F = zoo_matrix(1, d, d);
  const Matrix thin = zoo_matrix(2, d, 1);
  const Vector weights = Vector::LinSpaced(5, 1, 3);
  const Gaussian gaussian(zoo_vector(3, d), F * F.transpose());
  const Matrix xcov = 0.5 * Matrix::Identity(d - 1, d - 1) + 0.3 * Matrix::Ones(d - 1, d - 1);
  const Vector w = Vector::LinSpaced(d - 1, 0.8, -0.5);
  const AnyMeasure affine = Affine(zoo_vector(4, d), zoo_matrix(5, d, 2), Sphere(2, 1.5));
  const AnyMeasure product = Product({Rademacher(1), Uniform(2)});
  const AnyMeasure mixture =
      Mixture(Vector::LinSpaced(3, 1, 2), {AnyMeasure(gaussian), affine, product});
  return {
      {"empirical", Empirical(zoo_matrix(6, 5, d))},
      {"weighted empirical", Empirical(zoo_matrix(7, 5, d), weights)},
      {"gaussian", gaussian},
      {"singular gaussian", Gaussian(zoo_vector(8, d), thin * thin.transpose())},
      {"rademacher", Rademacher(d)},
      {"uniform", Uniform(d)},
      {"categorical", Categorical(Vector::LinSpaced(d, 1, 4))},
      {"sphere", Sphere(d, 1.3)},
      {"ball", Ball(d, 2)},
      {"laplace", Laplace(d, 0.05)},
      {"dirac", Dirac(zoo_vector(11, d))},
      {"elliptical", Elliptical(zoo_vector(12, d), F * F.transpose(),
                                {Vector::LinSpaced(3, 0, 1.5), Vector::LinSpaced(3, 1, 2)})},
      {"single index tanh", SingleIndex(xcov, w, Link(LinkName::tanh), 0.2)},
      {"single index relu", SingleIndex(xcov, w, Link(LinkName::relu))},
      {"single index sign", SingleIndex(xcov, w, Link(LinkName::sign), 0.1)},
      {"single index sin", SingleIndex(xcov, w, Link(LinkName::sin))},
      {"single index square", SingleIndex(xcov, w, Link::polynomial(0.5, 1, 0.004), 0.3)},
      {"affine", affine},
      {"product", product},
      {"sum", Sum({product, Gaussian(0.3 * Matrix::Identity(d, d))})},
      {"mixture", mixture},
      {"nested", Affine(zoo_vector(9, d), zoo_matrix(10, d, 2 * d),
                        Product({mixture, Sum({affine, Ball(d, 0.5)})}))},
  };
}

}  // namespace esscher::testing
