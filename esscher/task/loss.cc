#include "esscher/task/loss.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"

namespace esscher {
namespace {

double sigmoid(double o) {
  return o >= 0 ? 1 / (1 + std::exp(-o)) : std::exp(o) / (1 + std::exp(o));
}

double logistic(double o, double t) {
  return std::max(o, 0.0) + std::log1p(std::exp(-std::abs(o))) - (1 + t) / 2 * o;
}

double entropy(double p) { return p > 0 ? -p * std::log(p) : 0; }

// The mean loss of logistic_fit at b.
double mean_loss(const Matrix& Z, const Vector& w, const Vector& t, const Vector& b) {
  const Vector odds = Z * b;
  double sum = 0;
  for (Index i = 0; i < odds.size(); ++i) sum += w[i] * logistic(odds[i], t[i]);
  return sum;
}

// Newton's step, without directions in which the loss is flat.
Vector newton_step(const Matrix& Z, const Vector& w, const Vector& t, const Vector& b) {
  const Vector odds = Z * b;
  Vector slope(odds.size()), bend(odds.size());
  for (Index i = 0; i < odds.size(); ++i) {
    const double p = sigmoid(odds[i]);
    slope[i] = w[i] * (p - (1 + t[i]) / 2);
    bend[i] = w[i] * p * (1 - p);
  }
  const Vector gradient = Z.transpose() * slope;
  const Eigensystem H = eigensystem(Matrix(Z.transpose() * bend.asDiagonal() * Z));
  Vector inner = H.vectors.transpose() * gradient;
  const double flat = 1e-13 * H.values.maxCoeff();
  for (Index i = 0; i < inner.size(); ++i) {
    inner[i] = H.values[i] > flat ? -inner[i] / H.values[i] : 0;
  }
  return H.vectors * inner;
}

}  // namespace

std::string_view mean_of(TaskLoss loss) {
  return loss == TaskLoss::squared ? "half the mean squared error" : "the mean logistic loss";
}

std::optional<TaskLoss> named_loss(TaskLoss loss) {
  return loss == TaskLoss::squared ? std::nullopt : std::optional(loss);
}

double prediction_loss(TaskLoss loss, const Vector& out, const Vector& mean, Vector& slope) {
  if (loss == TaskLoss::squared) {
    slope = out - mean;
    return slope.squaredNorm() / 2;
  }
  slope = Vector::Constant(1, sigmoid(out[0]) - (1 + mean[0]) / 2);
  return logistic(out[0], mean[0]);
}

double spread_loss(TaskLoss loss, double variance) {
  return loss == TaskLoss::squared ? variance / 2 : 0;
}

double least_loss(TaskLoss loss, const Vector& mean, double variance) {
  if (loss == TaskLoss::squared) return variance / 2;
  return entropy((1 + mean[0]) / 2) + entropy((1 - mean[0]) / 2);
}

Vector logistic_fit(const Matrix& queries, const Vector& weights, const Vector& labels) {
  Vector b = Vector::Zero(queries.cols());
  double value = mean_loss(queries, weights, labels, b);
  for (int i = 0; i < 200; ++i) {
    const Vector step = newton_step(queries, weights, labels, b);
    double share = 1, next = HUGE_VAL;
    for (; share > 1e-10; share /= 2) {
      next = mean_loss(queries, weights, labels, b + share * step);
      if (next <= value) break;
    }
    if (!(next < value - 1e-15 * std::abs(value))) return b;
    b += share * step;
    value = next;
  }
  throw RuntimeFailure("logistic fit: 200 steps did not find the best map of the query");
}

}  // namespace esscher
