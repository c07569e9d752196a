#include "esscher/concentration/constant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/stationary.h"

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

// E <yy' - G, y~y~' - G> in the metric of W and Y, of a Gaussian pair with means d, d~, covariances
// G and Cov(y, y~) = K. With M = E yy', M~ = E y~y~', N = E yy~':
//   <W,N><Y,N> + tr W M~ Y M + tr W N'Y N' - 2 (d'W d~)(d'Y d~)
//   - tr W G Y M - tr W G Y M~ + tr W G Y G
double pair_moment(const Matrix& G, const Matrix& K, const Vector& d, const Vector& e,
                   const Matrix& W, const Matrix& Y) {
  const Matrix M = G + d * d.transpose(), E = G + e * e.transpose(), N = K + d * e.transpose();
  const Matrix WG = W * G, YM = Y * M, Nt = N.transpose();
  const auto trace = [](const Matrix& A, const Matrix& B) {
    return A.cwiseProduct(B.transpose()).sum();
  };
  return W.cwiseProduct(N).sum() * Y.cwiseProduct(N).sum() + trace(W * E, YM) +
         trace(W * Nt, Y * Nt) - 2 * d.dot(W * e) * d.dot(Y * e) - trace(WG, YM) -
         trace(WG, Y * E) + trace(WG, Y * G);
}

double dependent_constant(const std::vector<Matrix>& lags, const MetricForm& form, const Vector& a,
                          const VectorView& z) {
  const Index d = a.size();
  const Matrix W = form.left.gram(d);
  const Matrix Y = form.of_covariance ? Matrix(form.right.scale2 * form.right.gram(d)) : Matrix();
  double sum = 0;
  for (std::size_t k = 0; k < lags.size(); ++k) {
    const Matrix& K = lags[k];
    const Vector ahead = K * a, back = K.transpose() * a;
    const double moment = form.of_covariance ? pair_moment(lags[0], K, ahead, back, W, Y)
                                             : W.cwiseProduct(K).sum() + ahead.dot(W * back);
    sum += (k == 0 ? 1 : 2) * std::exp(a.dot(ahead)) * moment;  // lags k and -k are alike
  }
  return sum * (form.of_covariance ? form.query->norm2(z) : form.left.scale2);
}

}  // namespace

double asymptotic_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z) {
  if (!is_dependent(mu)) return independent_constant(metric, mu, attention, z);
  const auto lags = autocovariances(mu);
  if (!lags) return std::numeric_limits<double>::quiet_NaN();
  return dependent_constant(*lags, metric_form(metric, attention), attention.tilt(z), z);
}

double independent_constant(Metric metric, const AnyMeasure& mu, const Attention& attention,
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

double asymptotic_constant(Metric metric, const Prompt& prompt, const Attention& attention,
                           const VectorView& z) {
  if (prompt.is_plain()) {
    return asymptotic_constant(metric, prompt.groups.front().mu, attention, z);
  }
  const std::optional<AnyMeasure> limit = limit_measure(prompt);
  const MetricForm form = metric_form(metric, attention);
  if (!limit || form.of_covariance) return std::numeric_limits<double>::quiet_NaN();
  const Vector a = attention.tilt(z), b = 2 * a;
  const Matrix W = form.left.gram(attention.dim());
  double shares = 0;
  for (const PromptGroup& group : prompt.groups) shares += group.count ? 0 : group.share;
  try {
    // The log of W, from the largest term.
    const Vector m = limit->tilted_mean(a);
    double top = -std::numeric_limits<double>::infinity(), total = 0, sum = 0;
    const auto log_weight = [&](const PromptGroup& g) {
      return std::log(g.share / shares) + g.bias + g.mu.log_mgf(a);
    };
    const auto grows = [](const PromptGroup& g) { return !g.count && g.share > 0; };
    for (const PromptGroup& g : prompt.groups) {
      if (grows(g)) top = std::max(top, log_weight(g));
    }
    for (const PromptGroup& g : prompt.groups) {
      if (!grows(g)) continue;
      const double share = g.share / shares, scale = std::exp(log_weight(g) - top);
      const Vector far = g.mu.tilted_mean(b) - m, near = g.mu.tilted_mean(a) - m;
      const double square = std::exp(g.mu.centred_log_mgf(b) - 2 * g.mu.centred_log_mgf(a)) *
                            ((W * g.mu.tilted_cov(b)).trace() + far.dot(W * far));
      total += scale;
      sum += scale * scale / share * (square - near.dot(W * near));
    }
    return form.left.scale2 * sum / (total * total);
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
