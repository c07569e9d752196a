#include "esscher/risk/draw_error.h"

#include <cmath>
#include <span>

#include "esscher/tilt/tilt.h"

namespace esscher {
namespace {

std::span<const double> as_span(const Vector& x) {
  return {x.data(), static_cast<std::size_t>(x.size())};
}

HeadMoments softmax_moments(const AnyMeasure& tokens, const Vector& a, const Vector& r,
                            bool product) {
  const Empirical* prompt = tokens.as<Empirical>();
  if (prompt == nullptr || prompt->weights().minCoeff() != prompt->weights().maxCoeff()) {
    return {tokens.tilted_mean(a), product ? tokens.tilted_cov_times(a, r) : Vector()};
  }
  const Matrix& z = prompt->tokens();
  const Rows<double> rows(z.data(), z.rows(), z.cols());
  if (!product) return {tilt<double>(as_span(a), rows, rows).mean(), {}};
  const TiltState state = tilt_product<double>(as_span(a), as_span(r), rows, rows);
  return {state.mean(), state.product_mean()};
}

}  // namespace

HeadMoments head_moments(const AnyMeasure& tokens, const VectorView& a, const VectorView& r,
                         ModelKind kind, bool product) {
  if (kind == ModelKind::softmax) return softmax_moments(tokens, a, r, product);
  return {tokens.second_moment_times(a), product ? tokens.second_moment_times(r) : Vector()};
}

double draw_error(const ContextDraw& draw, const Readout& at, ModelKind kind, Readout* gradient) {
  const HeadMoments m =
      head_moments(draw.tokens, at.U * draw.query, at.r, kind, gradient != nullptr);
  const double error = at.r.dot(m.mean) - draw.target;
  if (gradient != nullptr) {
    gradient->U += error * m.product * draw.query.transpose();
    gradient->r += error * m.mean;
  }
  return error * error / 2;
}

double draw_error(const GaussianLaw& law, const NodeTables& tables, const VectorView& query,
                  double target, const Readout& at, ModelKind kind, Readout* gradient) {
  const Vector a = at.U * query, Ga = law.cov * a, Gr = law.cov * at.r;
  const Vector& m = law.mean;
  const double tau2 = std::max(a.dot(Ga), 0.0), g = at.r.dot(Ga), q = at.r.dot(Gr);
  const double am = a.dot(m), rm = at.r.dot(m);
  double value = 0;
  double by_tau2 = 0, by_g = 0, by_q = 0, by_am = 0, by_rm = 0;  // derivatives of the error
  if (kind == ModelKind::softmax) {
    const NodeFunctions u = tables.up_to(std::sqrt(tau2)).at_tau2(tau2);
    const NodeError e = node_error(u, 1, g, q, target - rm);
    value = e.value;
    by_tau2 = e.d_tau2;
    by_g = e.d_g;
    by_q = e.d_q;
    by_rm = 2 * (g + rm - target) - 2 * g * e.d_q;  // d_q is H
  } else {
    const double miss = g + rm * am - target, share = 1 / static_cast<double>(tables.length());
    value =
        miss * miss + share * (q * tau2 + g * g + am * am * q + rm * rm * tau2 + 2 * am * rm * g);
    by_tau2 = share * (q + rm * rm);
    by_g = 2 * miss + share * 2 * (g + am * rm);
    by_q = share * (tau2 + am * am);
    by_am = 2 * miss * rm + share * 2 * (am * q + rm * g);
    by_rm = 2 * miss * am + share * 2 * (rm * tau2 + am * g);
  }
  if (gradient != nullptr) {
    const Vector a_bar = by_tau2 * Ga + 0.5 * (by_g * Gr + by_am * m);
    gradient->U += a_bar * query.transpose();
    gradient->r += by_q * Gr + 0.5 * (by_g * Ga + by_rm * m);
  }
  return value / 2;
}

}  // namespace esscher
