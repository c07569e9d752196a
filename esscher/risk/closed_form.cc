#include "esscher/risk/closed_form.h"

#include <cmath>

#include "esscher/base/cholesky.h"
#include "esscher/base/error.h"
#include "esscher/risk/detail/letters.h"

namespace esscher {
namespace {

using detail::Letters;

// Gradient in the same letters.
struct Slopes {
  explicit Slopes(Index d) : alpha(Matrix::Zero(d, d)), beta(Vector::Zero(d)), v_x(beta) {}
  Matrix alpha;
  Vector beta, v_x;
  double v_y = 0;
};

// factor * B(p, M + shift I) and the gradient of the same, added to g.
double add_braces(const Letters& l, double shift, double factor, Slopes* g) {
  const Vector Svx = l.S * l.v_x;
  const Matrix Sa = l.S * l.alpha;
  const Vector Sqb = l.Sq * l.beta;
  const Vector p = l.alpha.transpose() * Svx + l.v_y * l.sig2 * l.beta;
  Matrix M = Svx * l.beta.transpose() + l.v_y * Sa;
  M.diagonal().array() += shift - 1;
  const Matrix MSq = M * l.Sq;
  const double pb = p.dot(Sqb), bb = l.beta.dot(Sqb), st = l.s2 * l.trace;
  if (g != nullptr) {
    const Vector p_bar = 2 * factor * (l.Sq * p + st * l.v_y * Sqb);
    const Matrix M_bar = 2 * factor * l.s2 * MSq;
    g->alpha += Svx * p_bar.transpose() + l.v_y * l.S * M_bar;
    g->v_x += Sa * p_bar + l.S * (M_bar * l.beta);
    g->beta += l.sig2 * l.v_y * p_bar + M_bar.transpose() * Svx +
               2 * factor * l.v_y * (st * (l.Sq * p) + l.v_y * l.kappa * Sqb);
    g->v_y += l.sig2 * l.beta.dot(p_bar) + M_bar.cwiseProduct(Sa).sum() +
              2 * factor * (st * pb + l.v_y * l.kappa * bb);
  }
  return factor * (p.dot(l.Sq * p) + l.s2 * MSq.cwiseProduct(M).sum() + 2 * st * l.v_y * pb +
                   l.v_y * l.v_y * l.kappa * bb);
}

// factor * E2 and its gradient, added to g.
double add_spread(const Letters& l, double factor, Slopes* g) {
  const Vector Svx = l.S * l.v_x;
  const Matrix Sa = l.S * l.alpha;
  const Vector Sqb = l.Sq * l.beta;
  const double b = l.beta.dot(Sqb), vy2 = l.v_y * l.v_y, st = l.s2 * l.trace;
  const double P0 = l.v_x.dot(Svx) + vy2 * l.sig2;
  const Matrix SaSq = Sa * l.Sq;
  const double A0 = SaSq.cwiseProduct(l.alpha).sum() + b * l.sig2;
  const Vector aSqb = l.alpha * Sqb;
  const Vector SSvx = l.S * Svx;
  const double cross = SSvx.dot(aSqb);
  if (g != nullptr) {
    const double P_bar = factor * (A0 + st * b), A_bar = factor * (P0 + st * vy2);
    const double b_bar = factor * (st * P0 + l.kappa * vy2) + A_bar * l.sig2;
    const double c_bar = factor * 4 * l.s2 * l.v_y;
    g->alpha += 2 * A_bar * SaSq + c_bar * SSvx * Sqb.transpose();
    g->beta += 2 * b_bar * Sqb + c_bar * (l.Sq * (l.alpha.transpose() * SSvx));
    g->v_x += 2 * P_bar * Svx + c_bar * (l.S * (l.S * aSqb));
    g->v_y +=
        2 * l.v_y * (P_bar * l.sig2 + factor * (st * A0 + l.kappa * b)) + factor * 4 * l.s2 * cross;
  }
  return factor *
         (P0 * A0 + 4 * l.s2 * l.v_y * cross + st * (P0 * b + A0 * vy2) + l.kappa * vy2 * b);
}

void check(const char* where, const LinearRegressionTask& task, const Readout& at) {
  check_dimension(where, "r", at.r.size(), task.dim + 1);
  check_dimension(where, "U rows", at.U.rows(), task.dim + 1);
  check_dimension(where, "U columns", at.U.cols(), task.dim + 1);
  if (task.features != Features::gaussian) {
    throw CapabilityError(std::string(where) + ": features are " +
                          std::string(name(task.features)) +
                          ", the closed form needs gaussian features; use simulated_risk");
  }
}

void store(const Slopes& g, Index d, Readout* out) {
  *out = Readout::zero(d + 1);
  out->U.topLeftCorner(d, d) = g.alpha;
  out->U.row(d).head(d) = g.beta;
  out->r.head(d) = g.v_x;
  out->r(d) = g.v_y;
}

}  // namespace

double limit_risk(const LinearRegressionTask& task, const Readout& at, Readout* gradient) {
  return linear_risk(task, at, Length::infinity(), gradient);
}

double linear_risk(const LinearRegressionTask& task, const Readout& at, Length length,
                   Readout* gradient) {
  check(length.is_infinite() ? "limit_risk" : "linear_risk", task, at);
  const Letters letters(task, at);
  Slopes slopes(task.dim);
  Slopes* g = gradient == nullptr ? nullptr : &slopes;
  double risk = task.irreducible_risk() + add_braces(letters, 0, 0.5, g);
  if (!length.is_infinite()) {
    if (length.count() == 0) throw_argument("linear_risk", "length", "0", "an integer >= 1");
    const double factor = 0.5 / static_cast<double>(length.count());
    risk += add_braces(letters, 1, factor, g) + add_spread(letters, factor, g);
  }
  if (gradient != nullptr) store(slopes, task.dim, gradient);
  return risk;
}

Matrix effective_covariance(const LinearRegressionTask& task, Length length) {
  const Matrix& S = task.prompt_cov;
  if (length.is_infinite()) return S;
  const double n = static_cast<double>(length.count());
  const double ridge = (S.trace() + task.noise_variance / task.task_variance) / n;
  return (1 + 1 / n) * S + ridge * Matrix::Identity(task.dim, task.dim);
}

Readout block_optimum(const LinearRegressionTask& task, Length length, double imbalance) {
  const std::optional<Matrix> inverse =
      solve_positive(effective_covariance(task, length), Matrix::Identity(task.dim, task.dim));
  if (!inverse) {
    throw_argument("block_optimum", "prompt_cov", "a singular matrix",
                   "a positive definite matrix");
  }
  const Matrix& W = *inverse;
  // |W|^2/b^2 - b^2 = imbalance
  const double b2 = (-imbalance + std::sqrt(imbalance * imbalance + 4 * W.squaredNorm())) / 2;
  Readout out = Readout::zero(task.dim + 1);
  out.U.topLeftCorner(task.dim, task.dim) = W / std::sqrt(b2);
  out.r(task.dim) = std::sqrt(b2);
  return out;
}

}  // namespace esscher
