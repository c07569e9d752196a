#include "esscher/concentration/constant.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"

namespace esscher {
namespace {

// E |D|^2 in the metric of W and Y, D = yy' - C_a:
//   E (y'Wy)(y'Yy) - 2 tr(Y C_a W E yy') + tr(W C_a Y C_a)
// where y = x + delta and x is centred with the cumulants of the measure tilted by b.
double gradient_moment(const AnyMeasure& mu, const Vector& b, const Vector& delta, const Matrix& Ca,
                       const Matrix& W, const Matrix& Y) {
  const Matrix C = mu.tilted_cov(b);
  const auto trace = [](const Matrix& A, const Matrix& B) { return (A * B).trace(); };
  const Matrix second = C + delta * delta.transpose();
  return fourth_moment(mu.higher_cumulants(b, W, Y), C, delta, W, Y) -
         2 * trace(Y * Ca * W, second) + trace(W * Ca, Y * Ca);
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
    return scale * form.query->norm2(z) * gradient_moment(mu, b, delta, mu.tilted_cov(a), W, Y);
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
