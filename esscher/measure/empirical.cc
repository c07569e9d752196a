#include "esscher/measure/empirical.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {
namespace {

// The rounding of sum + x, where next is the rounded sum.
double lost_bits(double sum, double x, double next) {
  return std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
}

// Means by compensated sums. Tokens that cancel give exactly 0, which Lambda needs to be accurate
// at tiny tilts. Equal weights need no products whose rounding counts: tokens are scaled by a power
// of two, so that their sum cannot overflow.
Vector compensated_mean(const Matrix& tokens) {
  const Index d = tokens.cols();
  const auto n = static_cast<double>(tokens.rows());
  const double scale = std::exp2(-std::ceil(std::log2(n)));
  Vector sum = Vector::Zero(d);
  Vector lost = Vector::Zero(d);
  for (Index l = 0; l < tokens.rows(); ++l) {
    for (Index i = 0; i < d; ++i) {
      const double x = scale * tokens(l, i);
      const double next = sum(i) + x;
      lost(i) += lost_bits(sum(i), x, next);
      sum(i) = next;
    }
  }
  return (sum + lost) / (scale * n);
}

Vector compensated_mean(const Matrix& tokens, const Vector& weights) {
  const Index d = tokens.cols();
  Vector sum = Vector::Zero(d);
  Vector lost = Vector::Zero(d);
  for (Index l = 0; l < tokens.rows(); ++l) {
    for (Index i = 0; i < d; ++i) {
      const double x = weights(l) * tokens(l, i);
      const double next = sum(i) + x;
      lost(i) += std::fma(weights(l), tokens(l, i), -x);  // rounding of the product
      lost(i) += lost_bits(sum(i), x, next);
      sum(i) = next;
    }
  }
  return sum + lost;
}

Vector equal_weights(Index n) { return Vector::Constant(n, 1.0 / static_cast<double>(n)); }

void check_tokens(const Matrix& tokens) {
  if (tokens.rows() < 1) throw_argument("empirical", "tokens", "empty", "at least one token");
  checked_dim("empirical", tokens.cols());
  check_finite("empirical", "tokens", tokens);
}

}  // namespace

Empirical::Empirical(Matrix tokens)
    : tokens_((check_tokens(tokens), std::make_shared<const Matrix>(std::move(tokens)))),
      weights_(equal_weights(tokens_->rows())),
      mean_(compensated_mean(*tokens_)) {}

Empirical::Empirical(Matrix tokens, const VectorView& weights)
    : tokens_((check_tokens(tokens), std::make_shared<const Matrix>(std::move(tokens)))) {
  check_dimension("empirical", "weights", weights.size(), tokens_->rows());
  weights_ = normalised_weights("empirical", "weights", weights);
  mean_ = compensated_mean(*tokens_, weights_);
}

DiscreteTilt Empirical::tilt(const VectorView& a) const {
  check_tilt("empirical", a, dim());
  const double scale = power_of_two_scale(a);
  const Vector direction = a / scale;
  Vector t(size());
  for (Index l = 0; l < size(); ++l) {
    t(l) = (tokens_->row(l).transpose() - mean_).dot(direction);
  }
  return discrete_tilt(weights_, t, scale);
}

Matrix Empirical::second_moment() const {
  return tokens_->transpose() * weights_.asDiagonal() * *tokens_;
}

Vector Empirical::second_moment_times(const VectorView& v) const {
  check_dimension("empirical", "v", v.size(), dim());
  return tokens_->transpose() * weights_.cwiseProduct(*tokens_ * v);
}

double Empirical::log_mgf(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  return log_mgf_from(tilted, mean_.dot(a), tokens_->row(tilted.top).dot(a));
}

double Empirical::centred_log_mgf(const VectorView& a) const { return tilt(a).excess; }

Vector Empirical::tilted_mean(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  if (!tilted.small) return tokens_->transpose() * tilted.r;
  return mean_ + (tokens_->rowwise() - mean_.transpose()).transpose() * tilted.dr;
}

Vector Empirical::mean_shift(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  const Vector& change = tilted.small ? tilted.dr : tilted.r;
  return (tokens_->rowwise() - mean_.transpose()).transpose() * change;
}

Matrix Empirical::tilted_cov(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  Matrix deviations = tilted_deviations(*tokens_, tilted);
  deviations.array().colwise() *= tilted.r.array().sqrt();
  const Matrix cov = deviations.transpose() * deviations;
  return 0.5 * (cov + cov.transpose());
}

Vector Empirical::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("empirical", "v", v.size(), dim());
  const DiscreteTilt tilted = tilt(a);
  const Vector top = tokens_->row(tilted.top).transpose();
  Vector shift = Vector::Zero(dim());
  for (Index l = 0; l < size(); ++l) {
    shift += tilted.r(l) * (tokens_->row(l).transpose() - top);
  }
  Vector product = Vector::Zero(dim());
  for (Index l = 0; l < size(); ++l) {
    const Vector deviation = (tokens_->row(l).transpose() - top) - shift;
    product += (tilted.r(l) * deviation.dot(v)) * deviation;
  }
  return product;
}

HigherCumulants Empirical::higher_cumulants(const VectorView& a, const MatrixView& W,
                                            const MatrixView& Y) const {
  const DiscreteTilt tilted = tilt(a);
  return discrete_cumulants(tilted_deviations(*tokens_, tilted), tilted.r, W, Y);
}

Empirical Empirical::sample(const Stream& stream, Index n) const {
  check_sample_size("empirical", n);
  const Vector cumulative = cumulative_sums(weights_);
  Matrix tokens(n, dim());
  for (Index l = 0; l < n; ++l) {
    tokens.row(l) = tokens_->row(select_atom(cumulative, stream.uniform(l)));
  }
  return Empirical(std::move(tokens));
}

double Empirical::sub_gaussian() const { return numeric_sub_gaussian(*this); }

Vector Empirical::tilted_weights(const VectorView& a) const { return tilt(a).r; }

double Empirical::effective_sample_size(const VectorView& a) const {
  return 1.0 / tilt(a).r.squaredNorm();
}

}  // namespace esscher
