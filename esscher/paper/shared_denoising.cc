#include "esscher/paper/shared_denoising.h"

namespace esscher::paper {

DenoisingTask opposite_means(const Vector& m, double gamma, double xi) {
  DenoisingTask task;
  task.weights = Vector::Constant(2, 0.5);
  task.gamma = gamma;
  task.xi = xi;
  task.means.fixed = Matrix(2, m.size());
  task.means.fixed << m.transpose(), -m.transpose();
  return task;
}

Layer residual_layer(Index d, double gamma, double xi) {
  const Matrix I = Matrix::Identity(d, d);
  const double S = gamma * gamma + xi * xi;
  return {.W = (gamma * gamma - xi * xi) / S * I,
          .heads = {{.kind = ModelKind::softmax, .U = I / S, .V = xi * xi / S * I}}};
}

double ratio_of(const Vector& x, const Vector& y) { return 1 + (x - y).norm() / y.norm(); }

}  // namespace esscher::paper
