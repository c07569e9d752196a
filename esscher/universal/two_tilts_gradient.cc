#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/universal/detail/two_tilts_lattice.h"
#include "esscher/universal/laplace_jets.h"
#include "esscher/universal/two_tilts.h"

namespace esscher {
namespace {

using detail::ScoreNodes;
using detail::ScoreRegression;
using detail::TiltAxis;

constexpr Index kOrders = 6;  // derivatives 0 .. 5 in each score

// d_1^p d_2^q phi_k = P[p] Q[q] on the lattice, p + q > 0.
struct Component {
  std::array<Matrix, kOrders> P;  // [n,N]
  std::array<Matrix, kOrders> Q;  // [N,n'], with the weights of the nodes
  Matrix hit;                     // 1 - phi_k [n,n']
};

Component component_of(const TwoTilts& t, Index k, const ScoreRegression& r,
                       const ScoreNodes& nodes, const LaplaceJets& jets, const TiltAxis& u,
                       const TiltAxis& v) {
  const Index N = nodes.x.size();
  Component out;
  for (Matrix& P : out.P) P.resize(u.n, N);
  for (Matrix& Q : out.Q) Q.resize(N, v.n);
  Vector first_hit = Vector::Zero(u.n);
  Matrix miss(N, v.n);  // w (1 - Psi_0)
  std::array<double, 8> at{};
  for (Index j = 0; j < N; ++j) {
    const double x = nodes.x[j], w = nodes.w[j];
    for (Index i = 0; i < u.n; ++i) {
      laplace_functions(u.at(i) + t.mu(k, 0) + x, at.data());
      out.P[0](i, j) = 1 - at[0];
      for (Index p = 1; p < kOrders; ++p) out.P[p](i, j) = at[p];
      first_hit[i] += w * at[0];
    }
    const Matrix orders = v.orders(jets, t.mu(k, 1) + r.ratio * x);
    const auto psi = [&](Index q) { return orders.row(q); };
    miss.row(j) = w * psi(0);
    out.Q[0].row(j) = (w * (1 - psi(0).array())).matrix();
    for (Index q = 1; q < kOrders; ++q) out.Q[q].row(j) = w * psi(q);
  }
  out.hit = (out.P[0] * miss).colwise() + first_hit;
  return out;
}

// Values of a component: f, g and their covariances with the scores.
struct Values {
  Vector f, g, fs, ft, gs, gt;
  double fg;

  Values(const TwoTilts& t, Index k)
      : f(t.f.row(k).transpose()),
        g(t.g.row(k).transpose()),
        fs(t.f_cross.col(0)),
        ft(t.f_cross.col(1)),
        gs(t.g_cross.col(0)),
        gt(t.g_cross.col(1)),
        fg(t.fg) {}
  // Factors of d_1^p d_2^q phi_k in F_11.
  [[nodiscard]] double c11() const { return f.dot(g) + fg; }
  [[nodiscard]] double c21() const { return f.dot(gs) + g.dot(fs); }
  [[nodiscard]] double c12() const { return f.dot(gt) + g.dot(ft); }
  [[nodiscard]] double c31() const { return fs.dot(gs); }
  [[nodiscard]] double c22() const { return fs.dot(gt) + ft.dot(gs); }
  [[nodiscard]] double c13() const { return ft.dot(gt); }
};

struct Fields {
  Matrix psi, both;                   // 1 - phi, F_11 [n,n']
  std::vector<Matrix> first, second;  // F_10, F_01, for each coordinate
};

void add_fields(const Component& c, const Values& v, double weight, Fields& out) {
  out.psi += weight * c.hit;
  out.both +=
      weight * (c.P[1] * (v.c11() * c.Q[1] + v.c12() * c.Q[2] + v.c13() * c.Q[3]) +
                c.P[2] * (v.c21() * c.Q[1] + v.c22() * c.Q[2]) + c.P[3] * (v.c31() * c.Q[1]));
  for (std::size_t i = 0; i < out.first.size(); ++i) {
    const auto at = static_cast<Index>(i);
    out.first[i] -=
        weight * (c.P[1] * (v.f[at] * c.Q[0] + v.ft[at] * c.Q[1]) + c.P[2] * (v.fs[at] * c.Q[0]));
    out.second[i] -=
        weight * (c.P[0] * (v.g[at] * c.Q[1] + v.gt[at] * c.Q[2]) + c.P[1] * (v.gs[at] * c.Q[1]));
  }
}

// sum over the lattice of M d_1^p d_2^q phi_k, for low <= p <= high.
class Contraction {
 public:
  Contraction(const Component& c, const Matrix& M, Index low, Index high) {
    for (Index p = low; p <= high; ++p) {
      const Matrix R = c.P[p].transpose() * M;
      for (Index q = 0; q < kOrders; ++q) sums_[p][q] = R.cwiseProduct(c.Q[q]).sum();
    }
  }
  double operator()(Index p, Index q) const { return sums_[p][q]; }

 private:
  std::array<std::array<double, kOrders>, kOrders> sums_{};
};

// Derivatives of the value in the fields, times the weight of a lattice point.
struct Duals {
  Matrix phi, both;
  std::vector<Matrix> first, second;
};

struct Sums {
  Contraction both, phi;
  std::vector<Contraction> first, second;

  Sums(const Component& c, const Duals& d) : both(c, d.both, 1, 5), phi(c, d.phi, 0, 2) {
    for (const Matrix& M : d.first) first.emplace_back(c, M, 1, 4);
    for (const Matrix& M : d.second) second.emplace_back(c, M, 0, 3);
  }
  // The value of d_1^a d_2^b of everything that depends on the scores of the component, a + b > 0.
  [[nodiscard]] double shifted(const Values& v, Index a, Index b) const {
    double out = phi(a, b) + v.c11() * both(1 + a, 1 + b) + v.c21() * both(2 + a, 1 + b) +
                 v.c12() * both(1 + a, 2 + b) + v.c31() * both(3 + a, 1 + b) +
                 v.c22() * both(2 + a, 2 + b) + v.c13() * both(1 + a, 3 + b);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const auto at = static_cast<Index>(i);
      out -= v.f[at] * first[i](1 + a, b) + v.fs[at] * first[i](2 + a, b) +
             v.ft[at] * first[i](1 + a, 1 + b);
      out -= v.g[at] * second[i](a, 1 + b) + v.gs[at] * second[i](1 + a, 1 + b) +
             v.gt[at] * second[i](a, 2 + b);
    }
    return out;
  }
};

void add_slopes(const Sums& S, const Values& v, double weight, Index k, TwoTilts& slope) {
  slope.mu(k, 0) = weight * S.shifted(v, 1, 0);
  slope.mu(k, 1) = weight * S.shifted(v, 0, 1);
  const double cross = weight * S.shifted(v, 1, 1) / 2;
  slope.cov(0, 0) += weight * S.shifted(v, 2, 0) / 2;
  slope.cov(0, 1) += cross;
  slope.cov(1, 0) += cross;
  slope.cov(1, 1) += weight * S.shifted(v, 0, 2) / 2;
  const Contraction& B = S.both;
  slope.fg += weight * B(1, 1);
  for (std::size_t i = 0; i < S.first.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const Contraction &F = S.first[i], &G = S.second[i];
    const double f = v.f[at], fs = v.fs[at], ft = v.ft[at];
    const double g = v.g[at], gs = v.gs[at], gt = v.gt[at];
    slope.f(k, at) = weight * (g * B(1, 1) + gs * B(2, 1) + gt * B(1, 2) - F(1, 0));
    slope.g(k, at) = weight * (f * B(1, 1) + fs * B(2, 1) + ft * B(1, 2) - G(0, 1));
    slope.f_cross(at, 0) += weight * (g * B(2, 1) + gs * B(3, 1) + gt * B(2, 2) - F(2, 0));
    slope.f_cross(at, 1) += weight * (g * B(1, 2) + gs * B(2, 2) + gt * B(1, 3) - F(1, 1));
    slope.g_cross(at, 0) += weight * (f * B(2, 1) + fs * B(3, 1) + ft * B(2, 2) - G(1, 1));
    slope.g_cross(at, 1) += weight * (f * B(1, 2) + fs * B(2, 2) + ft * B(1, 3) - G(0, 2));
  }
}

Duals duals_of(const Fields& fields, std::int64_t L, double& value) {
  const double Ld = static_cast<double>(L), step = TiltAxis::kStep * TiltAxis::kStep;
  const Eigen::ArrayXXd log_phi = (-fields.psi.array().min(1.0)).log1p();
  const auto power = [&](std::int64_t of, double factor) -> Matrix {
    const Index n = fields.psi.rows(), m = fields.psi.cols();
    if (of < 0) return Matrix::Zero(n, m);
    if (of == 0) return Matrix::Constant(n, m, factor);
    return (factor * (static_cast<double>(of) * log_phi).exp()).matrix();
  };
  const Matrix one = power(L - 1, step * Ld), two = power(L - 2, step * Ld * (Ld - 1));
  const Matrix three = power(L - 3, step * Ld * (Ld - 1) * (Ld - 2));
  Matrix pairs = Matrix::Zero(one.rows(), one.cols());
  Duals out{{}, one, {}, {}};
  for (std::size_t i = 0; i < fields.first.size(); ++i) {
    pairs += fields.first[i].cwiseProduct(fields.second[i]);
    out.first.emplace_back(two.cwiseProduct(fields.second[i]));
    out.second.emplace_back(two.cwiseProduct(fields.first[i]));
  }
  value = one.cwiseProduct(fields.both).sum() + two.cwiseProduct(pairs).sum();
  out.phi = two.cwiseProduct(fields.both) + three.cwiseProduct(pairs);
  return out;
}

}  // namespace

TwoTiltsGradient two_tilts_gradient(const TwoTilts& t, std::int64_t L) {
  t.check();
  if (L < 1) throw_argument("two tilts", "L", std::to_string(L), "an integer >= 1");
  if (t.cov(0, 0) < t.cov(1, 1)) {
    TwoTiltsGradient out = two_tilts_gradient(t.exchanged(), L);
    out.slope = out.slope.exchanged();
    return out;
  }
  const Index K = t.weights.size(), m = t.f.cols();
  const TiltAxis u(t, 0, L), v(t, 1, L);
  const ScoreRegression regression(t);
  const ScoreNodes nodes(regression.tau, ScoreNodes::kGradientStep);
  const double reach = std::abs(regression.ratio) * nodes.x.maxCoeff();
  const LaplaceJets jets(regression.rho, v.first + t.mu.col(1).minCoeff() - reach,
                         v.last() + t.mu.col(1).maxCoeff() + reach);
  const auto M = static_cast<std::size_t>(m);
  const Matrix zero = Matrix::Zero(u.n, v.n);
  Fields fields{zero, zero, std::vector<Matrix>(M, zero), std::vector<Matrix>(M, zero)};
  const auto component = [&](Index k) { return component_of(t, k, regression, nodes, jets, u, v); };
  for (Index k = 0; k < K; ++k) add_fields(component(k), Values(t, k), t.weights[k], fields);
  TwoTiltsGradient out;
  const Duals duals = duals_of(fields, L, out.value);
  out.slope = {{},
               Matrix::Zero(K, 2),
               Matrix::Zero(2, 2),
               Matrix::Zero(K, m),
               Matrix::Zero(K, m),
               Matrix::Zero(m, 2),
               Matrix::Zero(m, 2),
               0};
  for (Index k = 0; k < K; ++k) {
    const Component c = component(k);
    add_slopes(Sums(c, duals), Values(t, k), t.weights[k], k, out.slope);
  }
  return out;
}

}  // namespace esscher
