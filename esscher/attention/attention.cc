#include "esscher/attention/attention.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {

Attention::Attention(Matrix U, Matrix V, std::optional<KeyQuery> kq)
    : U_(std::move(U)), V_(std::move(V)), kq_(std::move(kq)) {
  check_dimension("attention", "V (columns)", V_.cols(), U_.rows());
  check_finite("attention", "U", U_);
  check_finite("attention", "V", V_);
}

Attention Attention::from_uv(Matrix U, Matrix V) {
  check_dimension("attention", "U (columns)", U.cols(), U.rows());
  return {std::move(U), std::move(V), std::nullopt};
}

Attention Attention::from_kqv(Matrix K, Matrix Q, Matrix V, double scale) {
  check_dimension("attention", "Q (rows)", Q.rows(), K.rows());
  check_dimension("attention", "Q (columns)", Q.cols(), K.cols());
  check_finite("attention", "K", K);
  check_finite("attention", "Q", Q);
  if (!std::isfinite(scale)) {
    throw_argument("attention", "scale", to_text(scale), "a finite number");
  }
  Matrix U = scale * (K.transpose() * Q);
  return {std::move(U), std::move(V), KeyQuery{std::move(K), std::move(Q), scale}};
}

const Attention::KeyQuery& Attention::kq() const {
  if (!kq_) {
    throw CapabilityError(
        "attention: made from (U,V), so K, Q and scale do not exist; use from_kqv");
  }
  return *kq_;
}

Vector Attention::tilt(const VectorView& z) const {
  check_query(z);
  return U_ * z;
}

void Attention::check_measure(Index measure_dim) const {
  check_dimension("attention", "measure", measure_dim, dim());
}

void Attention::check_query(const VectorView& z) const {
  check_dimension("attention", "z", z.size(), dim());
  check_finite("attention", "z", z);
}

Vector Attention::functional(const VectorView& g) const {
  check_dimension("attention", "g", g.size(), output_dim());
  return V_.transpose() * g;
}

AttentionGradients Attention::pull_back(const Vector& m, const Vector& c, const VectorView& z,
                                        const VectorView& g) const {
  AttentionGradients out;
  out.z = U_.transpose() * c;
  out.U = c * z.transpose();
  out.V = g * m.transpose();
  if (kq_) {
    out.K = kq_->scale * (kq_->Q * z) * c.transpose();
    out.Q = kq_->scale * (kq_->K * c) * z.transpose();
  }
  return out;
}

Matrix Attention::outer_columns(const Matrix& left, const VectorView& right) {
  const Index n = right.size();
  Matrix out(left.rows(), left.cols() * n);
  for (Index i = 0; i < left.cols(); ++i) {
    out.middleCols(i * n, n) = left.col(i) * right.transpose();
  }
  return out;
}

}  // namespace esscher
