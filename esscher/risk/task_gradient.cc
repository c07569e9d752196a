#include "esscher/risk/task_gradient.h"

#include <cmath>
#include <limits>

#include "esscher/base/cholesky.h"
#include "esscher/base/error.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/detail/letters.h"

namespace esscher {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

Matrix symmetric(const Matrix& A) { return 0.5 * (A + A.transpose()); }

TaskGradient zero(Index d) { return {0, 0, Matrix::Zero(d, d), Matrix::Zero(d, d)}; }

void add(TaskGradient& to, double factor, const TaskGradient& from) {
  to.noise_variance += factor * from.noise_variance;
  to.task_variance += factor * from.task_variance;
  to.prompt_cov += factor * from.prompt_cov;
  to.query_cov += factor * from.query_cov;
}

// The letters of closed_form.h, and what derivatives in the task need besides.
struct Letters : detail::Letters {
  Letters(const LinearRegressionTask& task, const Readout& at)
      : detail::Letters(task, at), Sqb(Sq * beta), b(beta.dot(Sqb)) {}

  // The derivative of `fourth` in S.
  [[nodiscard]] Matrix fourth_by_S() const {
    return 2 * trace * Matrix::Identity(S.rows(), S.cols()) + 4 * S;
  }

  Vector Sqb;
  double b;
};

// Of B(p, M + shift I).
TaskGradient of_braces(const Letters& l, double shift) {
  const Index d = l.S.rows();
  const Vector p = l.alpha.transpose() * (l.S * l.v_x) + l.v_y * l.sig2 * l.beta;
  const Matrix N = l.v_x * l.beta.transpose() + l.v_y * l.alpha;  // M = S N - I
  Matrix M = l.S * N;
  M.diagonal().array() += shift - 1;
  const Matrix MSq = M * l.Sq;
  const double st = l.s2 * l.trace, pb = p.dot(l.Sqb), vy2 = l.v_y * l.v_y;
  const Vector p_bar = 2 * (l.Sq * p + st * l.v_y * l.Sqb);
  TaskGradient g = zero(d);
  g.noise_variance = l.v_y * l.beta.dot(p_bar);
  g.task_variance =
      MSq.cwiseProduct(M).sum() + 2 * l.trace * l.v_y * pb + 2 * vy2 * l.s2 * l.fourth * l.b;
  g.prompt_cov = symmetric(l.alpha * p_bar * l.v_x.transpose() + 2 * l.s2 * MSq * N.transpose()) +
                 2 * l.s2 * l.v_y * pb * Matrix::Identity(d, d) +
                 vy2 * l.s2 * l.s2 * l.b * l.fourth_by_S();
  g.query_cov = p * p.transpose() + l.s2 * M.transpose() * M +
                2 * st * l.v_y * symmetric(p * l.beta.transpose()) +
                vy2 * l.s2 * l.s2 * l.fourth * l.beta * l.beta.transpose();
  return g;
}

// Of E2.
TaskGradient of_spread(const Letters& l) {
  const Index d = l.S.rows();
  const Vector Svx = l.S * l.v_x, u = l.alpha * l.Sqb;
  const double vy2 = l.v_y * l.v_y, st = l.s2 * l.trace, kappa = l.kappa;
  const double P0 = l.v_x.dot(Svx) + vy2 * l.sig2;
  const double A0 = (l.S * l.alpha * l.Sq).cwiseProduct(l.alpha).sum() + l.b * l.sig2;
  const double mixed = P0 * l.b + A0 * vy2;
  const double P_bar = A0 + st * l.b, A_bar = P0 + st * vy2;
  const double b_bar = st * P0 + kappa * vy2 + A_bar * l.sig2;
  TaskGradient g = zero(d);
  g.noise_variance = P_bar * vy2 + A_bar * l.b;
  g.task_variance =
      4 * l.v_y * (l.S * Svx).dot(u) + l.trace * mixed + 2 * l.s2 * l.fourth * vy2 * l.b;
  g.prompt_cov = P_bar * l.v_x * l.v_x.transpose() + A_bar * l.alpha * l.Sq * l.alpha.transpose() +
                 4 * l.s2 * l.v_y * symmetric(l.v_x * (l.S * u).transpose() + Svx * u.transpose()) +
                 l.s2 * mixed * Matrix::Identity(d, d) + vy2 * l.b * l.s2 * l.s2 * l.fourth_by_S();
  g.query_cov =
      A_bar * l.alpha.transpose() * l.S * l.alpha + b_bar * l.beta * l.beta.transpose() +
      4 * l.s2 * l.v_y * symmetric((l.alpha.transpose() * (l.S * Svx)) * l.beta.transpose());
  return g;
}

// What the nodes add: everything but the control variate.
class NodeSums {
 public:
  NodeSums(const LinearRegressionTask& task, const Readout& at, const RegressionNodes& nodes)
      : l_(task, at), X_(nodes.x), W_(nodes.w), weight_(nodes.weight) {
    const Index n = X_.rows();
    bx_ = X_ * l_.beta;
    A_ = X_ * l_.alpha.transpose() + bx_.asDiagonal() * W_;
    R_ = Vector::Ones(n) * l_.v_x.transpose() + l_.v_y * W_;
    SA_ = A_ * l_.S;
    SR_ = R_ * l_.S;
    tau2_ = (A_.cwiseProduct(SA_).rowwise().sum() + l_.sig2 * bx_.cwiseAbs2()).cwiseMax(0.0);
    g_ = A_.cwiseProduct(SR_).rowwise().sum() + l_.sig2 * l_.v_y * bx_;
    q_ = (R_.cwiseProduct(SR_).rowwise().sum().array() + l_.sig2 * l_.v_y * l_.v_y).matrix();
    y_ = X_.cwiseProduct(W_).rowwise().sum();
    if (!tau2_.allFinite()) throw DomainError("task_gradient: U or r is not finite or too large");
  }

  // The error of an infinite prompt counts `rest` times.
  [[nodiscard]] TaskGradient gradient(const NodeTables& tables, double rest) const {
    const Index n = X_.rows();
    const NodeFunctionTable table = tables.up_to(std::sqrt(tau2_.maxCoeff()));
    Vector by_t(n), by_g(n), by_q(n), by_y(n);
    for (Index i = 0; i < n; ++i) {
      const NodeFunctions u = table.at_tau2(tau2_(i));
      const NodeError e = node_error(u, rest, g_(i), q_(i), y_(i));
      const double half = 0.5 * weight_(i) / static_cast<double>(n);
      by_t(i) = half * e.d_tau2;
      by_g(i) = half * e.d_g;
      by_q(i) = half * e.d_q;
      by_y(i) = half * (2 * rest * (y_(i) - g_(i)) + 2 * g_(i) * u.H);
    }
    TaskGradient out = zero(l_.S.rows());
    out.prompt_cov = A_.transpose() * by_t.asDiagonal() * A_ +
                     symmetric(R_.transpose() * by_g.asDiagonal() * A_) +
                     R_.transpose() * by_q.asDiagonal() * R_;
    out.noise_variance =
        by_t.dot(bx_.cwiseAbs2()) + l_.v_y * by_g.dot(bx_) + l_.v_y * l_.v_y * by_q.sum();
    // The error in terms of J'a and J'r, whose derivatives stand in the rows of these.
    const Matrix to_a = 2 * by_t.asDiagonal() * SA_ + by_g.asDiagonal() * SR_;
    const Matrix to_r = by_g.asDiagonal() * SA_ + 2 * by_q.asDiagonal() * SR_;
    out.task_variance = by_task_variance(to_a, to_r, by_y);
    out.query_cov = by_query_cov(to_a, by_t, by_g, by_y);
    return out;
  }

 private:
  [[nodiscard]] double by_task_variance(const Matrix& to_a, const Matrix& to_r,
                                        const Vector& by_y) const {
    if (l_.s2 == 0) return kUnknown;
    const Vector aw = to_a.cwiseProduct(W_).rowwise().sum();
    const Vector rw = to_r.cwiseProduct(W_).rowwise().sum();
    return (aw.dot(bx_) + l_.v_y * rw.sum() + by_y.dot(y_)) / (2 * l_.s2);
  }
  [[nodiscard]] Matrix by_query_cov(const Matrix& to_a, const Vector& by_t, const Vector& by_g,
                                    const Vector& by_y) const {
    const Index d = l_.S.rows();
    const Vector to_bx = to_a.cwiseProduct(W_).rowwise().sum() +
                         2 * l_.sig2 * by_t.cwiseProduct(bx_) + l_.sig2 * l_.v_y * by_g;
    const Matrix by_x = to_a * l_.alpha + to_bx * l_.beta.transpose() + by_y.asDiagonal() * W_;
    const std::optional<Matrix> solved = solve_positive(l_.Sq, X_.transpose() * by_x);
    return solved ? Matrix(0.5 * symmetric(*solved)) : Matrix::Constant(d, d, kUnknown);
  }

  Letters l_;
  const Matrix& X_;
  const Matrix& W_;
  const Vector& weight_;
  Vector bx_;       // [n]: beta'x
  Matrix A_, R_;    // [n,d]: J'a, J'r
  Matrix SA_, SR_;  // [n,d]
  Vector tau2_, g_, q_, y_;
};

}  // namespace

TaskGradient linear_task_gradient(const LinearRegressionTask& task, const Readout& at,
                                  Length length) {
  (void)linear_risk(task, at, length);  // checks the arguments
  const Letters letters(task, at);
  TaskGradient out = zero(task.dim);
  if (task.query_noise) out.noise_variance = 0.5;
  add(out, 0.5, of_braces(letters, 0));
  if (length.is_infinite()) return out;
  const double factor = 0.5 / static_cast<double>(length.count());
  add(out, factor, of_braces(letters, 1));
  add(out, factor, of_spread(letters));
  return out;
}

TaskGradient softmax_task_gradient(const LinearRegressionTask& task, const Readout& at,
                                   const NodeTables& tables, const RegressionNodes& nodes,
                                   std::optional<double> control) {
  check_readout(task, at);
  const double c = control.value_or(default_control(tables.length()));
  TaskGradient out = NodeSums(task, at, nodes).gradient(tables, 1 - c);
  add(out, c, linear_task_gradient(task, at, Length::infinity()));
  if (task.query_noise) out.noise_variance += 0.5 * (1 - c);
  return out;
}

TaskGradient task_gradient(const AnyTask& task, const Readout& at, ModelKind kind, Length length,
                           const RiskOptions& options) {
  task.check();
  const RiskChoice choice = choose_risk(task, 1, kind, length, options.engine);
  if (choice.method == RiskMethod::closed_form) {
    return linear_task_gradient(task.regression(), at, length);
  }
  if (choice.method != RiskMethod::quadrature) {
    throw CapabilityError("task_gradient: " + choice.reason +
                          " Derivatives in the task need linear regression with gaussian features "
                          "and engine auto or exact");
  }
  const LinearRegressionTask& regression = task.regression();
  check_readout(regression, at);
  const Matrix normals = pair_normals(regression, options.log2_nodes, options.stream);
  return softmax_task_gradient(regression, at, NodeTables(length.count()),
                               regression_nodes(regression, normals, score_forms(regression, at)));
}

}  // namespace esscher
