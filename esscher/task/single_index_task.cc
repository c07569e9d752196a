#include "esscher/task/single_index_task.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/link_pair.h"
#include "esscher/random/sobol.h"
#include "esscher/task/index_posterior.h"

namespace esscher {
namespace {

// E g(H) and E g(H)^2, H ~ N(0, rho^2).
struct LabelMoments {
  double mean = 0, square = 0;
};
LabelMoments label_moments(const Link& link, double rho) {
  if (!(rho > 0)) return {link(0), link(0) * link(0)};
  const LinkPair pair(rho, link);
  return {pair.mean()[1], pair.second_moment()(1, 1)};
}

// Given w, the label is uncorrelated with x up to a multiple of Sigma w, which is 0 on average.
QueryMoments moments_of(const SingleIndexTask& task, const Stream& stream) {
  constexpr int kLog2Indices = 8;
  const Index d = task.cov.rows();
  QueryMoments out{Vector::Zero(d + 1), Matrix::Zero(d + 1, d + 1), Vector::Zero(1),
                   Matrix::Zero(1, d + 1), 0};
  out.zz.topLeftCorner(d, d) = task.cov;
  const Matrix normals = sobol_normals(d, kLog2Indices, stream);
  for (Index i = 0; i < normals.rows(); ++i) {
    const Vector w = drawn_index(task, normals.row(i).transpose());
    const LabelMoments label = label_moments(task.link, std::sqrt(w.dot(task.cov * w)));
    out.t[0] += label.mean / static_cast<double>(normals.rows());
    out.tt += label.square / static_cast<double>(normals.rows());
  }
  if (task.query_noise) out.tt += task.noise_variance;
  return out;
}

}  // namespace

Vector drawn_index(const SingleIndexTask& task, const VectorView& normals) {
  const double deviation = std::sqrt(task.task_variance);
  if (task.index_law == IndexLaw::gaussian) return deviation * normals;
  return deviation / normals.norm() * normals;
}

void SingleIndexTask::check() const {
  if (cov.rows() < 1) throw_argument("task", "dim", "0", "an integer >= 1");
  (void)psd_factor("task", "cov", cov);
  if (!(task_variance > 0)) {
    throw_argument("task", "task_variance", to_text(task_variance), "a number > 0");
  }
  if (!(noise_variance >= 0)) {
    throw_argument("task", "noise_variance", to_text(noise_variance), "a number >= 0");
  }
}

ContextTask single_index_task(const SingleIndexTask& task) {
  task.check();
  const Index d = task.cov.rows();
  const Matrix root = psd_sqrt("task", "cov", task.cov);
  ContextTask out;
  out.type = TaskType::single_index;
  out.token_dim = d + 1;
  out.out_dim = 1;
  out.law_normals = out.query_normals = d;
  out.strata = Vector::Ones(1);
  out.exact_moments = false;
  out.node = [task, root, d](const VectorView& normals, Index) {
    const Vector w = drawn_index(task, normals.head(d));
    const Vector x = root * normals.tail(d);
    ContextNode node{
        std::make_shared<const TokenLaw>(SingleIndex(task.cov, w, task.link, task.noise_variance)),
        Vector::Zero(d + 1), Vector::Constant(1, task.link(w.dot(x))),
        task.query_noise ? task.noise_variance : 0};
    node.query.head(d) = x;
    return node;
  };
  out.target = [](const ContextNode& node, const Stream& stream) {
    return Vector::Constant(1, node.target[0] + std::sqrt(node.variance) * stream.normal(0)).eval();
  };
  out.moments = [task](const Stream& stream) { return moments_of(task, stream); };
  add_index_posterior(task, out);
  return out;
}

}  // namespace esscher
