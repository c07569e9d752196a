#include "esscher/measure/stationary.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/svd.h"
#include "esscher/estimate/autocorrelation.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/check.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sum.h"

namespace esscher {
namespace {

constexpr const char* kName = "stationary";
constexpr Index kMaxLags = 100000;
constexpr Index kMaxSolved = 24;  // dimension up to which d^2 equations are solved
constexpr double kFaded = 1e-17;
constexpr double kSettled = 1e-15;  // coefficients of a moving average that change by less are kept

Gaussian gaussian_of(const AnyMeasure& of) {
  const auto law = gaussian_law(of);
  if (!law) {
    throw_argument(kName, "of", of.name(),
                   "a Gaussian law: an autocovariance determines no other process");
  }
  return {law->mean, law->cov};
}

// 1 + 2 sum r_k cos(k w) must not be negative.
void check_spectrum(const VectorView& r) {
  const Index steps = 64 * (r.size() + 1);
  for (Index i = 0; i <= steps; ++i) {
    const double w = M_PI * static_cast<double>(i) / static_cast<double>(steps);
    double density = 1;
    for (Index k = 0; k < r.size(); ++k)
      density += 2 * r(k) * std::cos(static_cast<double>(k + 1) * w);
    if (density >= -1e-9) continue;
    throw_argument(kName, "autocorrelation",
                   "one with spectral density " + to_text(density) + " at frequency " + to_text(w),
                   "autocorrelations of a process, whose density is nowhere negative");
  }
}

// Psi_0, Psi_1, .. until they have faded.
std::vector<Matrix> responses(const std::vector<Matrix>& ar, Index d) {
  std::vector<Matrix> out = {Matrix::Identity(d, d)};
  const auto p = static_cast<Index>(ar.size());
  Index faded = 0;
  while (faded < p) {
    Matrix next = Matrix::Zero(d, d);
    const auto t = static_cast<Index>(out.size());
    for (Index i = 0; i < std::min(p, t); ++i) {
      next += ar[static_cast<std::size_t>(i)] * out[static_cast<std::size_t>(t - 1 - i)];
    }
    const double size = next.norm();
    if (t > kMaxLags || !std::isfinite(size)) {
      throw_argument(kName, "ar", "coefficients whose responses do not fade",
                     "a stable autoregression");
    }
    faded = size < kFaded ? faded + 1 : 0;
    out.push_back(std::move(next));
  }
  return out;
}

bool is_multiple_of_identity(const Matrix& A) {
  return (A - A(0, 0) * Matrix::Identity(A.rows(), A.cols())).isZero(0);
}

// Q with sum_j Psi_j Q Psi_j' = G.
Matrix noise_covariance(const std::vector<Matrix>& ar, const std::vector<Matrix>& psi,
                        const Matrix& G) {
  const Index d = G.rows();
  if (ar.size() == 1) return G - ar[0] * G * ar[0].transpose();
  if (std::all_of(ar.begin(), ar.end(), is_multiple_of_identity)) {
    double sum = 0;
    for (const Matrix& P : psi) sum += P(0, 0) * P(0, 0);
    return G / sum;
  }
  if (d > kMaxSolved) {
    throw_argument(kName, "ar",
                   std::to_string(ar.size()) + " matrices in dimension " + std::to_string(d),
                   "one matrix, numbers, or a dimension of at most 24");
  }
  Matrix M = Matrix::Zero(d * d, d * d);
  for (const Matrix& P : psi) {
    for (Index i = 0; i < d; ++i) {
      for (Index j = 0; j < d; ++j) M.block(i * d, j * d, d, d) += P(i, j) * P;
    }
  }
  const Svd system = svd(M);
  const Vector g = Eigen::Map<const Vector>(G.data(), d * d);
  const auto solve = [&](const Vector& right) -> Vector {
    return system.V * (system.U.transpose() * right).cwiseQuotient(system.s);
  };
  Vector q = solve(g);
  q += solve(g - M * q);
  const Matrix Q = Eigen::Map<const Matrix>(q.data(), d, d);
  return 0.5 * (Q + Q.transpose());
}

}  // namespace

Stationary Stationary::autocorrelated(const AnyMeasure& of, const VectorView& autocorrelation) {
  Stationary out(gaussian_of(of));
  if (autocorrelation.size() < 1 || autocorrelation.size() > 10000) {
    throw_argument(kName, "autocorrelation", std::to_string(autocorrelation.size()) + " numbers",
                   "1 to 10000 of them, for lags 1, 2, ..");
  }
  check_finite(kName, "autocorrelation", autocorrelation);
  check_spectrum(autocorrelation);
  out.r_ = autocorrelation;
  out.autocovariances_.push_back(out.token_.cov());
  for (Index k = 0; k < out.r_.size(); ++k) {
    out.autocovariances_.push_back(out.r_(k) * out.token_.cov());
  }
  return out;
}

Stationary Stationary::autoregressive(const AnyMeasure& of, std::vector<Matrix> ar) {
  Stationary out(gaussian_of(of));
  if (ar.empty()) throw_argument(kName, "ar", "empty", "at least one coefficient");
  for (const Matrix& A : ar) {
    check_dimension(kName, "ar rows", A.rows(), out.dim());
    check_dimension(kName, "ar columns", A.cols(), out.dim());
    check_finite(kName, "ar", A);
  }
  out.set_autoregression(std::move(ar));
  return out;
}

// E z_{t+k} z_t' = sum_j Psi_{j+k} Q Psi_j', and G_k is its transpose.
void Stationary::set_autoregression(std::vector<Matrix> ar) {
  const Matrix& G = token_.cov();
  const Index d = dim(), p = static_cast<Index>(ar.size());
  const std::vector<Matrix> psi = responses(ar, d);
  const Matrix Q = noise_covariance(ar, psi, G);
  try {
    noise_ = psd_factor(kName, "ar: the noise covariance", Q);
  } catch (const ArgumentError& error) {
    throw ArgumentError(std::string(error.what()) +
                        "; no process with these coefficients has the covariance of `of`");
  }
  const auto n = static_cast<Index>(psi.size());
  for (Index k = 0; k < n; ++k) {
    Matrix forward = Matrix::Zero(d, d);
    if (k == 0) {
      forward = G;
    } else if (k < p) {
      for (Index j = 0; j + k < n; ++j) {
        forward +=
            psi[static_cast<std::size_t>(j + k)] * Q * psi[static_cast<std::size_t>(j)].transpose();
      }
    } else {
      for (Index i = 0; i < p; ++i) {
        forward += ar[static_cast<std::size_t>(i)] *
                   autocovariances_[static_cast<std::size_t>(k - 1 - i)].transpose();
      }
    }
    autocovariances_.push_back(forward.transpose());
  }
  Matrix first(p * d, p * d);  // E z_s z_t' of the first p tokens
  for (Index s = 0; s < p; ++s) {
    for (Index t = 0; t < p; ++t) {
      const Matrix& lag = autocovariances_[static_cast<std::size_t>(std::abs(t - s))];
      first.block(s * d, t * d, d, d) = t >= s ? lag : Matrix(lag.transpose());
    }
  }
  start_ = psd_factor(kName, "covariance of the first tokens", 0.5 * (first + first.transpose()));
  ar_ = std::move(ar);
}

Stationary Stationary::fit(const MatrixView& tokens) {
  const Autocorrelation found = autocorrelation(tokens);
  const Vector mean = tokens.colwise().mean().transpose();
  const Matrix y = tokens.rowwise() - mean.transpose();
  const Matrix cov = y.transpose() * y / static_cast<double>(tokens.rows());
  Vector r = found.r;
  const auto length = static_cast<double>(r.size() + 1);
  for (Index k = 0; k < r.size(); ++k) r(k) *= 1 - static_cast<double>(k + 1) / length;
  return autocorrelated(Gaussian(mean, 0.5 * (cov + cov.transpose())), r);
}

Empirical Stationary::sample(const Stream& stream, Index n) const {
  check_sample_size(kName, n);
  Matrix tokens = ar_.empty() ? moving_sample(stream, n) : regressive_sample(stream, n);
  tokens.rowwise() += mean().transpose();
  return Empirical(std::move(tokens));
}

// The innovations algorithm: z_t = sum_j theta_{t,j} u_{t-j}, theta_{t,0} = 1, where u_t has the
// covariance v_t G. The coefficients of early tokens differ and settle soon.
Matrix Stationary::moving_sample(const Stream& stream, Index n) const {
  const Index q = r_.size(), rank = token_.factor().cols();
  const auto r = [this](Index lag) { return lag == 0 ? 1.0 : r_(lag - 1); };
  std::vector<Vector> theta = {Vector::Unit(q + 1, 0)};  // theta[t](j), the last ones kept
  std::vector<double> v = {1.0};
  Matrix innovations(n, dim()), tokens(n, dim());
  bool is_settled = false;
  for (Index t = 0; t < n; ++t) {
    if (t > 0 && !is_settled) {
      Vector now = Vector::Unit(q + 1, 0);
      double rest = 1;
      for (Index k = std::max<Index>(0, t - q); k < t; ++k) {
        const auto at = static_cast<std::size_t>(k);
        double x = r(t - k);
        for (Index j = std::max<Index>(0, t - q); j < k; ++j) {
          if (k - j <= q) x -= theta[at](k - j) * now(t - j) * v[static_cast<std::size_t>(j)];
        }
        now(t - k) = v[at] > 1e-12 ? x / v[at] : 0;
        rest -= now(t - k) * now(t - k) * v[at];
      }
      is_settled = t > q && (now - theta.back()).cwiseAbs().maxCoeff() < kSettled &&
                   std::abs(rest - v.back()) < kSettled;
      theta.push_back(std::move(now));
      v.push_back(std::max(0.0, rest));
    }
    Vector g(rank);
    for (Index i = 0; i < rank; ++i) g(i) = stream.normal(static_cast<std::uint64_t>(t * rank + i));
    innovations.row(t) = std::sqrt(v.back()) * (token_.factor() * g).transpose();
    tokens.row(t).setZero();
    for (Index j = 0; j <= std::min(q, t); ++j) {
      tokens.row(t) += theta.back()(j) * innovations.row(t - j);
    }
  }
  return tokens;
}

Matrix Stationary::regressive_sample(const Stream& stream, Index n) const {
  const auto p = static_cast<Index>(ar_.size());
  const Stream later = stream.split(1);
  Matrix tokens(n, dim());
  Vector g(start_.cols());
  stream.split(0).fill_normal(0, std::span<double>(g.data(), static_cast<std::size_t>(g.size())));
  const Vector first = start_ * g;
  const Index rank = noise_.cols();
  Vector e(rank);
  for (Index t = 0; t < n; ++t) {
    if (t < p) {
      tokens.row(t) = first.segment(t * dim(), dim()).transpose();
      continue;
    }
    for (Index i = 0; i < rank; ++i) e(i) = later.normal(static_cast<std::uint64_t>(t * rank + i));
    Vector x = noise_ * e;
    for (Index i = 0; i < p; ++i) {
      x += ar_[static_cast<std::size_t>(i)] * tokens.row(t - 1 - i).transpose();
    }
    tokens.row(t) = x.transpose();
  }
  return tokens;
}

bool is_dependent(const AnyMeasure& mu) {
  const auto any = [](const std::vector<AnyMeasure>& parts) {
    return std::any_of(parts.begin(), parts.end(), is_dependent);
  };
  if (mu.as<Stationary>() != nullptr) return true;
  if (const auto* affine = mu.as<Affine>()) return is_dependent(affine->inner());
  if (const auto* mixture = mu.as<Mixture>()) return any(mixture->components());
  if (const auto* product = mu.as<Product>()) return any(product->blocks());
  if (const auto* sum = mu.as<Sum>()) return any(sum->parts());
  return false;
}

std::optional<std::vector<Matrix>> autocovariances(const AnyMeasure& mu) {
  if (const auto* sequence = mu.as<Stationary>()) return sequence->autocovariances();
  if (const auto* affine = mu.as<Affine>()) {
    auto inner = autocovariances(affine->inner());
    if (!inner) return std::nullopt;
    for (Matrix& G : *inner) G = affine->B() * G * affine->B().transpose();
    return inner;
  }
  return std::nullopt;
}

}  // namespace esscher
