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

// What labelled tokens say of the means: how many are of each class, and their mean.
struct ClassSums {
  double n[2] = {0, 0};
  Matrix mean;  // [2,d]

  explicit ClassSums(const Matrix& prompt) : mean(Matrix::Zero(2, prompt.cols() - 1)) {
    const Index d = mean.cols();
    for (Index i = 0; i < prompt.rows(); ++i) {
      const Index k = prompt(i, d) > 0 ? 0 : 1;
      n[k] += 1;
      mean.row(k) += (prompt.row(i).head(d) - mean.row(k)) / n[k];
    }
  }
};

double half_square(const Vector& x, const Matrix& inverse) { return 0.5 * x.dot(inverse * x); }

// log pi_k N(x; m_k, G) of both classes, up to a constant.
Vector log_classes(const ClassificationTask& task, const Matrix& inverse, const Matrix& means,
                   const Vector& x) {
  Vector out(2);
  for (Index k = 0; k < 2; ++k) {
    out[k] = std::log(task.weights[k]) - half_square(x - means.row(k).transpose(), inverse);
  }
  return out;
}

// Means N(0, s2 I): given n points of mean x_k, m_k is N(n C G^{-1} x_k, C), C = (n G^{-1} +
// I/s2)^{-1}, and a new point N(that, G + C). In the directions of G all are numbers.
Vector label_of_gaussian_means(const ClassificationTask& task, const Eigensystem& G,
                               const Matrix& prompt, const Vector& query) {
  const Index d = prompt.cols() - 1;
  const ClassSums sums(prompt);
  const Vector x = G.vectors.transpose() * query.head(d);
  const double prior = task.means.scale * task.means.scale;
  double log_density[2];
  for (Index k = 0; k < 2; ++k) {
    const Vector centre = G.vectors.transpose() * sums.mean.row(k).transpose();
    log_density[k] = std::log(task.weights[k]);
    for (Index j = 0; j < d; ++j) {
      const double own = G.values[j], C = 1 / (sums.n[k] / own + 1 / prior);
      const double variance = own + C, miss = x[j] - sums.n[k] * C / own * centre[j];
      log_density[k] -= 0.5 * (miss * miss / variance + std::log(variance));
    }
  }
  return Vector::Constant(1, std::tanh((log_density[0] - log_density[1]) / 2));
}

LawEvidence evidence_of(const ClassificationTask& task, const Matrix& inverse, const Matrix& prompt,
                        const Vector& query) {
  const Vector x = query.head(inverse.rows());
  const ClassSums sums(prompt);
  return {.log_density =
              [=](const Vector& normals) {
                const Matrix means = task.means.at(normals);
                const Vector own = log_classes(task, inverse, means, x);
                double out = own.maxCoeff() + std::log1p(std::exp(-std::abs(own[0] - own[1])));
                for (Index k = 0; k < 2; ++k) {
                  out -= sums.n[k] *
                         half_square((sums.mean.row(k) - means.row(k)).transpose(), inverse);
                }
                return out;
              },
          .mean =
              [=](const Vector& normals) {
                const Vector own = log_classes(task, inverse, task.means.at(normals), x);
                return Vector::Constant(1, std::tanh((own[0] - own[1]) / 2)).eval();
              }};
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
  if (task.means.law == MeansLaw::gaussian) {
    out.posterior_mean = [task, system](const Matrix& prompt, const Vector& query) {
      return label_of_gaussian_means(task, system, prompt, query);
    };
  }
  if (task.means.law == MeansLaw::sphere) {
    out.posterior_by = PosteriorBy::chains;
    out.evidence = [task, inverse](const Matrix& prompt, const Vector& query) {
      return evidence_of(task, inverse, prompt, query);
    };
  }
  return out;
}

}  // namespace esscher
