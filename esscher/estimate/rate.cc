#include "esscher/estimate/rate.h"

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/basis.h"
#include "esscher/base/cholesky.h"
#include "esscher/base/error.h"

namespace esscher {
namespace {

void check_curve(std::string_view where, const std::vector<std::int64_t>& lengths,
                 const VectorView& values, const MatrixView& cov, Index at_least) {
  const Index k = static_cast<Index>(lengths.size());
  check_dimension(where, "values", values.size(), k);
  if (cov.size() != 0) check_dimension(where, "cov", cov.rows(), k);
  if (k < at_least) {
    throw_argument(where, "lengths", std::to_string(k) + " of them",
                   "at least " + std::to_string(at_least));
  }
  for (Index i = 0; i < k; ++i) {
    if (!(values[i] > 0) || !std::isfinite(values[i])) {
      throw_argument(where, "values", to_text(values[i]), "positive numbers");
    }
  }
}

Vector log_lengths(const std::vector<std::int64_t>& lengths) {
  Vector x(static_cast<Index>(lengths.size()));
  for (Index i = 0; i < x.size(); ++i) {
    x[i] = std::log(static_cast<double>(lengths[static_cast<std::size_t>(i)]));
  }
  return x;
}

// Weights 1/cov_ii, scaled to mean 1; a point without noise among noisy ones gets the largest
// finite weight.
Vector weights(const MatrixView& cov, Index k) {
  if (is_noise_free(cov)) return Vector::Ones(k);
  double smallest = std::numeric_limits<double>::infinity();
  for (Index i = 0; i < k; ++i) {
    if (cov(i, i) > 0) smallest = std::min(smallest, cov(i, i));
  }
  Vector w(k);
  for (Index i = 0; i < k; ++i) w[i] = 1 / std::max(cov(i, i), smallest);
  return w * (static_cast<double>(k) / w.sum());
}

// Whether the points have noise of their own, none of it shared.
bool is_diagonal(const MatrixView& cov) {
  return (cov - Matrix(cov.diagonal().asDiagonal())).cwiseAbs().maxCoeff() <= 0;
}

// Whether points with independent noise lie further from a line than their noise leaves them one
// time in twenty: `misfit` is the weighted sum of squares for each spare point. Weights are `scale`
// over the variances, which are known with dof degrees of freedom each.
bool is_bent(double misfit, double scale, double spare, double dof) {
  constexpr double kMany = 1e8;
  const boost::math::fisher_f law(spare, std::min(dof, kMany));
  return misfit > scale * quantile(law, kLevel);
}

}  // namespace

bool is_noise_free(const MatrixView& cov) {
  return cov.size() == 0 || cov.diagonal().maxCoeff() <= 0;
}

PowerFit fit_power(const std::vector<std::int64_t>& lengths, const VectorView& values,
                   const MatrixView& cov, double dof) {
  check_curve("fit_power", lengths, values, cov, 3);
  const Vector x = log_lengths(lengths);
  const Vector y = values.array().log();
  const Index k = x.size();
  const Vector w = weights(cov, k);
  const double xbar = w.dot(x) / w.sum();
  const Vector xc = x.array() - xbar;
  const double sxx = (w.array() * xc.array().square()).sum();
  if (!(sxx > 0)) throw_argument("fit_power", "lengths", "all equal", "at least two lengths");
  // slope = b'y with b = W xc / sxx: linear in y, so its variance is b' cov b.
  const Vector b = w.cwiseProduct(xc) / sxx;
  PowerFit fit;
  fit.slope = b.dot(y);
  fit.log_c = w.dot(y) / w.sum() - fit.slope * xbar;
  const Vector r = y - (fit.slope * x).array().matrix() - Vector::Constant(k, fit.log_c);
  const double spare = static_cast<double>(k - 2);
  const double misfit = (w.array() * r.array().square()).sum() / spare;
  const double noise = is_noise_free(cov) ? 0.0 : std::sqrt(std::max(0.0, b.dot(cov * b)));
  const bool is_line = noise > 0 && is_diagonal(cov) &&
                       !is_bent(misfit, w.dot(cov.diagonal()) / static_cast<double>(k), spare, dof);
  const double residual = is_line ? 0.0 : std::sqrt(misfit / sxx);
  fit.std_error = std::max(residual, noise);
  const double of_noise = std::isfinite(dof) ? student_quantile(dof) : normal_quantile();
  const double half = std::max(residual * student_quantile(spare), noise * of_noise);
  fit.ci = {fit.slope - half, fit.slope + half};
  return fit;
}

std::vector<LocalExponent> local_exponents(const std::vector<std::int64_t>& lengths,
                                           const VectorView& values, const MatrixView& cov) {
  check_curve("local_exponents", lengths, values, cov, 1);
  const Vector x = log_lengths(lengths);
  std::vector<LocalExponent> result;
  for (Index i = 0; i + 1 < x.size(); ++i) {
    const double dx = x[i + 1] - x[i];
    LocalExponent e;
    e.L = std::exp((x[i] + x[i + 1]) / 2);
    e.exponent = -(std::log(values[i + 1]) - std::log(values[i])) / dx;
    if (!is_noise_free(cov)) {
      const double v = cov(i, i) + cov(i + 1, i + 1) - 2 * cov(i, i + 1);
      e.std_error = std::sqrt(std::max(0.0, v)) / std::abs(dx);
    }
    result.push_back(e);
  }
  return result;
}

namespace {

// y - offset = X beta, GLS with covariance factor L (empty when exact). Returns chi^2.
double solve(const Matrix& X, const Vector& y, const Matrix& L, Vector& beta) {
  const Matrix A = L.size() > 0 ? solve_lower(L, X) : X;
  const Vector t = L.size() > 0 ? Vector(solve_lower(L, y)) : y;
  beta = least_squares(A, t);
  return (t - A * beta).squaredNorm();
}

}  // namespace

std::vector<ShapeFit> compare_shapes(const std::vector<std::int64_t>& all_lengths,
                                     const VectorView& all_values, const MatrixView& all_cov) {
  check_curve("compare_shapes", all_lengths, all_values, all_cov, 1);
  std::vector<std::int64_t> lengths;
  std::vector<Index> keep;
  for (std::size_t i = 0; i < all_lengths.size(); ++i) {
    if (all_lengths[i] < 2)
      continue;  // ln 1 = 0: the second shape is not a positive function there
    lengths.push_back(all_lengths[i]);
    keep.push_back(static_cast<Index>(i));
  }
  const Index k = static_cast<Index>(keep.size());
  if (k < 4) {
    throw_argument("compare_shapes", "lengths", std::to_string(k) + " of them >= 2",
                   "at least 4, to compare shapes with two parameters");
  }
  const Vector x = log_lengths(lengths);
  const Vector y = all_values(keep).array().log();
  const bool exact = is_noise_free(all_cov);
  Matrix L;
  if (!exact) {
    // A sample covariance of few queries is near singular; a tenth of its diagonal keeps the
    // whitening honest.
    Matrix C = 0.9 * Matrix(all_cov(keep, keep));
    C.diagonal() /= 0.9;
    C.diagonal().array() += 1e-24;
    const std::optional<Matrix> factor = cholesky(C);
    if (!factor) {
      throw RuntimeFailure("compare_shapes: the covariance of log D is not positive definite");
    }
    L = *factor;
  }
  Matrix ones = Matrix::Ones(k, 1), line(k, 2);
  line.col(0).setOnes();
  line.col(1) = -x;
  const Vector loglog = x.array().log();

  std::vector<ShapeFit> fits;
  for (Shape shape : {Shape::inverse, Shape::log_power, Shape::power}) {
    ShapeFit fit;
    fit.shape = shape;
    Vector beta;
    double chi2 = 0;
    if (shape == Shape::inverse) {
      chi2 = solve(ones, y + x, L, beta);
    } else {
      chi2 = solve(line, shape == Shape::log_power ? Vector(y - loglog) : y, L, beta);
      fit.g = beta[1];
    }
    fit.log_c = beta[0];
    const double parameters = static_cast<double>(beta.size());
    const double n = static_cast<double>(k);
    // Rounding of D is the smallest misfit that means anything.
    fit.aic = exact ? n * std::log(std::max(chi2 / n, 1e-26)) + 2 * (parameters + 1)
                    : chi2 + 2 * parameters;
    fits.push_back(fit);
  }
  double best = std::numeric_limits<double>::infinity(), total = 0;
  for (const ShapeFit& f : fits) best = std::min(best, f.aic);
  for (ShapeFit& f : fits) total += f.weight = std::exp(-(f.aic - best) / 2);
  for (ShapeFit& f : fits) f.weight /= total;
  return fits;
}

}  // namespace esscher
