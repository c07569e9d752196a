#include "esscher/training/parametrisation.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/svd.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// From this dimension on products of matrices are worth a kernel (simd/gemm.h).
constexpr Index kLargeDim = 12;

using Block = Eigen::Map<const Matrix>;
using MutableBlock = Eigen::Map<Matrix>;

Index check_theta(const Parametrisation& p, const VectorView& theta) {
  check_dimension("Parametrisation", "theta", theta.size(), p.size());
  return p.token_dim;
}

Vector flat(const Matrix& m) { return Eigen::Map<const Vector>(m.data(), m.size()); }

}  // namespace

Index Parametrisation::size() const {
  const Index D = token_dim, k = key_dim;
  switch (space) {
    case ParameterSpace::block: return (D - 1) * (D - 1) + 1;
    case ParameterSpace::UV: return D * D + D;
    case ParameterSpace::KQV: return 2 * k * D + D;
    case ParameterSpace::KQVO: return 2 * k * D + D * D + D;
  }
  return 0;
}

Readout Parametrisation::readout(const VectorView& theta) const {
  const Index D = check_theta(*this, theta), k = key_dim;
  const double* data = theta.data();
  Readout out = Readout::zero(D);
  if (space == ParameterSpace::block) {
    out.U.topLeftCorner(D - 1, D - 1) = Block(data, D - 1, D - 1);
    out.r(D - 1) = theta(theta.size() - 1);
    return out;
  }
  if (space == ParameterSpace::UV) {
    out.U = Block(data, D, D);
    out.r = theta.tail(D);
    return out;
  }
  const Block K(data, k, D), Q(data + k * D, k, D);
  if (D < kLargeDim) {
    out.U.noalias() = score_scale * K.transpose() * Q;
  } else {
    add_gram(K, Q, out.U);
    out.U *= score_scale;
  }
  if (space == ParameterSpace::KQV) {
    out.r = theta.tail(D);
  } else {
    out.r.noalias() = Block(data + 2 * k * D, D, D).transpose() * theta.tail(D);
  }
  return out;
}

Vector Parametrisation::pull_back(const VectorView& theta, const Readout& gradient) const {
  const Index D = check_theta(*this, theta), k = key_dim;
  Vector out(size());
  if (space == ParameterSpace::block) {
    MutableBlock(out.data(), D - 1, D - 1) = gradient.U.topLeftCorner(D - 1, D - 1);
    out(out.size() - 1) = gradient.r(D - 1);
    return out;
  }
  if (space == ParameterSpace::UV) {
    MutableBlock(out.data(), D, D) = gradient.U;
    out.tail(D) = gradient.r;
    return out;
  }
  const Block K(theta.data(), k, D), Q(theta.data() + k * D, k, D);
  MutableBlock grad_K(out.data(), k, D), grad_Q(out.data() + k * D, k, D);
  if (D < kLargeDim) {
    grad_K.noalias() = score_scale * Q * gradient.U.transpose();
    grad_Q.noalias() = score_scale * K * gradient.U;
  } else {
    out.head(2 * k * D).setZero();
    add_product(Q, Matrix(gradient.U.transpose()), grad_K);
    add_product(K, gradient.U, grad_Q);
    out.head(2 * k * D) *= score_scale;
  }
  if (space == ParameterSpace::KQV) {
    out.tail(D) = gradient.r;
  } else {
    const Block V(theta.data() + 2 * k * D, D, D);
    MutableBlock(out.data() + 2 * k * D, D, D).noalias() = theta.tail(D) * gradient.r.transpose();
    out.tail(D).noalias() = V * gradient.r;
  }
  return out;
}

Vector Parametrisation::conserved(const VectorView& theta) const {
  const Index D = check_theta(*this, theta), k = key_dim;
  if (!is_factored()) return Vector();
  const Block K(theta.data(), k, D), Q(theta.data() + k * D, k, D);
  const Matrix kq = K * K.transpose() - Q * Q.transpose();
  if (space == ParameterSpace::KQV) return flat(kq);
  const Block V(theta.data() + 2 * k * D, D, D);
  const Vector o = theta.tail(D);
  const Matrix vo = V * V.transpose() - o * o.transpose();
  Vector out(kq.size() + vo.size());
  out << flat(kq), flat(vo);
  return out;
}

double Parametrisation::scale_balance(const VectorView& theta) const {
  const Index D = check_theta(*this, theta);
  const Index left = is_factored()                    ? key_dim * D
                     : space == ParameterSpace::block ? (D - 1) * (D - 1)
                                                      : D * D;
  const Index right = space == ParameterSpace::block ? 1 : D;
  return theta.head(left).squaredNorm() - theta.tail(right).squaredNorm();
}

Vector parameters_of(const Parametrisation& p, const Readout& readout) {
  const Index D = p.token_dim, k = p.key_dim;
  check_dimension("parameters_of", "readout", readout.dim(), D);
  Vector theta = Vector::Zero(p.size());
  if (p.space == ParameterSpace::block) {
    Readout rest = readout;
    rest.U.topLeftCorner(D - 1, D - 1).setZero();
    rest.r(D - 1) = 0;
    if (rest.norm() != 0) {
      throw_argument("parameters_of", "readout", "a general (U, r)",
                     "U = [[A,0],[0,0]] and r = (0,b) in the block space");
    }
    MutableBlock(theta.data(), D - 1, D - 1) = readout.U.topLeftCorner(D - 1, D - 1);
    theta(theta.size() - 1) = readout.r(D - 1);
    return theta;
  }
  if (p.space == ParameterSpace::UV) {
    MutableBlock(theta.data(), D, D) = readout.U;
    theta.tail(D) = readout.r;
    return theta;
  }
  // U/scale = X diag(s) Y', K = s^{1/2} X', Q = s^{1/2} Y'.
  const Svd system = svd(readout.U / p.score_scale);
  const Index rank = std::min(k, D);
  if (rank < D && system.s(rank) > 1e-12 * system.s(0)) {
    throw_argument("parameters_of", "key_dim", std::to_string(k), "at least the rank of U");
  }
  const Vector root = system.s.head(rank).cwiseSqrt();
  MutableBlock K(theta.data(), k, D), Q(theta.data() + k * D, k, D);
  K.topRows(rank) = root.asDiagonal() * system.U.leftCols(rank).transpose();
  Q.topRows(rank) = root.asDiagonal() * system.V.leftCols(rank).transpose();
  if (p.space == ParameterSpace::KQV) {
    theta.tail(D) = readout.r;
    return theta;
  }
  // r = V'O with V = u r'/sqrt|r|, O = sqrt|r| u for the unit vector u = e_D: V V' = O O'.
  const double norm = readout.r.norm();
  if (norm > 0) {
    MutableBlock(theta.data() + 2 * k * D, D, D).row(D - 1) =
        readout.r.transpose() / std::sqrt(norm);
    theta(theta.size() - 1) = std::sqrt(norm);
  }
  return theta;
}

}  // namespace esscher
