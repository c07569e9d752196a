#include "esscher/measure/categorical.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/empirical.h"
#include "esscher/measure/sub_gaussian.h"

namespace esscher {

Categorical::Categorical(const VectorView& probs)
    : p_(normalised_weights("categorical", "probs", probs)) {}

DiscreteTilt Categorical::tilt(const VectorView& a) const {
  check_tilt("categorical", a, dim());
  const double scale = power_of_two_scale(a);
  const Vector t = a / scale;
  // The mean score is taken relative to t(0), so that equal scores give exactly 0.
  const Vector offset = t.array() - t(0);
  return discrete_tilt(p_, (offset.array() - p_.dot(offset)).matrix(), scale);
}

double Categorical::log_mgf(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  return log_mgf_from(tilted, p_.dot(a), a(tilted.top));
}

double Categorical::centred_log_mgf(const VectorView& a) const { return tilt(a).excess; }

Vector Categorical::tilted_mean(const VectorView& a) const { return tilt(a).r; }

Vector Categorical::mean_shift(const VectorView& a) const { return tilt(a).dr; }

Matrix Categorical::tilted_cov(const VectorView& a) const {
  const DiscreteTilt tilted = tilt(a);
  const Vector& r = tilted.r;
  Matrix cov = -r * r.transpose();
  // In r_i (1 - r_i) the factor 1 - r_i is the sum of the others, so that nothing cancels when r_i
  // is close to 1.
  double others = 0;
  for (Index i = 0; i < dim(); ++i) {
    if (i != tilted.top) others += r(i);
  }
  for (Index i = 0; i < dim(); ++i) {
    cov(i, i) = r(i) * (i == tilted.top ? others : 1 - r(i));
  }
  return cov;
}

Vector Categorical::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("categorical", "v", v.size(), dim());
  const DiscreteTilt tilted = tilt(a);
  const Vector w = v.array() - v(tilted.top);
  return tilted.r.cwiseProduct((w.array() - tilted.r.dot(w)).matrix());
}

HigherCumulants Categorical::higher_cumulants(const VectorView& a, const MatrixView& W,
                                              const MatrixView& Y) const {
  const DiscreteTilt tilted = tilt(a);
  return discrete_cumulants(tilted_deviations(Matrix::Identity(dim(), dim()), tilted), tilted.r, W,
                            Y);
}

Empirical Categorical::sample(const Stream& stream, Index n) const {
  check_sample_size("categorical", n);
  const Vector cumulative = cumulative_sums(p_);
  Matrix tokens = Matrix::Zero(n, dim());
  for (Index l = 0; l < n; ++l) tokens(l, select_atom(cumulative, stream.uniform(l))) = 1.0;
  return Empirical(std::move(tokens));
}

double Categorical::sub_gaussian() const {
  const Index atoms = (p_.array() > 0).count();
  if (atoms == 1) return 0.0;
  if (atoms > 2) return numeric_sub_gaussian(*this);
  // (p_1 - p_2)/log(p_1/p_2) = x/(2 atanh x) with x = p_1 - p_2 >= 0.
  const double high = p_.maxCoeff();
  const double low = (p_.array() > 0).select(p_, high).minCoeff();
  const double x = high - low;
  const double ratio = x < 1e-5 ? 1 - x * x / 3 : x / (0.5 * std::log(high / low));
  return std::sqrt(0.5 * ratio);
}

}  // namespace esscher
