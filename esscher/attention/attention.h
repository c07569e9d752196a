// Softmax attention as an operator on measures. With U = scale * K'Q [d,d], V [dv,d], a = U z:
//
//   T[mu](z)     = V m                m = m_a, mean of the tilted measure (measure/measure.h)
//   T_lin[mu](z) = V m                m = S a, S = E z'z'^T: linear attention reads the second
//                                     moment, not the covariance
//
// Derivatives for a cotangent g [dv], with c = C_a V'g for T and c = S V'g for T_lin:
//
//   zbar = U'c,   Ubar = c z',   Vbar = g m',   Kbar = scale * Q Ubar',   Qbar = scale * K Ubar
//
// The same call serves a finite prompt (Empirical) and an infinite one (any other measure).
#pragma once

#include <optional>

#include "esscher/base/linalg.h"
#include "esscher/measure/measure.h"

namespace esscher {

// Cotangents, each of the shape of its parameter; K and Q are empty unless the operator has them.
struct AttentionGradients {
  Vector z;  // [d]
  Matrix U;  // [d,d]
  Matrix V;  // [dv,d]
  Matrix K;  // [dk,d] or empty
  Matrix Q;  // [dk,d] or empty
};

class Attention {
 public:
  // U [d,d], V [dv,d]. Throws DimensionError, and ArgumentError for entries that are not finite.
  static Attention from_uv(Matrix U, Matrix V);
  // K, Q [dk,d], V [dv,d], finite scale.
  static Attention from_kqv(Matrix K, Matrix Q, Matrix V, double scale = 1.0);

  [[nodiscard]] Index dim() const { return U_.rows(); }
  [[nodiscard]] Index output_dim() const { return V_.rows(); }
  [[nodiscard]] const Matrix& U() const { return U_; }
  [[nodiscard]] const Matrix& V() const { return V_; }
  [[nodiscard]] bool has_kq() const { return kq_.has_value(); }
  // K(), Q() and scale() throw CapabilityError for an operator made by from_uv.
  [[nodiscard]] const Matrix& K() const { return kq().K; }
  [[nodiscard]] const Matrix& Q() const { return kq().Q; }
  [[nodiscard]] double scale() const { return kq().scale; }

  // a = U z.
  [[nodiscard]] Vector tilt(const VectorView& z) const;

  // T[mu](z) [dv].
  template <Measure M>
  [[nodiscard]] Vector operator()(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return V_ * mu.tilted_mean(tilt(z));
  }

  // T_lin[mu](z) [dv].
  template <Measure M>
  [[nodiscard]] Vector linear(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return V_ * second_moment_times(mu, tilt(z));
  }

  // Vector-Jacobian products of T[mu](z) for g [dv]; C_a is never formed.
  template <Measure M>
  [[nodiscard]] AttentionGradients vjp(const M& mu, const VectorView& z,
                                       const VectorView& g) const {
    check_measure(mu.dim());
    const Vector a = tilt(z);
    return pull_back(mu.tilted_mean(a), mu.tilted_cov_times(a, functional(g)), z, g);
  }

  // The same for T_lin.
  template <Measure M>
  [[nodiscard]] AttentionGradients linear_vjp(const M& mu, const VectorView& z,
                                              const VectorView& g) const {
    check_measure(mu.dim());
    const Vector a = tilt(z);
    return pull_back(second_moment_times(mu, a), second_moment_times(mu, functional(g)), z, g);
  }

  // dT/dz = V C_a U [dv,d].
  template <Measure M>
  [[nodiscard]] Matrix jacobian_z(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return V_ * mu.tilted_cov(tilt(z)) * U_;
  }

  // dT/dU [dv, d*d]: column i*d + j belongs to U(i,j) and is (V C_a)(:,i) z(j).
  template <Measure M>
  [[nodiscard]] Matrix jacobian_U(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return outer_columns(V_ * mu.tilted_cov(tilt(z)), z);
  }

  // dT/dV [dv, dv*d]: column i*d + j belongs to V(i,j) and is e_i m_a(j).
  template <Measure M>
  [[nodiscard]] Matrix jacobian_V(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return outer_columns(Matrix::Identity(output_dim(), output_dim()), mu.tilted_mean(tilt(z)));
  }

  // The Jacobians of T_lin, in the same shapes and order: S stands for C_a, and S a for m_a. Those
  // in z and U do not depend on where the tilt is, because T_lin is linear in both.
  template <Measure M>
  [[nodiscard]] Matrix linear_jacobian_z(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    check_query(z);
    return V_ * mu.second_moment() * U_;
  }

  template <Measure M>
  [[nodiscard]] Matrix linear_jacobian_U(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    check_query(z);
    return outer_columns(V_ * mu.second_moment(), z);
  }

  template <Measure M>
  [[nodiscard]] Matrix linear_jacobian_V(const M& mu, const VectorView& z) const {
    check_measure(mu.dim());
    return outer_columns(Matrix::Identity(output_dim(), output_dim()),
                         second_moment_times(mu, tilt(z)));
  }

 private:
  struct KeyQuery {
    Matrix K, Q;
    double scale;
  };

  Attention(Matrix U, Matrix V, std::optional<KeyQuery> kq);

  [[nodiscard]] const KeyQuery& kq() const;
  void check_measure(Index measure_dim) const;
  void check_query(const VectorView& z) const;
  // V'g [d].
  [[nodiscard]] Vector functional(const VectorView& g) const;
  [[nodiscard]] AttentionGradients pull_back(const Vector& m, const Vector& c, const VectorView& z,
                                             const VectorView& g) const;
  // [r, k*n] with column i*n + j = left(:,i) right(j).
  static Matrix outer_columns(const Matrix& left, const VectorView& right);

  Matrix U_;
  Matrix V_;
  std::optional<KeyQuery> kq_;
};

}  // namespace esscher
