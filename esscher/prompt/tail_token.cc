#include "esscher/prompt/detail/tail_token.h"

#include <cmath>

#include "esscher/base/eigensystem.h"

namespace esscher::detail {
namespace {

constexpr Index kNodes = 8;

// Of e^{jv - e^v} on the line, from its three-term recurrence, whose coefficients are sums of a
// trapezoidal rule (the Stieltjes procedure).
struct GaussRule {
  Vector v{kNodes}, w{kNodes};

  explicit GaussRule(int j) {
    constexpr double kStep = 1.0 / 64, kFrom = -60, kTo = 5;
    const auto n = static_cast<Index>((kTo - kFrom) / kStep);
    const Vector x = Vector::LinSpaced(n, kFrom, kTo - kStep);
    const Vector mass = kStep * (j * x.array() - x.array().exp()).exp();
    Matrix jacobi = Matrix::Zero(kNodes, kNodes);
    Vector before = Vector::Zero(n), now = Vector::Constant(n, 1 / std::sqrt(mass.sum()));
    double size = 0;
    for (Index k = 0; k < kNodes; ++k) {
      const double middle = mass.dot(now.cwiseProduct(now).cwiseProduct(x));
      Vector next = (x.array() - middle) * now.array() - size * before.array();
      jacobi(k, k) = middle;
      size = std::sqrt(mass.dot(next.cwiseProduct(next)));
      if (k + 1 < kNodes) jacobi(k, k + 1) = jacobi(k + 1, k) = size;
      before = now;
      now = next / size;
    }
    const Eigensystem system = eigensystem(jacobi);
    v = system.values;
    w = mass.sum() * system.vectors.row(0).cwiseAbs2().transpose();
  }
};

}  // namespace

TokenAt tail_token(const LongTails& tails, double x) {
  static const GaussRule once(1), twice(2);
  const bool upper = x > tails.high;
  TokenAt out;
  out.value = Vector::Zero(tails.parts.front().mean.size());
  out.rest = out.value;
  double beyond = 0, square = 0;
  for (const LongTail& part : tails.parts) {
    double p = 0, pt = 0, q = 0, qt = 0, qtt = 0;
    for (Index i = 0; i < kNodes; ++i) {
      const double s = x + once.v[i], f = once.w[i] * part.density(s);
      p += f;
      pt += f * part.t(s);
      out.logs += f * once.v[i];
      beyond += once.w[i] * (upper ? part.above(s) : part.below(s));
    }
    for (Index i = 0; i < kNodes; ++i) {
      const double s = x + twice.v[i], t = part.t(s), f = twice.w[i] * part.density(s);
      q += f;
      qt += f * t;
      qtt += f * t * t;
    }
    out.once += p;
    out.twice += q;
    out.value += p * part.mean + pt * part.slope;
    square += q * part.mean.squaredNorm() + 2 * qt * part.mean.dot(part.slope) +
              qtt * part.slope.squaredNorm() + part.across * (part.nu() * q + qtt);
  }
  const double phi = upper ? 1 - beyond : beyond;
  out.psi = 1 - phi;
  out.log_phi = upper ? std::log1p(-beyond) : std::log(beyond);
  if (upper) out.psi = beyond;
  out.average(phi, square);
  return out;
}

}  // namespace esscher::detail
