#include "esscher/concentration/constant.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// E (y'Yy)(y'Wy) - 2 y'YCa Wy + tr(W Ca Y Ca), y = x + delta, x centred with the cumulants of the
// measure tilted by b.
double fourth_moment(const AnyMeasure& mu, const Vector& b, const Vector& delta, const Matrix& Ca,
                     const Matrix& W, const Matrix& Y) {
  const Matrix C = mu.tilted_cov(b);
  const auto trace = [](const Matrix& A, const Matrix& B) { return (A * B).trace(); };
  // The step is a fraction of the distance on which the tilted law changes, 1/sqrt(|C|).
  const double h = 0.02 / std::sqrt(std::max(max_eigenvalue(C), 1e-12));
  const auto cov_at = [&](const Vector& direction, double t) {
    return mu.tilted_cov(b + t * direction);
  };
  // The first derivative of tr(A C) along v, by differences of fourth order.
  const auto slope = [&](const Matrix& A, const Vector& v) {
    const double norm = v.norm();
    if (norm == 0) return 0.0;
    const Vector e = v / norm;
    const Matrix D = (8 * (cov_at(e, h) - cov_at(e, -h)) - (cov_at(e, 2 * h) - cov_at(e, -2 * h)));
    return norm * trace(A, D) / (12 * h);
  };
  // sum_kl Y_kl kappa4(k,l,.,.) : W = sum over factors of Y of second derivatives of tr(W C).
  const Matrix F = psd_factor("asymptotic_constant", "Y", Y);
  double kappa4 = 0;
  for (Index i = 0; i < F.cols(); ++i) {
    const double norm = F.col(i).norm();
    if (norm == 0) continue;
    const Vector e = F.col(i) / norm;
    const Matrix D =
        -30 * C + 16 * (cov_at(e, h) + cov_at(e, -h)) - (cov_at(e, 2 * h) + cov_at(e, -2 * h));
    kappa4 += norm * norm * trace(W, D) / (12 * h * h);
  }
  const double n = delta.dot(Y * delta), w = delta.dot(W * delta);
  const double yy = kappa4 + trace(W, C) * trace(Y, C) + 2 * trace(W * C, Y * C) +
                    2 * slope(W, Y * delta) + 2 * slope(Y, W * delta) + n * trace(W, C) +
                    w * trace(Y, C) + 4 * delta.dot(W * C * Y * delta) + w * n;
  const Matrix cross = Y * Ca * W;
  const Matrix second = C + delta * delta.transpose();
  return yy - 2 * trace(cross, second) + trace(W * Ca, Y * Ca);
}

}  // namespace

double asymptotic_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z) {
  const Vector a = attention.tilt(z);
  const Vector b = 2 * a;
  const Index d = attention.dim();
  const MetricForm form = metric_form(metric, attention);
  const Matrix W = form.left.gram(d);
  try {
    const double scale = std::exp(mu.centred_log_mgf(b) - 2 * mu.centred_log_mgf(a));
    const Vector delta = mu.mean_shift(b) - mu.mean_shift(a);
    if (!form.of_covariance) {
      return form.left.scale2 * (scale * ((W * mu.tilted_cov(b)).trace() + delta.dot(W * delta)));
    }
    const Matrix Y = form.right.scale2 * form.right.gram(d);
    return scale * form.query->norm2(z) * fourth_moment(mu, b, delta, mu.tilted_cov(a), W, Y);
  } catch (const DomainError&) {
    return std::numeric_limits<double>::infinity();
  }
}

double predicted_exponent(double lambda) {
  if (!(lambda >= 0))
    throw_argument("predicted_exponent", "lambda", to_text(lambda), "a number >= 0");
  if (lambda <= 0.5) return 1;
  return (std::sqrt(1 + 4 / lambda) - 1) / 2;
}

}  // namespace esscher
