#include "esscher/prompt/exact_mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/error.h"

namespace esscher {

namespace {

// The components of positive weight, after their dimensions were checked.
GaussianMixtureLaw used_components(const GaussianMixtureLaw& law, Index d) {
  check_dimension("exact", "law.weights", law.weights.size(),
                  static_cast<long>(law.components.size()));
  GaussianMixtureLaw used;
  std::vector<double> weights;
  for (std::size_t k = 0; k < law.components.size(); ++k) {
    check_dimension("exact", "component mean", law.components[k].mean.size(), d);
    check_dimension("exact", "component covariance", law.components[k].cov.rows(), d);
    if (!(law.weights[static_cast<Index>(k)] > 0)) continue;
    weights.push_back(law.weights[static_cast<Index>(k)]);
    used.components.push_back(law.components[k]);
  }
  used.weights = Vector::Map(weights.data(), static_cast<Index>(weights.size()));
  return used;
}

void check_tau(const GaussianMixtureLaw& law, const Vector& a) {
  for (std::size_t k = 0; k < law.components.size(); ++k) {
    const double tau = score_tau(law.components[k], a);
    if (tau <= kMaxMixtureTau) continue;
    throw CapabilityError("exact: scores of component " + std::to_string(k) +
                          " have standard deviation tau = " + to_text(tau) +
                          ", the exact engine reaches tau = " + to_text(kMaxMixtureTau) +
                          "; the sampled engine can serve it");
  }
}

}  // namespace

MixtureErrors::MixtureErrors(const GaussianMixtureLaw& law, Attention attention,
                             const VectorView& z)
    : law_(used_components(law, attention.dim())), attention_(std::move(attention)), z_(z) {
  check_dimension("exact", "z", z.size(), attention_.dim());
  a_ = attention_.tilt(z_);
  if (law_.components.size() == 1) return;
  check_tau(law_, a_);
  const Index d = attention_.dim(), K = law_.weights.size();
  Vector exponent(K);
  Matrix tilted(K, d);
  for (Index k = 0; k < K; ++k) {
    const GaussianLaw& part = law_.components[static_cast<std::size_t>(k)];
    const Vector Ga = part.cov * a_;
    exponent[k] = std::log(law_.weights[k]) + a_.dot(part.mean) + 0.5 * a_.dot(Ga);
    tilted.row(k) = part.mean + Ga;
  }
  const double top = exponent.maxCoeff();
  log_mgf_ = top + std::log((exponent.array() - top).exp().sum());
  const Vector share = (exponent.array() - log_mgf_).exp();
  mean_ = tilted.transpose() * share;
  cov_ = Matrix::Zero(d, d);
  for (Index k = 0; k < K; ++k) {
    const Vector e = tilted.row(k).transpose() - mean_;
    cov_ += share[k] * (law_.components[static_cast<std::size_t>(k)].cov + e * e.transpose());
  }
  tokens_.emplace(make_tokens());
}

MixtureErrors::Tokens MixtureErrors::make_tokens() const {
  std::vector<TokenPart> parts;
  std::vector<ScorePart> scores;
  for (std::size_t k = 0; k < law_.components.size(); ++k) {
    const GaussianLaw& part = law_.components[k];
    const double tau = score_tau(part, a_), weight = law_.weights[static_cast<Index>(k)];
    const Vector b = tau > 0 ? Vector(part.cov * a_ / tau) : Vector::Zero(a_.size());
    parts.push_back({weight, tau, part.mean + tau * b - mean_, b, part.cov - b * b.transpose()});
    scores.push_back({weight, a_.dot(part.mean), tau});
  }
  return {std::move(parts), MixtureNodes(std::move(scores), log_mgf_)};
}

// Since sum_k p_k E[y] e_k = 0, G_10 may be replaced by -excess where that is smaller, without a loss
// of digits.
MixtureErrors::Means MixtureErrors::means(const Matrix& A, std::int64_t L) {
  std::vector<Vector> Ae, Ab;
  std::vector<double> trace;
  for (const TokenPart& part : tokens_->parts) {
    Ae.emplace_back(A * part.e);
    Ab.emplace_back(A * part.b);
    trace.push_back(std::max(0.0, (A * part.R).cwiseProduct(A).sum()));
  }
  Means out{Vector::Zero(A.rows())};
  tokens_->nodes.sweep(L, [&](const MixtureNodes::Node& node, const Survival& survival, double du) {
    Vector F1 = Vector::Zero(A.rows());
    double F2 = 0, one2 = 0;
    for (std::size_t k = 0; k < Ae.size(); ++k) {
      const auto& G = node.moments[k].G;
      const double p = tokens_->parts[k].weight;
      const double first = node.small ? -node.moments[k].excess : G(1, 0);
      F1 += p * (first * Ae[k] - tokens_->parts[k].tau * G(2, 0) * Ab[k]);
      F2 += p * ((Ae[k].squaredNorm() + trace[k]) * G(2, 0) + 2 * Ae[k].dot(Ab[k]) * G(2, 1) +
                 Ab[k].squaredNorm() * G(2, 2));
      one2 += p * G(2, 0);
    }
    out.bias += du * survival.power[1] * F1;
    out.weights2 += du * survival.power[1] * one2;
    out.square += du * (survival.power[1] * F2 + survival.power[2] * F1.squaredNorm());
  });
  return out;
}

ErrorParts MixtureErrors::mean_parts(const Matrix& A, std::int64_t L) {
  const Means m = means(A, L);
  const double bias2 = m.bias.squaredNorm();
  return {bias2, std::max(0.0, m.square - bias2)};
}

ErrorParts MixtureErrors::covariance_parts(const Matrix& A, const Matrix& B, std::int64_t L) {
  return covariance_error(tokens_->nodes, tokens_->parts, cov_, A, B, L);
}

Vector MixtureErrors::expected_output(Length L) {
  if (!tokens_) return esscher::expected_output(law_.components[0], attention_, z_, L);
  const Vector limit = attention_.V() * mean_;
  return L.is_infinite() ? limit : Vector(limit + means(attention_.V(), L.count()).bias);
}

double MixtureErrors::effective_sample_size(Length L) {
  if (!tokens_) return esscher::effective_sample_size(law_.components[0], attention_, z_, L);
  if (L.is_infinite()) return std::numeric_limits<double>::infinity();
  return 1 / means(Matrix::Zero(1, attention_.dim()), L.count()).weights2;
}

ErrorParts MixtureErrors::error_parts(Metric metric, Length L) {
  if (!tokens_) return esscher::error_parts(metric, law_.components[0], attention_, z_, L);
  const MetricForm form = metric_form(metric, attention_);
  if (L.is_infinite()) return {};
  const Index d = attention_.dim();
  const Matrix A = form.left.matrix_or_identity(d);
  const ErrorParts parts = form.of_covariance
                               ? covariance_parts(A, form.right.matrix_or_identity(d), L.count())
                               : mean_parts(A, L.count());
  const double factor = form.factor(z_);
  return {factor * parts.bias2, factor * parts.variance};
}

}  // namespace esscher
