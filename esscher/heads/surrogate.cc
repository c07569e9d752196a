#include "esscher/heads/surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// As in mixture_fit.cc: smaller responsibilities do not change a sum.
constexpr double kNegligible = 1e-9;

// Weights of a mixture from unnormalised logarithms.
Vector softmax(const Vector& logs) {
  const Vector shifted = (logs.array() - logs.maxCoeff()).exp();
  return shifted / shifted.sum();
}

double safe_log(double x) { return x > 0 ? std::log(x) : -std::numeric_limits<double>::infinity(); }

}  // namespace

Vector Surrogate::operator()(const VectorView& a) const {
  Vector logs(size());
  for (Index c = 0; c < size(); ++c) {
    logs(c) = safe_log(weights(c)) + mean_k.row(c).dot(a) + 0.5 * a.dot(cov_k[c] * a);
  }
  const Vector r = softmax(logs);
  Vector out = Vector::Zero(mean_v.cols());
  for (Index c = 0; c < size(); ++c) {
    out += r(c) * (mean_v.row(c).transpose() + cov_vk[c] * a);
  }
  return out;
}

PromptMoments::PromptMoments(Index components, Vector origin_k, Vector origin_v)
    : origin_k_(std::move(origin_k)), origin_v_(std::move(origin_v)), components_(components) {
  const Index dk = origin_k_.size();
  const Index dv = origin_v_.size();
  for (Component& component : components_) {
    component.k = Vector::Zero(dk);
    component.v = Vector::Zero(dv);
    component.kk = Matrix::Zero(dk, dk);
    component.kv = Matrix::Zero(dk, dv);
  }
}

void PromptMoments::add(const MatrixView& keys, const MatrixView& values,
                        const MatrixView& responsibilities) {
  const Index n = keys.rows();
  if (n == 0) return;  // an empty matrix has no address to count from
  count_ += static_cast<double>(n);
  Matrix k_rows(n, keys.cols());
  Matrix v_rows(n, values.cols());
  for (std::size_t c = 0; c < components_.size(); ++c) {
    Component& component = components_[c];
    const auto r = responsibilities.col(static_cast<Index>(c));
    Index used = 0;
    for (Index l = 0; l < n; ++l) {
      if (r(l) < kNegligible) continue;
      const double root = std::sqrt(r(l));
      k_rows.row(used) = root * keys.row(l);
      v_rows.row(used++) = root * values.row(l);
      component.weight += r(l);
      component.k += r(l) * keys.row(l).transpose();
      component.v += r(l) * values.row(l).transpose();
    }
    const auto k_used = k_rows.topRows(used);
    const auto v_used = v_rows.topRows(used);
    component.vv += v_used.squaredNorm();
    add_gram(k_used, component.kk);
    add_gram(k_used, v_used, component.kv);
  }
}

void PromptMoments::add(const MatrixView& keys, const MatrixView& values) {
  const Index n = keys.rows();
  if (n == 0) return;
  Component& component = components_.front();
  count_ += static_cast<double>(n);
  component.weight += static_cast<double>(n);
  for (Index l = 0; l < n; ++l) {
    component.k += keys.row(l).transpose();
    component.v += values.row(l).transpose();
    component.vv += values.row(l).squaredNorm();
  }
  add_gram(keys, component.kk);
  add_gram(keys, values, component.kv);
}

void PromptMoments::subtract(const PromptMoments& part) {
  count_ -= part.count_;
  for (std::size_t c = 0; c < components_.size(); ++c) {
    Component& mine = components_[c];
    const Component& other = part.components_[c];
    mine.weight -= other.weight;
    mine.vv -= other.vv;
    mine.k -= other.k;
    mine.v -= other.v;
    mine.kk -= other.kk;
    mine.kv -= other.kv;
  }
}

std::vector<ScoreMixture> PromptMoments::scores(const MatrixView& A, double floor) const {
  const auto k = static_cast<Index>(components_.size());
  const Index dv = origin_v_.size();
  const ScoreMixture empty{Vector::Zero(k),     Vector::Zero(k),     Vector::Zero(k),
                           Matrix::Zero(k, dv), Matrix::Zero(k, dv), Vector::Zero(k)};
  std::vector<ScoreMixture> out(static_cast<std::size_t>(A.rows()), empty);
  for (Index c = 0; c < k; ++c) {
    const Component& sums = components_[c];
    const double w = sums.weight;
    if (!(w > 0)) continue;
    const Vector mean = sums.v / w;
    const double variance = std::max(0.0, sums.vv / w - mean.squaredNorm());
    Matrix kk_a = Matrix::Zero(A.rows(), A.cols());
    Matrix vk_a = Matrix::Zero(A.rows(), dv);
    add_product(A, sums.kk, kk_a);
    add_product(A, sums.kv, vk_a);
    for (Index i = 0; i < A.rows(); ++i) {
      ScoreMixture& query = out[i];
      const double mu = A.row(i).dot(sums.k) / w;
      query.weights[c] = w / count_;
      query.mu[c] = mu;
      query.tau2[c] =
          std::max(0.0, A.row(i).dot(kk_a.row(i)) / w - mu * mu) + floor * A.row(i).squaredNorm();
      query.mean.row(c) = mean;
      query.cross.row(c) = vk_a.row(i) / w - mu * mean.transpose();
      query.variance[c] = variance;
    }
  }
  return out;
}

Surrogate PromptMoments::surrogate(double floor) const {
  const auto k = static_cast<Index>(components_.size());
  const Index dk = origin_k_.size();
  const Index dv = origin_v_.size();
  Surrogate out{.weights = Vector::Zero(k),
                .mean_k = Matrix::Zero(k, dk),
                .mean_v = Matrix::Zero(k, dv),
                .cov_k = std::vector<Matrix>(components_.size(), floor * Matrix::Identity(dk, dk)),
                .cov_vk = std::vector<Matrix>(components_.size(), Matrix::Zero(dv, dk)),
                .trace_v = Vector::Zero(k)};
  for (Index c = 0; c < k; ++c) {
    const Component& sums = components_[c];
    const double w = sums.weight;
    out.weights(c) = w / count_;
    out.mean_k.row(c) = origin_k_.transpose();
    out.mean_v.row(c) = origin_v_.transpose();
    if (!(w > 0)) continue;
    const Vector mean_k = sums.k / w;
    const Vector mean_v = sums.v / w;
    out.mean_k.row(c) += mean_k.transpose();
    out.mean_v.row(c) += mean_v.transpose();
    out.cov_k[c] += sums.kk / w - mean_k * mean_k.transpose();
    out.cov_vk[c] = sums.kv.transpose() / w - mean_v * mean_k.transpose();
    out.trace_v(c) = std::max(0.0, sums.vv / w - mean_v.squaredNorm());
  }
  return out;
}

Vector PromptMoments::mean_k() const {
  Vector sum = Vector::Zero(origin_k_.size());
  for (const Component& component : components_) sum += component.k;
  return origin_k_ + sum / count_;
}

Vector PromptMoments::mean_v() const {
  Vector sum = Vector::Zero(origin_v_.size());
  for (const Component& component : components_) sum += component.v;
  return origin_v_ + sum / count_;
}

double PromptMoments::value_variance() const {
  double squares = 0;
  for (const Component& component : components_) squares += component.vv;
  return std::max(0.0, squares / count_ - (mean_v() - origin_v_).squaredNorm());
}

}  // namespace esscher
