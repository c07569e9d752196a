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
    component.vk = Matrix::Zero(dv, dk);
  }
}

void PromptMoments::add(const MatrixView& keys, const MatrixView& values,
                        const MatrixView& responsibilities) {
  const Index n = keys.rows();
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
    add_gram(v_used, k_used, component.vk);
  }
}

Vector PromptMoments::output(const VectorView& a, double floor) const {
  const auto k = static_cast<Index>(components_.size());
  Vector logs(k);
  std::vector<Vector> outputs(components_.size());
  for (Index c = 0; c < k; ++c) {
    const Component& sums = components_[c];
    const double w = sums.weight;
    if (!(w > 0)) {
      logs(c) = -std::numeric_limits<double>::infinity();
      outputs[c] = Vector::Zero(origin_v_.size());
      continue;
    }
    const double mean_score = sums.k.dot(a) / w;
    const double variance = a.dot(sums.kk * a) / w - mean_score * mean_score;
    logs(c) = std::log(w) + mean_score + 0.5 * (std::max(variance, 0.0) + floor * a.squaredNorm());
    const Vector mean = sums.v / w;
    outputs[c] = mean + sums.vk * a / w - mean * mean_score;
  }
  const Vector r = softmax(logs);
  Vector out = origin_v_;
  for (Index c = 0; c < k; ++c) out += r(c) * outputs[c];
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
    out.cov_vk[c] = sums.vk / w - mean_v * mean_k.transpose();
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

GaussianMixtureLaw token_law(const Surrogate& surrogate) {
  const Index dk = surrogate.mean_k.cols();
  const Index dv = surrogate.mean_v.cols();
  GaussianMixtureLaw law{.weights = surrogate.weights, .components = {}};
  for (Index c = 0; c < surrogate.size(); ++c) {
    const Matrix& Ckk = surrogate.cov_k[c];
    const Matrix& Cvk = surrogate.cov_vk[c];
    const Matrix explained = Cvk * Ckk.ldlt().solve(Cvk.transpose());
    const double rest = std::max(0.0, surrogate.trace_v(c) - explained.trace());
    GaussianLaw component{.mean = Vector(dk + dv), .cov = Matrix(dk + dv, dk + dv)};
    component.mean << surrogate.mean_k.row(c).transpose(), surrogate.mean_v.row(c).transpose();
    component.cov.topLeftCorner(dk, dk) = Ckk;
    component.cov.bottomLeftCorner(dv, dk) = Cvk;
    component.cov.topRightCorner(dk, dv) = Cvk.transpose();
    component.cov.bottomRightCorner(dv, dv) =
        0.5 * (explained + explained.transpose()) +
        rest / static_cast<double>(dv) * Matrix::Identity(dv, dv);
    law.components.push_back(std::move(component));
  }
  return law;
}

}  // namespace esscher
