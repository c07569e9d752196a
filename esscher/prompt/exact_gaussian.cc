#include "esscher/prompt/exact_gaussian.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/error.h"

namespace esscher {

namespace {

void check(const GaussianLaw& law, const Attention& attention, const VectorView& z) {
  const Index d = attention.dim();
  check_dimension("exact", "law.mean", law.mean.size(), d);
  check_dimension("exact", "law.cov rows", law.cov.rows(), d);
  check_dimension("exact", "law.cov columns", law.cov.cols(), d);
  check_dimension("exact", "z", z.size(), d);
}

// G a and tau; b = Ga/tau is 0 at tau = 0, where G a = 0 because G is PSD.
struct Scores {
  Vector Ga;
  double tau;
  [[nodiscard]] Vector b() const { return tau > 0 ? Vector(Ga / tau) : Vector::Zero(Ga.size()); }
};

Scores scores(const GaussianLaw& law, const Attention& attention, const VectorView& z) {
  check(law, attention, z);
  const Vector a = attention.tilt(z);
  const double tau = score_tau(law, a);
  if (!(tau <= kMaxTau)) {
    throw CapabilityError("exact: scores have standard deviation tau = " + to_text(tau) +
                          ", universal functions reach tau = " + to_text(kMaxTau) +
                          "; the sampled engine can serve it");
  }
  return {law.cov * a, tau};
}

// With |Ab|^2 and tr AGA' given, A the left factor of the metric.
ErrorParts mean_parts(const Universal& u, double tau, double Ab2, double trAGA) {
  const double residual = std::max(0.0, trAGA - Ab2);
  const double bias2 = u.H * u.H * tau * tau * Ab2;
  return {bias2, std::max(0.0, Ab2 * u.M2c_ratio + residual * u.H - bias2)};
}

// E|A(Chat - G)B'|_F^2 and |A E[Chat - G] B'|_F^2, A [p,d], B [r,d].
ErrorParts covariance_parts(const Universal4& u, const Vector& b, const Matrix& G,
                            const MatrixView& A, const MatrixView& B) {
  const Matrix R = G - b * b.transpose();
  const Vector Ab = A * b, Bb = B * b;
  const Matrix AR = A * R, ARB = AR * B.transpose();
  const double trA = std::max(0.0, AR.cwiseProduct(A).sum());
  const double trB = std::max(0.0, (B * R).cwiseProduct(B).sum());
  const double Ab2 = Ab.squaredNorm(), Bb2 = Bb.squaredNorm(), ARB2 = ARB.squaredNorm();
  const double c = Ab.dot(ARB * Bb);
  const double total = Ab2 * Bb2 * u.v2_ratio + u.q_ratio * (Ab2 * trB + Bb2 * trA + 2 * c) -
                       2 * c * u.vh_ratio + u.h2 * ARB2 + u.n2 * (trA * trB + ARB2);
  // E[Chat - G] = bb' E(v - tau^2)/tau^2 - R E h.
  const double bias2 = (u.v1_ratio * Ab * Bb.transpose() - u.H * ARB).squaredNorm();
  return {bias2, std::max(0.0, total - bias2)};
}

ErrorParts scaled(ErrorParts parts, double factor) {
  return {parts.bias2 * factor, parts.variance * factor};
}

ErrorParts parts_of(Metric metric, const GaussianLaw& law, const Attention& attention,
                    const VectorView& z, const Scores& s, const Universal4& u) {
  const MetricForm form = metric_form(metric, attention);
  const Vector b = s.b();
  const Matrix* A = form.left.matrix;
  if (form.of_covariance) {
    const Matrix B = form.right.matrix_or_identity(attention.dim());
    return scaled(covariance_parts(u, b, law.cov, *A, B), form.factor(z));
  }
  const double trAGA = A == nullptr ? law.cov.trace() : (*A * law.cov).cwiseProduct(*A).sum();
  return scaled(mean_parts(u, s.tau, form.mean_norm2(b), trAGA), form.factor(z));
}

}  // namespace

double score_tau(const GaussianLaw& law, const VectorView& a) {
  return std::sqrt(std::max(0.0, a.dot(law.cov * a)));
}

double score_deviation(const GaussianLaw& law, const Attention& attention, const VectorView& z) {
  return scores(law, attention, z).tau;
}

Vector expected_output(const GaussianLaw& law, const Attention& attention, const VectorView& z,
                       Length L) {
  const Scores s = scores(law, attention, z);
  const double shrink = L.is_infinite() ? 1.0 : universal(L.count(), s.tau).M1_ratio;
  return attention.V() * (law.mean + shrink * s.Ga);
}

double effective_sample_size(const GaussianLaw& law, const Attention& attention,
                             const VectorView& z, Length L) {
  const Scores s = scores(law, attention, z);
  if (L.is_infinite()) return std::numeric_limits<double>::infinity();
  return 1 / universal(L.count(), s.tau).H;
}

ErrorParts error_parts(Metric metric, const GaussianLaw& law, const Attention& attention,
                       const VectorView& z, const Universal4& u) {
  return parts_of(metric, law, attention, z, scores(law, attention, z), u);
}

ErrorParts error_parts(Metric metric, const GaussianLaw& law, const Attention& attention,
                       const VectorView& z, Length L) {
  const Scores s = scores(law, attention, z);
  if (L.is_infinite()) return {};
  return parts_of(metric, law, attention, z, s,
                  universal_up_to(reads_covariance(metric), L.count(), s.tau));
}

double mean_square_error(Metric metric, const GaussianLaw& law, const Attention& attention,
                         const VectorView& z, Length L) {
  return error_parts(metric, law, attention, z, L).total();
}

}  // namespace esscher
