#include "esscher/risk/quadrature.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/closed_form.h"

namespace esscher {
namespace {

constexpr Index kBlock = 256;  // nodes per unit of parallel work; part of the result's rounding

}  // namespace

struct SoftmaxRisk::Impl {
  Impl(LinearRegressionTask given, NodeTables of_length)
      : task(std::move(given)), tables(std::move(of_length)) {}

  LinearRegressionTask task;
  NodeTables tables;
  double control = 0;
  Matrix X, SW;     // [n,d]: queries; rows Sigma w
  Vector y, label;  // [n]: w'x; w'Sigma w + sig2
};

SoftmaxRisk::SoftmaxRisk(const LinearRegressionTask& task, std::int64_t L, RegressionNodes nodes,
                         std::optional<double> control)
    : SoftmaxRisk(task, NodeTables(L), std::move(nodes), control) {}

SoftmaxRisk::SoftmaxRisk(const LinearRegressionTask& task, NodeTables tables, RegressionNodes nodes,
                         std::optional<double> control)
    : impl_(std::make_unique<Impl>(task, std::move(tables))) {
  const std::int64_t L = impl_->tables.length();
  task.check();
  if (L < 1) throw_argument("softmax_risk", "length", std::to_string(L), "an integer >= 1");
  check_dimension("softmax_risk", "nodes", nodes.w.cols(), task.dim);
  Impl& m = *impl_;
  m.control = control.value_or(std::max(0.0, 1.0 - 50.0 / static_cast<double>(L)));
  m.X = std::move(nodes.x);
  m.SW = nodes.w * task.prompt_cov;
  m.y = nodes.w.cwiseProduct(m.X).rowwise().sum();
  m.label = m.SW.cwiseProduct(nodes.w).rowwise().sum().array() + task.noise_variance;
}

SoftmaxRisk::~SoftmaxRisk() = default;
SoftmaxRisk::SoftmaxRisk(SoftmaxRisk&&) noexcept = default;
SoftmaxRisk& SoftmaxRisk::operator=(SoftmaxRisk&&) noexcept = default;

std::int64_t SoftmaxRisk::length() const { return impl_->tables.length(); }

double SoftmaxRisk::operator()(const Readout& at, Readout* gradient) const {
  const Impl& m = *impl_;
  const Index d = m.task.dim, n = m.X.rows();
  check_dimension("softmax_risk", "r", at.r.size(), d + 1);
  check_dimension("softmax_risk", "U", at.U.rows(), d + 1);
  const Matrix& S = m.task.prompt_cov;
  const Matrix alpha = at.U.topLeftCorner(d, d);
  const Vector beta = at.U.row(d).head(d), v_x = at.r.head(d), Svx = S * v_x;
  const double v_y = at.r(d), vSv = v_x.dot(Svx);
  const Matrix alpha_t = alpha.transpose(), Sa_t = alpha_t * S;

  // tau^2, g, q for all nodes first: the range of tau decides the table.
  const Matrix AX = m.X * alpha_t, SAX = m.X * Sa_t;
  const Vector bx = m.X * beta, swa = m.SW.cwiseProduct(AX).rowwise().sum(), swv = m.SW * v_x;
  const Vector ga_y = swa + m.label.cwiseProduct(bx);  // last entry of G a
  const Vector gr_y = swv + v_y * m.label;             // last entry of G r
  const Vector tau2 =
      (AX.cwiseProduct(SAX).rowwise().sum() + bx.cwiseProduct(swa) + bx.cwiseProduct(ga_y))
          .cwiseMax(0.0);
  const Vector g = SAX * v_x + swv.cwiseProduct(bx) + v_y * ga_y;
  const Vector q = (vSv + v_y * (swv + gr_y).array()).matrix();
  if (!tau2.allFinite()) throw DomainError("softmax_risk: U or r is not finite or too large");
  const UniversalTable& table = m.tables.up_to(std::sqrt(tau2.maxCoeff()));

  struct Sums {
    double risk = 0;
    Readout slope;
  };
  std::vector<Sums> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  parallel_for(static_cast<std::int64_t>(sums.size()), [&](std::int64_t block) {
    const Index first = block * kBlock, size = std::min(kBlock, n - first);
    Sums& sum = sums[block];
    Vector d_g(size), d_t(size), d_q(size);
    for (Index i = 0; i < size; ++i) {
      const Index k = first + i;
      const NodeError e = node_error(table, 1 - m.control, g(k), tau2(k), q(k), m.y(k));
      sum.risk += e.value;
      d_g(i) = e.d_g;
      d_t(i) = 2 * e.d_tau2;
      d_q(i) = 2 * e.d_q;
    }
    if (gradient == nullptr) return;
    const auto rows = [&](const auto& matrix) { return matrix.middleRows(first, size); };
    const auto X = rows(m.X);
    // d/da = d_g G r + d_t G a,   d/dr = d_g G a + d_q G r
    const Matrix ga = rows(SAX) + bx.segment(first, size).asDiagonal() * rows(m.SW);
    Matrix gr = v_y * rows(m.SW);
    gr.rowwise() += Svx.transpose();
    const Vector gay = ga_y.segment(first, size), gry = gr_y.segment(first, size);
    const Matrix a_bar = d_g.asDiagonal() * gr + d_t.asDiagonal() * ga;
    sum.slope = Readout::zero(d + 1);
    sum.slope.U.topLeftCorner(d, d) = a_bar.transpose() * X;
    sum.slope.U.row(d).head(d) = (d_g.cwiseProduct(gry) + d_t.cwiseProduct(gay)).transpose() * X;
    sum.slope.r.head(d) = ga.transpose() * d_g + gr.transpose() * d_q;
    sum.slope.r(d) = d_g.dot(gay) + d_q.dot(gry);
  });

  const double weight = 0.5 / static_cast<double>(n);
  double risk =
      (1 - m.control) * m.task.irreducible_risk() + m.control * limit_risk(m.task, at, gradient);
  if (gradient != nullptr) {
    gradient->U *= m.control;
    gradient->r *= m.control;
  }
  for (const Sums& sum : sums) {
    risk += weight * sum.risk;
    if (gradient == nullptr) continue;
    gradient->U += weight * sum.slope.U;
    gradient->r += weight * sum.slope.r;
  }
  return risk;
}

Estimate softmax_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                      const QuadratureOptions& options, const Stream& stream) {
  if (length.is_infinite()) return {limit_risk(task, at), 0, 0, Engine::exact};
  if (options.scramblings < 2) {
    throw_argument("softmax_risk", "scramblings", std::to_string(options.scramblings),
                   "an integer >= 2");
  }
  // The risk is computed with the control variate and without it. For long prompts the control
  // takes most of the error away, for frozen ones (large tau) it adds some. Both are unbiased; the
  // one with the smaller spread is the answer.
  const NodeTables tables(length.count());
  Moments with, without;
  for (Index i = 0; i < options.scramblings; ++i) {
    const RegressionNodes nodes = regression_nodes(task, options.log2_nodes, stream.split(i));
    with.add(SoftmaxRisk(task, tables, nodes)(at));
    without.add(SoftmaxRisk(task, tables, nodes, 0.0)(at));
  }
  return (with.std_error() <= without.std_error() ? with : without).estimate(Engine::exact);
}

}  // namespace esscher
