#include "esscher/tilt/state.h"

#include <cmath>

#include "esscher/base/error.h"

namespace esscher {
namespace {

void check_not_empty(const TiltState& state, const char* what) {
  if (state.empty()) {
    throw DomainError(std::string("TiltState::") + what + ": " + std::to_string(state.count) +
                      " tokens, none with a positive weight; expected at least one");
  }
}

void scale(TiltState& state, double factor) {
  state.norm *= factor;
  state.t_sum *= factor;
  state.sum *= factor;
  state.product *= factor;
  state.second *= factor;
}

}  // namespace

TiltState TiltState::neutral(Index d, bool with_product, bool with_second) {
  TiltState state;
  state.sum = Vector::Zero(d);
  if (with_product) state.product = Vector::Zero(d);
  if (with_second) state.second = Matrix::Zero(d, d);
  return state;
}

Vector TiltState::mean() const {
  check_not_empty(*this, "mean");
  return sum / norm;
}

double TiltState::log_sum_exp() const {
  check_not_empty(*this, "log_sum_exp");
  return max + std::log(norm);
}

double TiltState::t_mean() const {
  check_not_empty(*this, "t_mean");
  return t_sum / norm;
}

Vector TiltState::product_mean() const {
  check_not_empty(*this, "product_mean");
  return product / norm;
}

Matrix TiltState::covariance() const {
  check_not_empty(*this, "covariance");
  return second / norm;
}

void merge(TiltState& left, const TiltState& right) {
  check_dimension("merge", "right", right.dim(), left.dim());
  check_dimension("merge", "right.product", right.product.size(), left.product.size());
  check_dimension("merge", "right.second", right.second.size(), left.second.size());
  left.count += right.count;
  if (right.empty()) return;
  if (left.empty()) {
    const std::int64_t count = left.count;
    left = right;
    left.count = count;
    return;
  }
  const double max = std::max(left.max, right.max);
  const double ra = std::exp(left.max - max), rb = std::exp(right.max - max);
  const double na = ra * left.norm, nb = rb * right.norm;
  const double between = nb == 0 ? 0 : na * nb / (na + nb);
  if (left.product.size() + left.second.size() > 0) {
    const Vector gap = left.sum / left.norm - right.sum / right.norm;
    const double t_gap = left.t_sum / left.norm - right.t_sum / right.norm;
    scale(left, ra);
    if (left.product.size() > 0) left.product += rb * right.product + (between * t_gap) * gap;
    if (left.second.size() > 0) left.second += rb * right.second + between * gap * gap.transpose();
  } else {
    scale(left, ra);
  }
  left.max = max;
  left.norm += nb;
  left.t_sum += rb * right.t_sum;
  left.sum += rb * right.sum;
}

}  // namespace esscher
