#include "esscher/measure/mixture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/discrete_tilt.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {
namespace {

// Components whose Lambda overflows (|a| ~ 1e154 and more) are compared as equal, to avoid inf -
// inf.
constexpr double kLargestExcess = 1e300;

}  // namespace

// mean_excess = sum p_k D_k, and `discrete` is the tilt of the centred scores x_k - mean_excess.
struct Mixture::Tilt {
  double mean_excess = 0;
  DiscreteTilt discrete;
};

Mixture::Mixture(const VectorView& weights, std::vector<AnyMeasure> components)
    : components_(std::move(components)) {
  if (components_.empty()) throw_argument("mixture", "components", "empty", "at least one measure");
  const auto k = static_cast<Index>(components_.size());
  check_dimension("mixture", "weights", weights.size(), k);
  weights_ = normalised_weights("mixture", "weights", weights);
  for (const AnyMeasure& part : components_) {
    check_dimension("mixture", "component", part.dim(), dim());
  }
  Matrix means(k, dim());
  for (Index i = 0; i < k; ++i) means.row(i) = components_[i].mean().transpose();
  mean_ = Empirical(means, weights_).mean();
  offsets_ = means.rowwise() - mean_.transpose();
}

Mixture::Tilt Mixture::tilt(const VectorView& a) const {
  check_tilt("mixture", a, dim());
  const Index k = weights_.size();
  Vector excess(k);
  for (Index i = 0; i < k; ++i) {
    excess(i) = std::min(components_[i].centred_log_mgf(a), kLargestExcess);
  }
  Tilt out;
  out.mean_excess = weights_.dot(excess);
  // Differences of means come first, so that equal components have scores of exactly 0.
  Vector x = offsets_ * a;
  for (Index i = 0; i < k; ++i) x(i) += weights_.dot((excess(i) - excess.array()).matrix());
  out.discrete = discrete_tilt(weights_, x, 1.0);
  return out;
}

Matrix Mixture::second_moment() const {
  Matrix out = Matrix::Zero(dim(), dim());
  for (Index i = 0; i < weights_.size(); ++i) out += weights_(i) * components_[i].second_moment();
  return out;
}

double Mixture::log_mgf(const VectorView& a) const {
  const Tilt tilted = tilt(a);
  const double top_score = components_[tilted.discrete.top].log_mgf(a);
  if (std::isinf(top_score)) return top_score;
  return log_mgf_from(tilted.discrete, mean_.dot(a) + tilted.mean_excess, top_score);
}

double Mixture::centred_log_mgf(const VectorView& a) const {
  const Tilt tilted = tilt(a);
  return tilted.mean_excess + tilted.discrete.excess;
}

Vector Mixture::tilted_mean(const VectorView& a) const {
  const Tilt tilted = tilt(a);
  if (tilted.discrete.small) return mean_ + mean_shift(a);
  Vector out = Vector::Zero(dim());
  for (Index i = 0; i < weights_.size(); ++i) {
    if (tilted.discrete.r(i) > 0) out += tilted.discrete.r(i) * components_[i].tilted_mean(a);
  }
  return out;
}

// sum r_k (mean_k - mean + shift_k) = sum dr_k (mean_k - mean) + sum r_k shift_k.
Vector Mixture::mean_shift(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a).discrete;
  Vector out = offsets_.transpose() * (tilted.small ? tilted.dr : tilted.r);
  for (Index i = 0; i < weights_.size(); ++i) {
    if (tilted.r(i) > 0) out += tilted.r(i) * components_[i].mean_shift(a);
  }
  return out;
}

// m_k(a) - m_a [k,d], computed relative to the top component, so that a dominant component loses no
// digits.
Matrix Mixture::tilted_offsets(const Tilt& tilted, const VectorView& a) const {
  const Index k = weights_.size();
  Matrix out = offsets_;
  for (Index i = 0; i < k; ++i) {
    if (weights_(i) > 0) out.row(i) += components_[i].mean_shift(a).transpose();
  }
  out.rowwise() -= out.row(tilted.discrete.top).eval();
  const Vector shift = out.transpose() * tilted.discrete.r;
  out.rowwise() -= shift.transpose();
  return out;
}

Matrix Mixture::tilted_cov(const VectorView& a) const {
  const Tilt tilted = tilt(a);
  const Vector& r = tilted.discrete.r;
  const Matrix offsets = tilted_offsets(tilted, a);
  Matrix out = offsets.transpose() * r.asDiagonal() * offsets;
  out = (0.5 * (out + out.transpose())).eval();
  for (Index i = 0; i < r.size(); ++i) {
    if (r(i) > 0) out += r(i) * components_[i].tilted_cov(a);
  }
  return out;
}

Vector Mixture::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("mixture", "v", v.size(), dim());
  const Tilt tilted = tilt(a);
  const Vector& r = tilted.discrete.r;
  const Matrix offsets = tilted_offsets(tilted, a);
  Vector out = offsets.transpose() * r.cwiseProduct(offsets * v);
  for (Index i = 0; i < r.size(); ++i) {
    if (r(i) > 0) out += r(i) * components_[i].tilted_cov_times(a, v);
  }
  return out;
}

// With y_k = x - m_k in component k and o_k = m_k - m_a, third moments about m_a are
//   E (x'Wx) x = sum r_k [ third_k + 2 C_k W o_k + (tr WC_k + o_k'W o_k) o_k ]
// and fourth ones are averages of fourth_moment().
HigherCumulants Mixture::higher_cumulants(const VectorView& a, const MatrixView& W,
                                          const MatrixView& Y) const {
  const Tilt tilted = tilt(a);
  const Matrix offsets = tilted_offsets(tilted, a);
  HigherCumulants out = no_higher_cumulants(dim());
  Matrix cov = Matrix::Zero(dim(), dim());
  for (Index i = 0; i < weights_.size(); ++i) {
    const double r = tilted.discrete.r(i);
    if (!(r > 0)) continue;
    const Vector o = offsets.row(i).transpose();
    const Matrix C = components_[i].tilted_cov(a);
    const HigherCumulants part = components_[i].higher_cumulants(a, W, Y);
    const auto third = [&](const Vector& own, const MatrixView& A) -> Vector {
      const Vector Ao = A * o;
      return own + 2 * (C * Ao) + (A.cwiseProduct(C).sum() + o.dot(Ao)) * o;
    };
    out.third_w += r * third(part.third_w, W);
    out.third_y += r * third(part.third_y, Y);
    out.fourth += r * fourth_moment(part, C, o, W, Y);
    cov += r * (C + o * o.transpose());
  }
  out.fourth -= fourth_moment(no_higher_cumulants(dim()), cov, Vector::Zero(dim()), W, Y);
  return out;
}

Empirical Mixture::sample(const Stream& stream, Index n) const {
  check_sample_size("mixture", n);
  const Vector cumulative = cumulative_sums(weights_);
  const Stream chooser = stream.split(0);
  std::vector<Index> choice(n);
  for (Index l = 0; l < n; ++l) choice[l] = select_atom(cumulative, chooser.uniform(l));
  Matrix tokens(n, dim());
  for (Index i = 0; i < weights_.size(); ++i) {
    if (weights_(i) == 0) continue;
    const Empirical part = components_[i].sample(stream.split(1 + i), n);
    for (Index l = 0; l < n; ++l) {
      if (choice[l] == i) tokens.row(l) = part.tokens().row(l);
    }
  }
  return Empirical(std::move(tokens));
}

double Mixture::sub_gaussian() const {
  for (Index i = 0; i < weights_.size(); ++i) {
    const double sigma = weights_(i) > 0 ? components_[i].sub_gaussian() : 0.0;
    if (std::isinf(sigma)) return sigma;
  }
  return numeric_sub_gaussian(*this);
}

}  // namespace esscher
