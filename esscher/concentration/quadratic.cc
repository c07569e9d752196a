#include "esscher/concentration/quadratic.h"

#include <complex>
#include <string>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// A product without conjugation; Eigen's dot() would conjugate the left side.
template <class A, class B>
auto bilinear(const A& a, const B& b) {
  return a.cwiseProduct(b).sum();
}

}  // namespace

template <class Scalar>
QuadraticMoments<Scalar>::QuadraticMoments(const std::vector<Matrix>& forms,
                                           const VectorOf<Scalar>& sigma,
                                           const VectorOf<Scalar>& mu)
    : forms_(forms), sigma_(sigma), centred_(mu.isZero(0)) {
  for (const Matrix& N : forms) {
    first_.push_back(bilinear(N.diagonal().template cast<Scalar>(), sigma));
    if (centred_) continue;
    v_.push_back(N.template cast<Scalar>() * mu);
    first_.back() += bilinear(mu, v_.back());
  }
}

template <class Scalar>
Scalar QuadraticMoments<Scalar>::cumulant(int i) const {
  return first_[static_cast<std::size_t>(i)];
}

template <class Scalar>
Scalar QuadraticMoments<Scalar>::cumulant(int i, int j) const {
  const Matrix& N = forms_[static_cast<std::size_t>(i)];
  const Matrix& M = forms_[static_cast<std::size_t>(j)];
  const VectorOf<Scalar> inner = N.cwiseProduct(M).template cast<Scalar>() * sigma_;
  Scalar result = 2.0 * bilinear(sigma_, inner);
  if (!centred_) {
    result += 4.0 * bilinear(v_[static_cast<std::size_t>(i)].cwiseProduct(sigma_),
                             v_[static_cast<std::size_t>(j)]);
  }
  return result;
}

template <class Scalar>
Scalar QuadraticMoments<Scalar>::cumulant(int i, int j, int k) const {
  using Dense = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int index[3] = {i, j, k};
  Dense T[3];  // N S
  for (int p = 0; p < 3; ++p) {
    T[p] = forms_[static_cast<std::size_t>(index[p])].template cast<Scalar>() * sigma_.asDiagonal();
  }
  const Dense T12 = T[0] * T[1];
  Scalar result = 8.0 * T12.cwiseProduct(T[2].transpose()).sum();
  if (centred_) return result;
  VectorOf<Scalar> w[3];  // S v
  for (int p = 0; p < 3; ++p) w[p] = v_[static_cast<std::size_t>(index[p])].cwiseProduct(sigma_);
  for (int p = 0; p < 3; ++p) {
    const int a = (p + 1) % 3, b = (p + 2) % 3;
    const VectorOf<Scalar> Nw =
        forms_[static_cast<std::size_t>(index[p])].template cast<Scalar>() * w[b];
    result += 8.0 * bilinear(w[a], Nw);
  }
  return result;
}

template <class Scalar>
Scalar QuadraticMoments<Scalar>::expect(const FormProduct& p) const {
  switch (p.size()) {
    case 0: return Scalar(1);
    case 1: return cumulant(p[0]);
    case 2: return cumulant(p[0], p[1]) + cumulant(p[0]) * cumulant(p[1]);
    case 3:
      return cumulant(p[0], p[1], p[2]) + cumulant(p[0], p[1]) * cumulant(p[2]) +
             cumulant(p[0], p[2]) * cumulant(p[1]) + cumulant(p[1], p[2]) * cumulant(p[0]) +
             cumulant(p[0]) * cumulant(p[1]) * cumulant(p[2]);
    default:
      throw_argument("QuadraticMoments::expect", "product", std::to_string(p.size()) + " factors",
                     "at most 3");
  }
}

template class QuadraticMoments<double>;
template class QuadraticMoments<std::complex<double>>;

}  // namespace esscher
