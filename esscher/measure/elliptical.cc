#include "esscher/measure/elliptical.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/measure/check.h"
#include "esscher/measure/discrete_tilt.h"
#include "esscher/measure/empirical.h"

namespace esscher {
namespace {

constexpr double kLargestForm = 1e300;  // a'Ga/2 is cut here: the largest w has all the weight
constexpr double kLargestGamma = 200;   // shape * bound that the Gauss rule is meant for

}  // namespace

// Golub and Welsch: nodes and weights of the Gauss rule for the weight x^{shape-1} on [0,1] are the
// eigenvalues of its Jacobi matrix and the squares of the first entries of its eigenvectors. The
// weights are multiplied by e^{-shape w} at w = bound x.
ScaleLaw gamma_scales(double shape, double bound, Index nodes) {
  checked_positive("gamma_scales", "shape", shape);
  checked_positive("gamma_scales", "bound", bound);
  if (shape * bound > kLargestGamma) {
    throw_argument("gamma_scales", "shape * bound", to_text(shape * bound), "at most 200");
  }
  if (nodes < 1 || nodes > 512) {
    throw_argument("gamma_scales", "nodes", std::to_string(nodes), "1 to 512");
  }
  const double b = shape - 1;
  Matrix jacobi = Matrix::Zero(nodes, nodes);
  for (Index n = 0; n < nodes; ++n) {
    const auto k = static_cast<double>(n);
    const double s = 2 * k + b;
    // On [-1,1] the diagonal is b^2 / (s (s + 2)); here it is moved to [0,1].
    const double diagonal = n == 0 ? b / (b + 2) : b * b / (s * (s + 2));
    jacobi(n, n) = 0.5 * (1 + diagonal);
    if (n == 0) continue;
    const double off = n == 1 ? 4 * (1 + b) / ((2 + b) * (2 + b) * (3 + b))
                              : 4 * k * k * (k + b) * (k + b) / (s * s * (s + 1) * (s - 1));
    jacobi(n, n - 1) = jacobi(n - 1, n) = 0.5 * std::sqrt(off);
  }
  const Eigensystem rule = eigensystem(jacobi);
  ScaleLaw out{bound * rule.values.cwiseMax(0.0), rule.vectors.row(0).transpose().cwiseAbs2()};
  out.weights.array() *= (-shape * out.scales.array()).exp();
  out.weights /= out.weights.sum();
  return out;
}

// `discrete` tilts the deviations of W from its mean by q.
struct Elliptical::Tilt {
  Vector Ga;
  double q = 0;
  DiscreteTilt discrete;
  double mean = 0;  // K'

  // Moments of W about K' under the tilted weights.
  [[nodiscard]] double central(const Vector& scales, int power) const {
    return discrete.r.dot((scales.array() - mean).pow(power).matrix());
  }
};

Elliptical::Elliptical(const VectorView& mean, const MatrixView& cov, const ScaleLaw& law)
    : mean_(mean), factor_(psd_factor("elliptical", "cov", cov)), scales_(law.scales) {
  checked_dim("elliptical", cov.rows());
  check_dimension("elliptical", "mean", mean.size(), cov.rows());
  check_finite("elliptical", "mean", mean);
  check_dimension("elliptical", "weights", law.weights.size(), scales_.size());
  for (Index i = 0; i < scales_.size(); ++i) {
    if (scales_(i) >= 0 && std::isfinite(scales_(i))) continue;
    throw_argument("elliptical", "scales[" + std::to_string(i) + "]", to_text(scales_(i)),
                   "a finite number >= 0");
  }
  weights_ = normalised_weights("elliptical", "weights", law.weights);
  mean_scale_ = weights_.dot(scales_);
  cov_ = 0.5 * (cov + cov.transpose());
}

Elliptical::Elliptical(const MatrixView& cov, const ScaleLaw& law)
    : Elliptical(Vector::Zero(cov.rows()), cov, law) {}

Elliptical::Tilt Elliptical::tilt(const VectorView& a) const {
  check_tilt("elliptical", a, dim());
  Tilt out;
  out.Ga = cov_ * a;
  const double q = 0.5 * (factor_.transpose() * a).squaredNorm();
  out.q = std::min(q, kLargestForm);
  out.discrete = discrete_tilt(weights_, (scales_.array() - mean_scale_).matrix(), out.q);
  out.mean = scales_.dot(out.discrete.r);
  return out;
}

Matrix Elliptical::second_moment() const { return mean_scale_ * cov_ + mean_ * mean_.transpose(); }

double Elliptical::log_mgf(const VectorView& a) const {
  const double centred = centred_log_mgf(a);  // first: it checks the length of a
  return centred + mean_.dot(a);
}

double Elliptical::centred_log_mgf(const VectorView& a) const {
  const Tilt t = tilt(a);
  const double top = scales_(t.discrete.top);
  if (t.q == kLargestForm && top > 0) return HUGE_VAL;
  return std::max(0.0, log_mgf_from(t.discrete, mean_scale_ * t.q, top * t.q));
}

Vector Elliptical::tilted_mean(const VectorView& a) const { return mean_ + mean_shift(a); }

Vector Elliptical::mean_shift(const VectorView& a) const {
  const Tilt t = tilt(a);
  return t.mean * t.Ga;
}

Matrix Elliptical::tilted_cov(const VectorView& a) const {
  const Tilt t = tilt(a);
  const double variance = t.central(scales_, 2);
  Matrix out = t.mean * cov_;
  if (variance > 0) {  // 0 where Ga may be too large for its square
    const Vector x = std::sqrt(variance) * t.Ga;
    out += x * x.transpose();
  }
  return out;
}

Vector Elliptical::tilted_cov_times(const VectorView& a, const VectorView& v) const {
  check_dimension("elliptical", "v", v.size(), dim());
  const Tilt t = tilt(a);
  const double variance = t.central(scales_, 2);
  Vector out = t.mean * (cov_ * v);
  if (variance > 0) out += (variance * t.Ga.dot(v)) * t.Ga;
  return out;
}

// Derivatives of K(a'Ga/2) of order three and four: with x = Ga,
//   K'' (G_ij x_k + G_ik x_j + G_jk x_i) + K''' x_i x_j x_k
//   K'' (G_ij G_kl + 2 more) + K''' (G_ij x_k x_l + 5 more) + K'''' x_i x_j x_k x_l
HigherCumulants Elliptical::higher_cumulants(const VectorView& a, const MatrixView& W,
                                             const MatrixView& Y) const {
  const Tilt t = tilt(a);
  const double k2 = t.central(scales_, 2), k3 = t.central(scales_, 3);
  const double k4 = t.central(scales_, 4) - 3 * k2 * k2;
  if (!(k2 > 0)) return no_higher_cumulants(dim());
  const Vector& x = t.Ga;
  const Vector Wx = W * x, Yx = Y * x;
  const double w = x.dot(Wx), y = x.dot(Yx);
  const double trWG = W.cwiseProduct(cov_).sum(), trYG = Y.cwiseProduct(cov_).sum();
  const double trWGYG = (W * cov_).cwiseProduct(cov_ * Y).sum();
  const auto third = [&](double trace, const Vector& Ax, double form) -> Vector {
    return (k2 * trace + k3 * form) * x + 2 * k2 * (cov_ * Ax);
  };
  return {third(trWG, Wx, w), third(trYG, Yx, y),
          k2 * (trWG * trYG + 2 * trWGYG) + k3 * (trWG * y + trYG * w + 4 * Wx.dot(cov_ * Yx)) +
              k4 * w * y};
}

Empirical Elliptical::sample(const Stream& stream, Index n) const {
  check_sample_size("elliptical", n);
  const Vector cumulative = cumulative_sums(weights_);
  const Stream chooser = stream.split(0);
  Matrix normals(n, factor_.cols());
  stream.split(1).fill_normal(
      0, std::span<double>(normals.data(), static_cast<std::size_t>(normals.size())));
  Matrix tokens(n, dim());
  for (Index l = 0; l < n; ++l) {
    const double w =
        scales_(select_atom(cumulative, chooser.uniform(static_cast<std::uint64_t>(l))));
    const Vector g = std::sqrt(w) * normals.row(l).transpose();
    tokens.row(l) = (mean_ + factor_ * g).transpose();
  }
  return Empirical(std::move(tokens));
}

double Elliptical::sub_gaussian() const {
  double largest = 0;
  for (Index i = 0; i < scales_.size(); ++i) {
    if (weights_(i) > 0) largest = std::max(largest, scales_(i));
  }
  return std::sqrt(largest * std::max(0.0, max_eigenvalue(cov_)));
}

bool Elliptical::strictly_sub_gaussian() const {
  for (Index i = 0; i < scales_.size(); ++i) {
    if (weights_(i) > 0 && scales_(i) != mean_scale_) return false;
  }
  return true;
}

}  // namespace esscher
