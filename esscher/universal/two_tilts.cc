#include "esscher/universal/two_tilts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/universal/detail/two_tilts_lattice.h"
#include "esscher/universal/laplace_jets.h"

namespace esscher {
namespace {

using detail::ScoreNodes;
using detail::ScoreRegression;
using detail::TiltAxis;

// What values read of the wider score: slopes in s, covariances with r, and what is left of fg.
struct Reads {
  Vector f_slope, g_slope, f_r, g_r;
  double fg;

  Reads(const TwoTilts& t, const ScoreRegression& r) {
    const double share = r.tau > 0 ? 1 / t.cov(0, 0) : 0;
    f_slope = share * t.f_cross.col(0);
    g_slope = share * t.g_cross.col(0);
    f_r = t.f_cross.col(1) - r.ratio * t.f_cross.col(0);
    g_r = t.g_cross.col(1) - r.ratio * t.g_cross.col(0);
    fg = t.fg - f_slope.dot(t.g_cross.col(0));
  }
};

// The factors of the products, one row or column for each node (k, i).
struct Factors {
  Matrix none, once;                  // e^-y, y e^-y [n,N]
  Vector hit;                         // sum_i w_i (1 - e^-y) [n]
  Matrix miss;                        // w (1 - Psi_0) [N,n']
  Matrix both;                        // of F_11[f'g] [N,n']
  std::vector<Matrix> first, second;  // of F_10[f], F_01[g], for each coordinate [N,n']
};

void fill_first_factor(double s, double weight, const TiltAxis& axis, Index node, Factors& out) {
  constexpr double kMaxLogY = 7;  // e^-y = 0 beyond
  for (Index i = 0; i < axis.n; ++i) {
    const double y = std::exp(std::min(axis.at(i) + s, kMaxLogY));
    const double e = std::exp(-y);
    out.none(i, node) = e;
    out.once(i, node) = y * e;
    out.hit[i] -= weight * std::expm1(-y);
  }
}

Factors factors_of(const TwoTilts& t, const TiltAxis& u, const TiltAxis& v) {
  const ScoreRegression score(t);
  const Reads r(t, score);
  const ScoreNodes nodes(score.tau, ScoreNodes::kValueStep);
  const Index K = t.weights.size(), m = t.f.cols(), N = K * nodes.x.size();
  const double reach = std::abs(score.ratio) * nodes.x.maxCoeff();
  const LaplaceJets jets(score.rho, v.first + t.mu.col(1).minCoeff() - reach,
                         v.last() + t.mu.col(1).maxCoeff() + reach);
  Factors out{Matrix(u.n, N),
              Matrix(u.n, N),
              Vector::Zero(u.n),
              Matrix(N, v.n),
              Matrix(N, v.n),
              std::vector<Matrix>(static_cast<std::size_t>(m), Matrix(N, v.n)),
              std::vector<Matrix>(static_cast<std::size_t>(m), Matrix(N, v.n))};
  Index node = 0;
  for (Index k = 0; k < K; ++k) {
    for (Index i = 0; i < nodes.x.size(); ++i, ++node) {
      const double x = nodes.x[i], w = t.weights[k] * nodes.w[i];
      fill_first_factor(t.mu(k, 0) + x, w, u, node, out);
      const Matrix orders = v.orders(jets, t.mu(k, 1) + score.ratio * x);
      const auto psi = [&](Index order) { return orders.row(order); };
      const Vector f = t.f.row(k).transpose() + x * r.f_slope;
      const Vector g = t.g.row(k).transpose() + x * r.g_slope;
      out.miss.row(node) = w * psi(0);
      out.both.row(node) =
          -w * ((f.dot(g) + r.fg) * psi(1) + (f.dot(r.g_r) + g.dot(r.f_r)) * psi(2) +
                r.f_r.dot(r.g_r) * psi(3));
      for (Index c = 0; c < m; ++c) {
        const auto at = static_cast<std::size_t>(c);
        out.first[at].row(node) = w * (f[c] * (1 - psi(0).array()).matrix() + r.f_r[c] * psi(1));
        out.second[at].row(node) = -w * (g[c] * psi(1) + r.g_r[c] * psi(2));
      }
    }
  }
  return out;
}

}  // namespace

TwoTilts TwoTilts::exchanged() const {
  return {weights,
          mu.rowwise().reverse(),
          cov.reverse(),
          g,
          f,
          g_cross.rowwise().reverse(),
          f_cross.rowwise().reverse(),
          fg};
}

void TwoTilts::check() const {
  const Index K = weights.size(), m = f.cols();
  check_dimension("two tilts", "rows of mu", mu.rows(), K);
  check_dimension("two tilts", "columns of mu", mu.cols(), 2);
  check_dimension("two tilts", "rows of cov", cov.rows(), 2);
  check_dimension("two tilts", "columns of cov", cov.cols(), 2);
  check_dimension("two tilts", "rows of f", f.rows(), K);
  check_dimension("two tilts", "rows of g", g.rows(), K);
  check_dimension("two tilts", "columns of g", g.cols(), m);
  check_dimension("two tilts", "rows of f_cross", f_cross.rows(), m);
  check_dimension("two tilts", "rows of g_cross", g_cross.rows(), m);
  check_dimension("two tilts", "columns of f_cross", f_cross.cols(), 2);
  check_dimension("two tilts", "columns of g_cross", g_cross.cols(), 2);
}

double two_tilts(const TwoTilts& tokens, std::int64_t L) {
  tokens.check();
  if (L < 1) throw_argument("two tilts", "L", std::to_string(L), "an integer >= 1");
  if (tokens.cov(0, 0) < tokens.cov(1, 1)) return two_tilts(tokens.exchanged(), L);
  const TiltAxis u(tokens, 0, L), v(tokens, 1, L);
  const Factors factors = factors_of(tokens, u, v);
  const Matrix psi = (factors.none * factors.miss).colwise() + factors.hit;
  Matrix pairs = Matrix::Zero(u.n, v.n);
  for (std::size_t c = 0; c < factors.first.size(); ++c) {
    pairs.array() +=
        (factors.once * factors.first[c]).array() * (factors.none * factors.second[c]).array();
  }
  const double Ld = static_cast<double>(L);
  const Eigen::ArrayXXd log_phi = (-psi.array().min(1.0)).log1p();
  const auto power = [&](std::int64_t of) -> Eigen::ArrayXXd {
    if (of == 0) return Eigen::ArrayXXd::Ones(u.n, v.n);
    return (static_cast<double>(of) * log_phi).exp();
  };
  double sum = Ld * ((factors.once * factors.both).array() * power(L - 1)).sum();
  if (L > 1) sum += Ld * (Ld - 1) * (pairs.array() * power(L - 2)).sum();
  return sum * TiltAxis::kStep * TiltAxis::kStep;
}

}  // namespace esscher
