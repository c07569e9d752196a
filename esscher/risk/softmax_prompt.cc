#include <algorithm>
#include <array>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/detail/prompt_sums.h"
#include "esscher/universal/integration_span.h"
#include "esscher/universal/laplace_jets.h"

namespace esscher::detail {
namespace {

using Array = Eigen::ArrayXd;

// phi and its derivatives [K] at one node, for every component.
struct Orders {
  std::array<Array, LaplaceJets::kOrders> d;

  // C^{(j)} = phi^{(j+2)} - phi^{(j+1)}
  [[nodiscard]] Array C(int j) const { return d[j + 2] - d[j + 1]; }
};

// P_j = L!/(L-j)! Phi^{L-j}, j = 1, 2, 3.
struct Powers {
  Powers(std::int64_t L, double psi) {
    const double log_phi = std::log1p(-std::min(psi, 1.0));
    double factor = 1;
    for (std::int64_t j = 1; j <= 3; ++j) {
      if (L < j) return;
      factor *= static_cast<double>(L - j + 1);
      const auto rest = static_cast<double>(L - j);
      P[j] = rest == 0 ? factor : factor * std::exp(rest * log_phi);
    }
  }
  double P[4] = {};
};

// What the formulas read of a head at one query.
struct Reading {
  Vector a, s, c;
  double tau = 0;
  Array p, mu;        // [K]
  Matrix E;           // e_k [K,D]
  Vector q;           // [m]
  Matrix VV;          // V'V [D,D]
  Vector Vq;          // V'q [D]
  Vector VVs;         // V'V s
  Array alpha, beta;  // [K]
  double gamma = 0;
};

Reading reading_of(const Layer& layer, const TokenLaw& tokens, const SharedMixture& law,
                   const Vector& a, const VectorView& z, const VectorView& target) {
  const Matrix& V = layer.heads[0].V;
  Reading r;
  r.a = a;
  r.s = law.cov * a;
  r.tau = std::sqrt(std::max(a.dot(r.s), 0.0));
  r.c = centre(tokens, a);
  r.p = law.weights.array();
  r.mu = (law.means * a).array();
  r.E = law.means.rowwise() - r.c.transpose();
  r.q = layer.W * z + V * r.c - target;
  r.VV = V.transpose() * V;
  r.Vq = V.transpose() * r.q;
  r.VVs = r.VV * r.s;
  r.gamma = r.s.dot(r.VVs);
  const Matrix EV = r.E * V.transpose();
  r.alpha = EV.rowwise().squaredNorm().array() + r.VV.cwiseProduct(law.cov).sum();
  r.beta = (r.E * r.VVs).array();
  return r;
}

// Sums over nodes. The first line is the value, the second the gradient.
struct Sums {
  explicit Sums(Index K, Index D)
      : M1(Vector::Zero(D)),
        C(Array::Zero(K)),
        C1(Array::Zero(K)),
        FF(Matrix::Zero(D, D)),
        X(Array::Zero(K)),
        G(Vector::Zero(D)) {}
  Vector M1;      // E sum omega zeta
  double Q = 0;   // E|V sum omega zeta|^2
  Array C, C1;    // sums of P1 C_k, P1 C_k'
  double C2 = 0;  // of p_k P1 C_k'', over k as well
  Matrix FF;      // of P2 F1 F1'
  Array X;        // coefficient of d mu_k
  double Y = 0;   // of d tau^2
  Vector G;       // of S da
};

void add_node(const Reading& r, const Orders& o, const Powers& power, double du, bool gradient,
              Sums& sums) {
  const double P1 = du * power.P[1], P2 = du * power.P[2], P3 = du * power.P[3];
  const Array C = o.C(0), C1 = o.C(1), C2 = o.C(2);
  const double phi2 = (r.p * o.d[2]).sum(), C2_sum = (r.p * C2).sum();
  const Vector F1 = -(r.E.transpose() * (r.p * o.d[1]).matrix() + phi2 * r.s);
  const Vector VF = r.VV * F1;  // V'V F1
  const double F2 = (r.p * (r.alpha * C + 2 * r.beta * C1)).sum() + r.gamma * C2_sum;
  const double square = F1.dot(VF);
  sums.M1 += P1 * F1;
  sums.Q += P1 * F2 + P2 * square;
  if (!gradient) return;
  sums.C += P1 * C;
  sums.C1 += P1 * C1;
  sums.C2 += P1 * C2_sum;
  sums.FF += P2 * F1 * F1.transpose();
  const double by_phi = P2 * (r.Vq.dot(F1) + 0.5 * F2) + 0.5 * P3 * square;
  const Vector g = P1 * r.Vq + P2 * VF;
  const Array ge = (r.E * g).array();
  const double gs = g.dot(r.s);
  const Array C3 = o.C(3), C4 = o.C(4);
  sums.X += r.p * (by_phi * o.d[1] - ge * o.d[2] - gs * o.d[3] +
                   0.5 * P1 * (r.alpha * C1 + 2 * r.beta * C2 + r.gamma * C3));
  sums.Y += 0.5 * (r.p * (by_phi * o.d[2] - ge * o.d[3] - gs * o.d[4] +
                          0.5 * P1 * (r.alpha * C2 + 2 * r.beta * C3 + r.gamma * C4)))
                      .sum();
  sums.G += -phi2 * g + P1 * (r.VV * (r.E.transpose() * (r.p * C1).matrix()) + C2_sum * r.VVs);
}

Sums integrate(const Reading& r, std::int64_t L, bool gradient) {
  const Index K = r.mu.size();
  const IntegrationSpan span = integration_span(r.p.matrix(), r.mu.matrix(), r.tau, L, 2);
  const double du = LaplaceJets::kStep;
  const Index n = static_cast<Index>(std::ceil((span.right - span.left) / du)) + 1;
  const double last = span.left + static_cast<double>(n - 1) * du;
  const LaplaceJets jets(r.tau, span.left + r.mu.minCoeff(), last + r.mu.maxCoeff());
  std::array<Matrix, LaplaceJets::kOrders> all;  // [n,K] each
  for (Matrix& order : all) order.resize(n, K);
  for (Index k = 0; k < K; ++k) {
    const Matrix rows = jets.rows(span.left + r.mu[k], n);
    for (Index j = 0; j < LaplaceJets::kOrders; ++j) all[j].col(k) = rows.col(j);
  }
  Sums sums(K, r.a.size());
  Orders o;
  for (Index i = 0; i < n; ++i) {
    const double psi = r.p.matrix().dot(all[0].row(i).transpose());
    const Powers power(L, psi);
    if (power.P[1] == 0 && power.P[2] == 0) break;
    for (Index j = 1; j < LaplaceJets::kOrders; ++j) o.d[j] = all[j].row(i).transpose().array();
    add_node(r, o, power, du, gradient, sums);
  }
  return sums;
}

void add_gradient(const Layer& layer, const SharedMixture& law, const Reading& r, const Sums& sums,
                  const VectorView& z, Layer& gradient) {
  const Matrix& V = layer.heads[0].V;
  const Vector miss = r.q + V * sums.M1;  // E out - t
  // E[zeta zeta'] of sum omega zeta.
  const Vector mixed = r.E.transpose() * (r.p * sums.C1).matrix();
  const Matrix M2 = r.E.transpose() * (r.p * sums.C).matrix().asDiagonal() * r.E +
                    (r.p * sums.C).sum() * law.cov + mixed * r.s.transpose() +
                    r.s * mixed.transpose() + sums.C2 * r.s * r.s.transpose() + sums.FF;
  const Vector by_a = law.means.transpose() * sums.X.matrix() + 2 * sums.Y * r.s + law.cov * sums.G;
  gradient.W += miss * z.transpose();
  gradient.heads[0].V += miss * r.c.transpose() + r.q * sums.M1.transpose() + V * M2;
  gradient.heads[0].U += by_a * z.transpose();
}

}  // namespace

Vector centre(const TokenLaw& tokens, const Vector& a) {
  try {
    return tokens.measure().tilted_mean(a);
  } catch (const DomainError&) {
    return tokens.measure().mean();  // no limit: finite prompts are served all the same
  }
}

double softmax_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                     const VectorView& z, const VectorView& target, Layer* gradient) {
  const Vector a = layer.heads[0].U * z;
  const auto law = tokens.mixture(a);
  const Reading r = reading_of(layer, tokens, *law, a, z, target);
  const Sums sums = integrate(r, L, gradient != nullptr);
  if (gradient != nullptr) add_gradient(layer, *law, r, sums, z, *gradient);
  return r.q.squaredNorm() / 2 + r.Vq.dot(sums.M1) + sums.Q / 2;
}

}  // namespace esscher::detail
