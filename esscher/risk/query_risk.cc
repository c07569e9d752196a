#include "esscher/risk/query_risk.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/closed_form.h"

namespace esscher {
namespace {

constexpr Index kBlock = 256;  // nodes per unit of parallel work; part of the result's rounding

}  // namespace

struct QueryRisk::Impl {
  LinearRegressionTask task;
  NodeTables tables;
  double control = 0;
  Matrix X;       // [n,d]
  Vector weight;  // [n]
};

namespace {

// (U, r) in the letters of the header at all nodes.
struct Letters {
  Letters(const LinearRegressionTask& task, const Matrix& X, const Readout& at)
      : S(task.prompt_cov),
        s2(task.task_variance),
        label(s2 * S.trace() + task.noise_variance),
        v_x(at.r.head(task.dim)),
        v_y(at.r(task.dim)),
        Svx(S * v_x),
        Q(v_x.dot(Svx) + v_y * v_y * label) {
    const Matrix alpha_t = at.U.topLeftCorner(task.dim, task.dim).transpose();
    const Matrix AX = X * alpha_t;
    E = X * (alpha_t * S);
    tau2 = AX.cwiseProduct(E).rowwise().sum().cwiseMax(0.0);
    c = E * v_x;
    ee = E.rowwise().squaredNorm();
    ex = E.cwiseProduct(X).rowwise().sum();
    xx = X.rowwise().squaredNorm();
    if (!tau2.allFinite()) throw DomainError("softmax_risk: U or r is not finite or too large");
  }

  const Matrix& S;
  double s2, label;
  Vector v_x;
  double v_y;
  Vector Svx;
  double Q;
  Matrix E;                    // [n,d]: rows e
  Vector tau2, c, ee, ex, xx;  // [n]
};

// A0, A1, A2 of one node and the universal functions there.
struct Node {
  Node(const Letters& l, const NodeFunctions& u, Index i)
      : nn(l.v_y * l.v_y * l.ee(i)),
        nx(l.v_y * l.ex(i)),
        A0(l.c(i) * l.c(i) + l.s2 * (nn - 2 * nx + l.xx(i))),
        A1(l.c(i) * l.c(i) + l.s2 * (nn - nx)),
        A2(l.c(i) * l.c(i) + l.s2 * nn),
        excess((l.Q - 2 * A1) * u.H + A2 * u.k),
        by_tau2((l.Q - 2 * A1) * u.dH + A2 * u.dk) {}
  double nn, nx;  // n'n, n'x
  double A0, A1, A2;
  double excess;  // over the error A0 of an infinite prompt
  double by_tau2;
};

}  // namespace

QueryRisk::QueryRisk(const LinearRegressionTask& task, NodeTables tables, QueryNodes nodes,
                     std::optional<double> control) {
  task.check();
  check_dimension("softmax_risk", "nodes", nodes.x.cols(), task.dim);
  const double c = control.value_or(default_control(tables.length()));
  impl_ = std::make_shared<const Impl>(
      Impl{task, std::move(tables), c, std::move(nodes.x), std::move(nodes.weight)});
}

NodeShares QueryRisk::shares(const Readout& at) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const Letters l(m.task, m.X, at);
  const NodeFunctionTable table = m.tables.up_to(std::sqrt(l.tau2.maxCoeff()));
  NodeShares out{Vector(m.X.rows()), Vector(m.X.rows())};
  for (Index i = 0; i < m.X.rows(); ++i) {
    const Node node(l, table.at_tau2(l.tau2(i)), i);
    out.limit(i) = 0.5 * m.weight(i) * node.A0;
    out.excess(i) = 0.5 * m.weight(i) * node.excess;
  }
  return out;
}

double QueryRisk::operator()(const Readout& at, Readout* gradient) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const Index d = m.task.dim, n = m.X.rows();
  const Letters l(m.task, m.X, at);
  const NodeFunctionTable table = m.tables.up_to(std::sqrt(l.tau2.maxCoeff()));
  const double rest = 1 - m.control;

  struct Sums {
    double risk = 0, v_y = 0, H = 0;
    Vector v_x, beta, c_x;  // [d]
    Matrix ex, xx, tx;      // [d,d]: weighted sums of e x', x x' and by_tau2 e x'
  };
  std::vector<Sums> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  parallel_for(static_cast<std::int64_t>(sums.size()), [&](std::int64_t block) {
    const Index first = block * kBlock, size = std::min(kBlock, n - first);
    Sums& sum = sums[block];
    Vector to_c(size), on_e(size), on_x(size), by_tau2(size), by_beta(size);
    for (Index i = 0; i < size; ++i) {
      const Index j = first + i;
      const NodeFunctions u = table.at_tau2(l.tau2(j));
      const Node node(l, u, j);
      const double w = m.weight(j), c = l.c(j);
      sum.risk += w * (rest * node.A0 + node.excess);
      // The derivative of the error in g is D0 + D1'w, D0 = to_c, D1 = on_e e + on_x x.
      to_c(i) = 2 * w * c * (rest + u.k - 2 * u.H);
      on_e(i) = 2 * w * l.v_y * (rest + u.k - 2 * u.H);
      on_x(i) = -2 * w * (rest - u.H);
      by_tau2(i) = 2 * w * node.by_tau2;
      sum.H += 2 * w * u.H;
      sum.v_y += l.s2 * (on_e(i) * l.ee(j) + on_x(i) * l.ex(j));
      // D1'Svx, and the part of the error that is odd in w, times e'w.
      const double Sve = l.Svx.dot(l.E.row(j)), Svx_x = l.Svx.dot(m.X.row(j));
      const double ne = l.v_y * l.ee(j), me = ne - l.ex(j);
      by_beta(i) = to_c(i) * l.v_y * l.label + l.s2 * (on_e(i) * Sve + on_x(i) * Svx_x) +
                   4 * w * l.s2 * ((l.v_y * Sve - c * (ne + me)) * u.dH + c * ne * u.dk);
    }
    if (gradient == nullptr) return;
    const auto X = m.X.middleRows(first, size), E = l.E.middleRows(first, size);
    sum.v_x = E.transpose() * to_c;
    sum.c_x = X.transpose() * to_c;
    sum.beta = X.transpose() * by_beta;
    sum.ex = E.transpose() * (on_e.asDiagonal() * X);
    sum.xx = X.transpose() * (on_x.asDiagonal() * X);
    sum.tx = E.transpose() * (by_tau2.asDiagonal() * X);
  });

  const double weight = 0.5 / static_cast<double>(n);
  Readout blind = at;
  blind.U.row(d).head(d).setZero();
  double risk = rest * m.task.irreducible_risk() + m.control * limit_risk(m.task, blind, gradient);
  if (gradient != nullptr) *gradient *= m.control;
  for (const Sums& sum : sums) {
    risk += weight * sum.risk;
    if (gradient == nullptr) continue;
    gradient->U.topLeftCorner(d, d) +=
        weight * (l.Svx * sum.c_x.transpose() + l.v_y * l.s2 * (l.S * (sum.ex + sum.xx)) + sum.tx);
    gradient->U.row(d).head(d) += weight * sum.beta.transpose();
    gradient->r.head(d) += weight * (sum.v_x + sum.H * l.Svx);
    gradient->r(d) += weight * (sum.v_y + sum.H * l.v_y * l.label);
  }
  return risk;
}

}  // namespace esscher
