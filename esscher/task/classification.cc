#include "esscher/task/classification.h"

#include <cmath>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/simd/gemm.h"
#include "esscher/task/weights.h"

namespace esscher {
namespace {

// Given means [2,d]; rows of tokens are (m, label).
std::shared_ptr<const TokenLaw> law_of(const ClassificationTask& task, const Matrix& means) {
  const Index d = means.cols();
  SharedMixture law{task.weights, Matrix(2, d + 1), Matrix::Zero(d + 1, d + 1)};
  law.means.leftCols(d) = means;
  law.means.col(d) << 1, -1;
  law.cov.topLeftCorner(d, d) = task.cov;
  return std::make_shared<const TokenLaw>(std::move(law));
}

QueryMoments moments_of(const ClassificationTask& task) {
  const Index d = task.means.cols();
  const Vector& p = task.weights;
  QueryMoments out{Vector::Zero(d + 1), Matrix::Zero(d + 1, d + 1),
                   Vector::Constant(1, p[0] - p[1]), Matrix::Zero(1, d + 1), 1};
  auto zz = out.zz.topLeftCorner(d, d);
  zz = task.cov;
  if (task.means.is_fixed()) {
    const Matrix& m = task.means.fixed;
    out.z.head(d) = m.transpose() * p;
    zz += m.transpose() * p.asDiagonal() * m;
    out.tz.leftCols(d) = p[0] * m.row(0) - p[1] * m.row(1);
  } else {
    zz.diagonal().array() += task.means.variance();
  }
  return out;
}

// Rows of means are (m, label), queries are (m_k + root n, 0), targets are labels.
SideBySide side_by_side(const ClassificationTask& task, const Matrix& root) {
  const Index d = task.means.cols();
  Matrix factor = Matrix::Zero(d + 1, d);
  factor.topRows(d) = root;
  const auto draw = [=](const Stream& stream, Index first, Index n) {
    const ComponentDraws drawn = component_draws(task.means, task.weights, d, stream, first, n);
    SideBySide::Draws out{Matrix(2 * d + 2, n), Matrix::Zero(d + 1, n), Matrix(1, n)};
    for (const Index k : {0, 1}) {
      out.means.middleRows(k * (d + 1), d) = drawn.means.middleRows(k * d, d);
      out.means.row(k * (d + 1) + d).setConstant(k == 0 ? 1 : -1);
    }
    out.queries.topRows(d) = drawn.centres();
    add_product(root, drawn.normals, out.queries.topRows(d));
    for (Index j = 0; j < n; ++j) {
      out.targets(0, j) = drawn.components[static_cast<std::size_t>(j)] == 0 ? 1 : -1;
    }
    return out;
  };
  return {task.weights, factor, draw};
}

}  // namespace

void ClassificationTask::check() const {
  means.check();
  if (means.rows() != 2) {
    throw_argument("task", "means", std::to_string(means.rows()) + " rows", "the two class means");
  }
  check_weights("task", weights, 2);
  check_dimension("task", "cov", cov.rows(), means.cols());
  check_dimension("task", "cov", cov.cols(), means.cols());
  if (!(eigensystem(cov).values[0] > 0)) {
    throw_argument("task", "cov",
                   "a matrix with smallest eigenvalue " + to_text(eigensystem(cov).values[0]),
                   "a positive definite one");
  }
}

ContextTask classification_task(const ClassificationTask& given) {
  ClassificationTask task = given;
  task.weights = equal_unless_given(given.weights, 2);
  task.check();
  const Index d = task.means.cols(), of_law = task.means.normals();
  const Eigensystem system = eigensystem(task.cov);
  const Matrix inverse =
      system.vectors * system.values.cwiseInverse().asDiagonal() * system.vectors.transpose();
  const Matrix root = psd_sqrt("task", "cov", task.cov);
  ContextTask out;
  out.type = TaskType::classification;
  out.loss = task.loss;
  out.token_dim = d + 1;
  out.out_dim = 1;
  out.law_normals = of_law;
  out.query_normals = d;
  out.strata = task.weights;
  out.fixed_law = task.means.is_fixed();
  const auto fixed = out.fixed_law ? law_of(task, task.means.fixed) : nullptr;
  out.node = [=](const VectorView& normals, Index k) {
    const Matrix means = task.means.at(normals.head(of_law));
    ContextNode node{fixed ? fixed : law_of(task, means), Vector::Zero(d + 1), Vector(1)};
    const Vector x = means.row(k).transpose() + root * normals.tail(d);
    node.query.head(d) = x;
    const Vector middle = 0.5 * (means.row(0) + means.row(1)).transpose();
    const double odds = std::log(task.weights[0] / task.weights[1]) +
                        (x - middle).dot(inverse * (means.row(0) - means.row(1)).transpose());
    node.target[0] = std::tanh(odds / 2);
    const double cosh = std::cosh(std::min(std::abs(odds) / 2, 350.0));
    node.variance = 1 / (cosh * cosh);
    return node;
  };
  out.target = [](const ContextNode& node, const Stream& stream) {
    return Vector::Constant(1, stream.uniform(0) < (1 + node.target[0]) / 2 ? 1.0 : -1.0).eval();
  };
  out.moments = [moments = moments_of(task)](const Stream&) { return moments; };
  out.side_by_side = side_by_side(task, root);
  return out;
}

}  // namespace esscher
