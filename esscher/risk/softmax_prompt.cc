#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

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

// What the formulas read of a head at one query. Components are in the order of their scores, so
// that those which matter near one u stand side by side.
struct Reading {
  Vector a, s, c;
  double tau = 0;
  Array p, mu;        // [K]
  Matrix means, E;    // m_k, e_k [K,D]
  Vector q;           // [m]
  Matrix VV;          // V'V [D,D]
  Vector Vq;          // V'q [D]
  Vector VVs;         // V'V s
  Array alpha, beta;  // [K]
  double gamma = 0;
};

std::vector<Index> by_score(const Vector& mu) {
  std::vector<Index> order(static_cast<std::size_t>(mu.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index i, Index j) { return mu[i] < mu[j]; });
  return order;
}

Reading reading_of(const Layer& layer, const TokenLaw& tokens, const SharedMixture& law,
                   const Vector& a, const VectorView& z, const VectorView& target) {
  const Matrix& V = layer.heads[0].V;
  Reading r;
  r.a = a;
  r.s = law.cov * a;
  r.tau = std::sqrt(std::max(a.dot(r.s), 0.0));
  r.c = centre(tokens, a);
  const std::vector<Index> order = by_score(law.means * a);
  r.p = law.weights(order).array();
  r.means = law.means(order, Eigen::all);
  r.mu = (r.means * a).array();
  r.E = r.means.rowwise() - r.c.transpose();
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

// Components first .. first + count - 1, the others add nothing to F1 and F2.
struct Part {
  Index first = 0, count = 0;

  [[nodiscard]] auto of(const Array& x) const { return x.segment(first, count); }
  [[nodiscard]] auto of(Array& x) const { return x.segment(first, count); }
};

void add_node(const Reading& r, const Part& part, const Orders& o, const Powers& power, double du,
              bool gradient, Sums& sums) {
  const double P1 = du * power.P[1], P2 = du * power.P[2], P3 = du * power.P[3];
  const Array C = o.C(0), C1 = o.C(1), C2 = o.C(2);
  const auto p = part.of(r.p), alpha = part.of(r.alpha), beta = part.of(r.beta);
  const auto E = r.E.middleRows(part.first, part.count);
  const double phi2 = (p * o.d[2]).sum(), C2_sum = (p * C2).sum();
  const Vector F1 = -(E.transpose() * (p * o.d[1]).matrix() + phi2 * r.s);
  const Vector VF = r.VV * F1;  // V'V F1
  const double F2 = (p * (alpha * C + 2 * beta * C1)).sum() + r.gamma * C2_sum;
  const double square = F1.dot(VF);
  sums.M1 += P1 * F1;
  sums.Q += P1 * F2 + P2 * square;
  if (!gradient) return;
  part.of(sums.C) += P1 * C;
  part.of(sums.C1) += P1 * C1;
  sums.C2 += P1 * C2_sum;
  sums.FF += P2 * F1 * F1.transpose();
  const double by_phi = P2 * (r.Vq.dot(F1) + 0.5 * F2) + 0.5 * P3 * square;
  const Vector g = P1 * r.Vq + P2 * VF;
  const Array ge = (E * g).array();
  const double gs = g.dot(r.s);
  const Array C3 = o.C(3), C4 = o.C(4);
  part.of(sums.X) += p * (by_phi * o.d[1] - ge * o.d[2] - gs * o.d[3] +
                          0.5 * P1 * (alpha * C1 + 2 * beta * C2 + r.gamma * C3));
  sums.Y += 0.5 * (p * (by_phi * o.d[2] - ge * o.d[3] - gs * o.d[4] +
                        0.5 * P1 * (alpha * C2 + 2 * beta * C3 + r.gamma * C4)))
                      .sum();
  sums.G += -phi2 * g + P1 * (r.VV * (E.transpose() * (p * C1).matrix()) + C2_sum * r.VVs);
}

// phi of a component changes between u + mu_k = -reach and top: before, all that it adds is a share
// 1e-16/L of what others do, and after, phi = 0. Sharp scores have many components, of which few
// change at one u. Nodes are therefore taken block by block, with the components that change there;
// what is beyond them adds its weight to psi.
class Window {
 public:
  Window(const Reading& r, std::int64_t L)
      : mu_(r.mu),
        reach_(first_order_reach(r.tau, 36 + 2 * std::log(static_cast<double>(L)))),
        top_(kTopLogY + kTopDeviations * r.tau),
        beyond_(Array::Zero(mu_.size() + 1)) {
    for (Index k = mu_.size(); k-- > 0;) beyond_[k] = beyond_[k + 1] + r.p[k];
  }
  [[nodiscard]] double low() const { return -reach_; }
  [[nodiscard]] double high() const { return top_; }
  // The components that change somewhere between u and u_last.
  [[nodiscard]] Part part(double u, double u_last) const {
    const double* begin = mu_.data();
    const double* end = begin + mu_.size();
    const double* from = std::lower_bound(begin, end, -reach_ - u_last);
    return {from - begin, std::max<Index>(0, std::upper_bound(from, end, top_ - u) - from)};
  }
  // The weight of those above.
  [[nodiscard]] double weight_beyond(const Part& part) const {
    return beyond_[part.first + part.count];
  }

 private:
  static constexpr double kTopLogY = 6.7, kTopDeviations = 9;

  const Array& mu_;
  double reach_, top_;
  Array beyond_;  // sums of weights from k on
};

Sums integrate(const Reading& r, std::int64_t L, bool gradient) {
  constexpr Index kBlock = 32;  // nodes
  const Index K = r.mu.size();
  const IntegrationSpan span = integration_span(r.p.matrix(), r.mu.matrix(), r.tau, L, 2);
  const double du = LaplaceJets::kStep;
  const Index n = static_cast<Index>(std::ceil((span.right - span.left) / du)) + 1;
  const auto u_at = [&](Index i) { return span.left + static_cast<double>(i) * du; };
  const Window window(r, L);
  const double block = static_cast<double>(kBlock) * du;
  const LaplaceJets jets(r.tau, std::max(u_at(0) + r.mu[0], window.low() - block),
                         std::min(u_at(n - 1) + r.mu[K - 1], window.high() + block));
  std::array<Matrix, LaplaceJets::kOrders> all;  // [kBlock,count] each
  Sums sums(K, r.a.size());
  Orders o;
  for (Index start = 0; start < n; start += kBlock) {
    const Index rows = std::min(kBlock, n - start);
    const Part part = window.part(u_at(start), u_at(start + rows - 1));
    for (Matrix& order : all) order.resize(rows, part.count);
    for (Index k = 0; k < part.count; ++k) {
      const Matrix own = jets.rows(u_at(start) + r.mu[part.first + k], rows);
      for (Index j = 0; j < LaplaceJets::kOrders; ++j) all[j].col(k) = own.col(j);
    }
    for (Index i = 0; i < rows; ++i) {
      const double psi =
          part.of(r.p).matrix().dot(all[0].row(i).transpose()) + window.weight_beyond(part);
      const Powers power(L, psi);
      if (power.P[1] == 0 && power.P[2] == 0) return sums;
      for (Index j = 1; j < LaplaceJets::kOrders; ++j) o.d[j] = all[j].row(i).transpose().array();
      add_node(r, part, o, power, du, gradient, sums);
    }
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
  const Vector by_a = r.means.transpose() * sums.X.matrix() + 2 * sums.Y * r.s + law.cov * sums.G;
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
                     const VectorView& z, const VectorView& target, Layer* gradient, Vector* miss) {
  const Vector a = layer.heads[0].U * z;
  const auto law = tokens.mixture(a);
  const Reading r = reading_of(layer, tokens, *law, a, z, target);
  const Sums sums = integrate(r, L, gradient != nullptr);
  if (gradient != nullptr) add_gradient(layer, *law, r, sums, z, *gradient);
  if (miss != nullptr) *miss = r.q + layer.heads[0].V * sums.M1;
  return r.q.squaredNorm() / 2 + r.Vq.dot(sums.M1) + sums.Q / 2;
}

}  // namespace esscher::detail
