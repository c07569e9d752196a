#include "esscher/training/layer_map.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/svd.h"

namespace esscher {
namespace {

Vector flat(const Matrix& m) { return Eigen::Map<const Vector>(m.data(), m.size()); }

// M = left' right with as many rows in each, by singular values: K K' = Q Q'.
std::pair<Matrix, Matrix> balanced(const Matrix& M, Index rows, const char* what) {
  const Svd system = svd(M);
  const Index most = system.s.size(), rank = std::min(rows, most);
  if (rank < most && system.s(rank) > 1e-12 * system.s(0)) {
    throw_argument("layer", what, std::to_string(rows), "at least the rank of U");
  }
  const Vector root = system.s.head(rank).cwiseSqrt();
  Matrix left = Matrix::Zero(rows, M.rows()), right = Matrix::Zero(rows, M.cols());
  left.topRows(rank) = root.asDiagonal() * system.U.leftCols(rank).transpose();
  right.topRows(rank) = root.asDiagonal() * system.V.leftCols(rank).transpose();
  return {left, right};
}

}  // namespace

// The factors of one head; O is empty in KQV.
struct LayerMap::Head {
  Matrix K, Q, V, O;
};

LayerMap::LayerMap(FamilyMap family) : family_(std::move(family)) {
  zero_ = family_.layer(Vector::Zero(family_.size()));
}

LayerMap::LayerMap(LayerFactors factors, const ContextTask& task,
                   const std::vector<ModelKind>& kinds)
    : family_(LayerFamily::full, task, kinds), factors_(factors) {
  if (factors_.space == ParameterSpace::block) {
    throw_argument("layer", "parametrisation", "block", "UV, KQV or KQVO");
  }
  const Index D = task.token_dim;
  if (factors_.key_dim == 0) factors_.key_dim = D;
  zero_ = family_.layer(Vector::Zero(family_.size()));
  query_ = task.out_dim < D ? D - 1 : D;
}

Index LayerMap::size_of_head() const {
  const Index D = zero_.token_dim(), m = zero_.out_dim();
  const Index values = factors_.space == ParameterSpace::KQVO ? D * D + m * D : m * D;
  return factors_.key_dim * (D + query_) + values;
}

Index LayerMap::size() const {
  if (!factors_.is_factored()) return family_.size();
  return zero_.out_dim() * query_ + static_cast<Index>(zero_.heads.size()) * size_of_head();
}

LayerMap::Head LayerMap::head(const VectorView& theta, Index h) const {
  const Index D = zero_.token_dim(), m = zero_.out_dim(), k = factors_.key_dim;
  const double* at = theta.data() + m * query_ + h * size_of_head();
  const auto take = [&](Index rows, Index cols) {
    const Matrix out = Eigen::Map<const Matrix>(at, rows, cols);
    at += rows * cols;
    return out;
  };
  Head out;
  out.K = take(k, D);
  out.Q = take(k, query_);
  out.V = take(factors_.space == ParameterSpace::KQVO ? D : m, D);
  if (factors_.space == ParameterSpace::KQVO) out.O = take(m, D);
  return out;
}

void LayerMap::put(const Head& head, Index h, Vector& theta) const {
  Index at = zero_.out_dim() * query_ + h * size_of_head();
  for (const Matrix* block : {&head.K, &head.Q, &head.V, &head.O}) {
    theta.segment(at, block->size()) = flat(*block);
    at += block->size();
  }
}

Layer LayerMap::layer(const VectorView& theta) const {
  check_dimension("layer", "theta", theta.size(), size());
  if (!factors_.is_factored()) return family_.layer(theta);
  Layer out = zero_;
  out.W.leftCols(query_) = Eigen::Map<const Matrix>(theta.data(), out.out_dim(), query_);
  for (std::size_t h = 0; h < out.heads.size(); ++h) {
    const Head own = head(theta, static_cast<Index>(h));
    out.heads[h].U.leftCols(query_) = factors_.score_scale * own.K.transpose() * own.Q;
    out.heads[h].V = own.O.size() > 0 ? Matrix(own.O * own.V) : own.V;
  }
  return out;
}

Vector LayerMap::pull_back(const VectorView& theta, const Layer& gradient) const {
  if (!factors_.is_factored()) return family_.pull_back(gradient);
  Vector out(size());
  out.head(zero_.out_dim() * query_) = flat(gradient.W.leftCols(query_));
  for (std::size_t h = 0; h < zero_.heads.size(); ++h) {
    const auto at = static_cast<Index>(h);
    const Head own = head(theta, at);
    const Matrix U = factors_.score_scale * gradient.heads[h].U.leftCols(query_);
    const Matrix& V = gradient.heads[h].V;
    Head slope{.K = own.Q * U.transpose(), .Q = own.K * U, .V = V, .O = {}};
    if (own.O.size() > 0) {
      slope.V = own.O.transpose() * V;
      slope.O = V * own.V.transpose();
    }
    put(slope, at, out);
  }
  return out;
}

Vector LayerMap::coordinates(const Layer& layer) const {
  const Vector phi = family_.coordinates(layer);  // names what does not fit
  if (!factors_.is_factored()) return phi;
  Vector out(size());
  out.head(zero_.out_dim() * query_) = flat(layer.W.leftCols(query_));
  for (std::size_t h = 0; h < zero_.heads.size(); ++h) {
    Head own;
    std::tie(own.K, own.Q) = balanced(layer.heads[h].U.leftCols(query_) / factors_.score_scale,
                                      factors_.key_dim, "key_dim");
    own.V = layer.heads[h].V;
    if (factors_.space == ParameterSpace::KQVO) {
      auto [Ot, V] = balanced(own.V, zero_.token_dim(), "rows of V");
      own.O = Ot.transpose();
      own.V = V;
    }
    put(own, static_cast<Index>(h), out);
  }
  return out;
}

Layer LayerMap::nearest(Layer layer) const {
  if (!factors_.is_factored()) return layer;
  for (LayerHead& head : layer.heads) {
    Svd system = svd(head.U);
    const Index rank = std::min(factors_.key_dim, system.s.size());
    head.U = system.U.leftCols(rank) * system.s.head(rank).asDiagonal() *
             system.V.leftCols(rank).transpose();
  }
  return layer;
}

Vector LayerMap::conserved(const VectorView& theta) const {
  if (!factors_.is_factored()) return family_.balances(theta);
  std::vector<double> out;
  const auto add = [&](const Matrix& M) { out.insert(out.end(), M.data(), M.data() + M.size()); };
  for (std::size_t h = 0; h < zero_.heads.size(); ++h) {
    const Head own = head(theta, static_cast<Index>(h));
    const bool has_O = own.O.size() > 0;
    add(own.K * own.K.transpose() - own.Q * own.Q.transpose());
    if (has_O) add(own.V * own.V.transpose() - own.O.transpose() * own.O);
    if (zero_.heads[h].kind == ModelKind::linear) {
      out.push_back(own.K.squaredNorm() - (has_O ? own.O : own.V).squaredNorm());
    }
  }
  return Vector::Map(out.data(), static_cast<Index>(out.size()));
}

Vector LayerMap::torch_start(const Stream& stream) const {
  const Index D = zero_.token_dim();
  const double bound = 1 / std::sqrt(static_cast<double>(D));
  const double of_O = bound / std::sqrt(static_cast<double>(zero_.heads.size()));
  std::uint64_t next = 0;
  const auto fill = [&](Matrix& M, double c) {
    for (double& x : M.reshaped<Eigen::RowMajor>()) x = c * (2 * stream.uniform(next++) - 1);
  };
  if (!factors_.is_factored()) {
    Layer start = zero_;
    for (LayerHead& head : start.heads) {
      fill(head.U, bound);
      fill(head.V, bound);
    }
    return family_.coordinates(start);
  }
  Vector theta = Vector::Zero(size());
  for (std::size_t h = 0; h < zero_.heads.size(); ++h) {
    Head own = head(theta, static_cast<Index>(h));
    for (Matrix* block : {&own.K, &own.Q, &own.V}) fill(*block, bound);
    fill(own.O, of_O);
    put(own, static_cast<Index>(h), theta);
  }
  return theta;
}

}  // namespace esscher
