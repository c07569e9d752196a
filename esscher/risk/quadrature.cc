#include "esscher/risk/quadrature.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/carriers.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/query_risk.h"

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
  Matrix X, SW;             // [n,d]: queries; rows Sigma w
  Vector y, label, weight;  // [n]: w'x; w'Sigma w + sig2
};

namespace {

// (U, r) in the letters of the header at all nodes. They are made in blocks, in parallel, so that
// what one block needs stays in cache.
struct Letters {
  Letters(const Matrix& S, const Matrix& X, const Matrix& SW, const Vector& label,
          const Readout& at)
      : v_y(at.r(S.rows())), Svx(S * at.r.head(S.rows())) {
    const Index n = X.rows(), d = S.rows();
    SAX.resize(n, d);
    for (Vector* letter : {&bx, &ga_y, &gr_y, &tau2, &g, &q}) letter->resize(n);
    const Matrix alpha_t = at.U.topLeftCorner(d, d).transpose(), Sa_t = alpha_t * S;
    const Vector beta = at.U.row(d).head(d), v_x = at.r.head(d);
    const double v_xSvx = v_x.dot(Svx);
    parallel_for((n + kBlock - 1) / kBlock, [&](std::int64_t block) {
      const Index first = block * kBlock, size = std::min(kBlock, n - first);
      const auto x = X.middleRows(first, size), sw = SW.middleRows(first, size);
      const auto of_block = [&](Vector& letter) { return letter.segment(first, size); };
      const auto labels = label.segment(first, size);
      const Matrix AX = x * alpha_t, sax = x * Sa_t;
      const Vector b = x * beta, swa = sw.cwiseProduct(AX).rowwise().sum(), swv = sw * v_x;
      const Vector gay = swa + labels.cwiseProduct(b), gry = swv + v_y * labels;
      SAX.middleRows(first, size) = sax;
      of_block(bx) = b;
      of_block(ga_y) = gay;
      of_block(gr_y) = gry;
      of_block(tau2) =
          (AX.cwiseProduct(sax).rowwise().sum() + b.cwiseProduct(swa) + b.cwiseProduct(gay))
              .cwiseMax(0.0);
      of_block(g) = sax * v_x + swv.cwiseProduct(b) + v_y * gay;
      of_block(q) = (v_xSvx + v_y * (swv + gry).array()).matrix();
    });
    if (!tau2.allFinite()) throw DomainError("softmax_risk: U or r is not finite or too large");
  }

  double v_y;
  Vector Svx;
  Matrix SAX;         // [n,d]: Sigma alpha x
  Vector bx;          // [n]: beta'x
  Vector ga_y, gr_y;  // [n]: last entries of G a and G r
  Vector tau2, g, q;  // [n]
};

}  // namespace

double default_control(std::int64_t L) {
  return std::max(0.0, 1.0 - 50.0 / static_cast<double>(L));
}

void check_readout(const LinearRegressionTask& task, const Readout& at) {
  check_dimension("softmax_risk", "r", at.r.size(), task.dim + 1);
  check_dimension("softmax_risk", "U", at.U.rows(), task.dim + 1);
}

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
  m.control = control.value_or(default_control(L));
  m.X = std::move(nodes.x);
  m.weight = std::move(nodes.weight);
  m.SW = nodes.w * task.prompt_cov;
  m.y = nodes.w.cwiseProduct(m.X).rowwise().sum();
  m.label = m.SW.cwiseProduct(nodes.w).rowwise().sum().array() + task.noise_variance;
}

SoftmaxRisk::~SoftmaxRisk() = default;
SoftmaxRisk::SoftmaxRisk(SoftmaxRisk&&) noexcept = default;
SoftmaxRisk& SoftmaxRisk::operator=(SoftmaxRisk&&) noexcept = default;

std::int64_t SoftmaxRisk::length() const { return impl_->tables.length(); }

NodeShares SoftmaxRisk::shares(const Readout& at) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const Letters l(m.task.prompt_cov, m.X, m.SW, m.label, at);
  const NodeFunctionTable table = m.tables.up_to(std::sqrt(l.tau2.maxCoeff()));
  NodeShares out{Vector(m.X.rows()), Vector(m.X.rows())};
  for (Index i = 0; i < m.X.rows(); ++i) {
    const double half = 0.5 * m.weight(i), miss = l.g(i) - m.y(i);
    out.limit(i) = half * miss * miss;
    out.excess(i) = half * node_error(table.at_tau2(l.tau2(i)), 0, l.g(i), l.q(i), m.y(i)).value;
  }
  return out;
}

double SoftmaxRisk::operator()(const Readout& at, Readout* gradient) const {
  const Impl& m = *impl_;
  check_readout(m.task, at);
  const Index d = m.task.dim, n = m.X.rows();
  // tau^2, g, q for all nodes first: the range of tau decides the table.
  const Letters l(m.task.prompt_cov, m.X, m.SW, m.label, at);
  const NodeFunctionTable table = m.tables.up_to(std::sqrt(l.tau2.maxCoeff()));

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
      const NodeError e =
          node_error(table.at_tau2(l.tau2(k)), 1 - m.control, l.g(k), l.q(k), m.y(k));
      sum.risk += m.weight(k) * e.value;
      d_g(i) = m.weight(k) * e.d_g;
      d_t(i) = m.weight(k) * 2 * e.d_tau2;
      d_q(i) = m.weight(k) * 2 * e.d_q;
    }
    if (gradient == nullptr) return;
    const auto rows = [&](const auto& matrix) { return matrix.middleRows(first, size); };
    const auto X = rows(m.X);
    // d/da = d_g G r + d_t G a,   d/dr = d_g G a + d_q G r
    const Matrix ga = rows(l.SAX) + l.bx.segment(first, size).asDiagonal() * rows(m.SW);
    Matrix gr = l.v_y * rows(m.SW);
    gr.rowwise() += l.Svx.transpose();
    const Vector gay = l.ga_y.segment(first, size), gry = l.gr_y.segment(first, size);
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

namespace {

// The nodes' part of a risk with and without the control variate R_inf. For long prompts the
// control takes most of the error away, for frozen ones (large tau) it adds some. Both are
// unbiased; the one with the smaller spread is the answer.
class TwoAnswers {
 public:
  void add(const NodeShares& shares) {
    with_.add(shares.excess);
    without_.add(shares.limit + shares.excess);
  }
  [[nodiscard]] Estimate estimate(double limit, double irreducible) const {
    const bool controlled = with_.means.std_error() <= without_.means.std_error();
    const Part& part = controlled ? with_ : without_;
    Estimate out = part.means.estimate(Engine::quadrature);
    out.value += controlled ? limit : irreducible;
    out.heavy = part.carriers < kFewCarriers;
    return out;
  }

 private:
  struct Part {
    Moments means;               // over scramblings
    double carriers = HUGE_VAL;  // the least of them

    void add(const Vector& shares) {
      means.add(shares.mean());
      carriers = std::min(carriers, esscher::carriers(shares));
    }
  };
  Part with_, without_;
};

}  // namespace

Estimate softmax_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                      const QuadratureOptions& options, const Stream& stream) {
  if (length.is_infinite()) return {limit_risk(task, at), 0, 0, Engine::exact};
  if (options.scramblings < 2) {
    throw_argument("softmax_risk", "scramblings", std::to_string(options.scramblings),
                   "an integer >= 2");
  }
  check_readout(task, at);
  const NodeTables tables(length.count());
  const ScoreForms forms = score_forms(task, at);
  TwoAnswers answers;
  for (Index i = 0; i < options.scramblings; ++i) {
    const Stream own = stream.split(i);
    if (is_blind_to_labels(task, at)) {
      const Matrix normals = query_normals(task, options.log2_nodes, own);
      answers.add(QueryRisk(task, tables, query_nodes(task, normals, forms)).shares(at));
    } else {
      const Matrix normals = pair_normals(task, options.log2_nodes, own);
      answers.add(SoftmaxRisk(task, tables, regression_nodes(task, normals, forms)).shares(at));
    }
  }
  return answers.estimate(limit_risk(task, at), task.irreducible_risk());
}

}  // namespace esscher
