#include "esscher/universal/two_tilts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/universal/integration_span.h"
#include "esscher/universal/laplace_jets.h"

namespace esscher {
namespace {

using Array = Eigen::ArrayXd;

constexpr Index kRowsPerStep = 2;
constexpr double kStep = kRowsPerStep * LaplaceJets::kStep;  // of u, u' and, at most, s
constexpr double kReach = 8.5;                               // deviations of s that are kept
constexpr double kNodeStep = 0.6;                            // deviations of s, at most

struct Axis {
  double first;
  Index n;

  explicit Axis(const IntegrationSpan& span)
      : first(span.left), n(static_cast<Index>(std::ceil((span.right - span.left) / kStep)) + 1) {}
  [[nodiscard]] double last() const { return first + static_cast<double>(n - 1) * kStep; }
};

// Deviations of s from its mean, with weights of sum 1.
struct Nodes {
  Array x, w;

  explicit Nodes(double tau) {
    const double step = std::min(kStep, kNodeStep * tau);
    const auto half = tau > 0 ? static_cast<Index>(kReach * tau / step) : 0;
    x = Array::LinSpaced(2 * half + 1, -step * static_cast<double>(half),
                         step * static_cast<double>(half));
    w = tau > 0 ? Array((-(x / tau).square() / 2).exp()) : Array(Array::Ones(1));
    w /= w.sum();
  }
};

// What values read of the wider score: slopes in s, covariances with r, and what is left of fg.
struct Regression {
  double tau, ratio, rho;
  Vector f_slope, g_slope, f_r, g_r;
  double fg;

  explicit Regression(const TwoTilts& t) {
    const double tau2 = std::max(0.0, t.cov(0, 0)), share = tau2 > 0 ? 1 / tau2 : 0;
    tau = std::sqrt(tau2);
    ratio = t.cov(0, 1) * share;
    rho = std::sqrt(std::max(0.0, t.cov(1, 1) - ratio * t.cov(0, 1)));
    f_slope = share * t.f_cross.col(0);
    g_slope = share * t.g_cross.col(0);
    f_r = t.f_cross.col(1) - ratio * t.f_cross.col(0);
    g_r = t.g_cross.col(1) - ratio * t.g_cross.col(0);
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

void fill_first_factor(double s, double weight, const Axis& axis, Index node, Factors& out) {
  constexpr double kMaxLogY = 7;  // e^-y = 0 beyond
  for (Index i = 0; i < axis.n; ++i) {
    const double y = std::exp(std::min(axis.first + static_cast<double>(i) * kStep + s, kMaxLogY));
    const double e = std::exp(-y);
    out.none(i, node) = e;
    out.once(i, node) = y * e;
    out.hit[i] -= weight * std::expm1(-y);
  }
}

Factors factors_of(const TwoTilts& t, const Axis& u, const Axis& v) {
  const Regression r(t);
  const Nodes nodes(r.tau);
  const Index K = t.weights.size(), m = t.f.cols(), N = K * nodes.x.size();
  const double reach = std::abs(r.ratio) * nodes.x.maxCoeff();
  const LaplaceJets jets(r.rho, v.first + t.mu.col(1).minCoeff() - reach,
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
      const Matrix all = jets.rows(v.first + t.mu(k, 1) + r.ratio * x, kRowsPerStep * v.n);
      const auto psi = [&](Index order) {
        return all.col(order)(Eigen::seqN(0, v.n, kRowsPerStep)).transpose();
      };
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
  const auto span = [&](Index head) {
    return integration_span(tokens.weights, tokens.mu.col(head),
                            std::sqrt(std::max(0.0, tokens.cov(head, head))), L, 1);
  };
  const Axis u(span(0)), v(span(1));
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
  return sum * kStep * kStep;
}

}  // namespace esscher
