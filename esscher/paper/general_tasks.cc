// The tasks of `paper --which general`. tests/paper/general.py has the same numbers.
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <functional>
#include <memory>

#include "esscher/measure/score_law.h"
#include "esscher/paper/general.h"
#include "esscher/task/classification.h"
#include "esscher/task/pool.h"
#include "esscher/task/single_index_task.h"

namespace esscher::paper {
namespace {

constexpr double kNoise = 0.1;  // variance, on labels and on the target

constexpr double kPool[] = {1, -0.5};  // w

// Regression of one bounded feature, w from the pool: tokens (x, w x + noise) are a mixture over the
// values of x with the weights p, and feature(g) of a normal g has the law of x.
ContextTask bounded_task(const Vector& x, const Vector& p,
                         const std::function<double(double g)>& feature) {
  ContextTask out;
  out.type = TaskType::regression;
  out.token_dim = 2;
  out.query_normals = 1;
  out.strata = Vector::Constant(2, 0.5);
  std::vector<std::shared_ptr<const TokenLaw>> laws;
  for (const double w : kPool) {
    Matrix means(x.size(), 2);
    means << x, w * x;
    laws.push_back(std::make_shared<const TokenLaw>(
        SharedMixture{p, means, Vector{{0, kNoise}}.asDiagonal()}));
  }
  out.node = [laws, feature](const VectorView& g, Index member) {
    const double at = feature(g[0]);
    return ContextNode{laws[static_cast<std::size_t>(member)], Vector{{at, 0}},
                       Vector::Constant(1, kPool[member] * at), kNoise};
  };
  return out;
}

}  // namespace

// w is 1 or -1, the sphere of R. Both have the same risk, because tanh is odd.
std::vector<GeneralCase> single_index_cases() {
  SingleIndexTask task;
  task.cov = Matrix::Identity(1, 1);
  task.index_law = IndexLaw::sphere;
  task.noise_variance = kNoise;
  task.query_noise = true;
  ContextTask one = single_index_task(task);
  one.law_normals = 0;
  one.node = [node = one.node](const VectorView& x, Index stratum) {
    return node(Vector{{1, x[0]}}, stratum);
  };
  return {
      {.name = "tanh labels", .key = "tanh labels", .task = one, .u = 0.3, .v = 0.3, .slow = true}};
}

std::vector<GeneralCase> classification_cases() {
  ClassificationTask task;
  task.means.fixed = Matrix{{1.0}, {-1.0}};
  task.cov = Matrix::Identity(1, 1);
  return {{.name = "two classes",
           .key = "two classes",
           .task = classification_task(task),
           .u = 0.3,
           .v = 0.3}};
}

std::vector<GeneralCase> pool_cases() {
  PoolTask task;
  task.pool = Vector::Map(kPool, 2);
  task.cov = Matrix::Identity(1, 1);
  task.noise_variance = kNoise;
  task.query_noise = true;
  return {{.name = "pool of two tasks",
           .key = "pool",
           .task = pool_task(task),
           .u = 0.1,
           .v = 3,
           .gaussian = true}};
}

std::vector<GeneralCase> bounded_cases() {
  const double end = std::sqrt(3.0);
  const PanelRule rule = panel_rule(-end, end, 2 * end);
  const auto sign = [](double g) { return g < 0 ? -1.0 : 1.0; };
  const auto uniform = [end](double g) { return end * boost::math::erf(g / std::sqrt(2.0)); };
  return {{.name = "±1 features",
           .key = "coin features",
           .task = bounded_task(Vector{{1, -1}}, Vector::Constant(2, 0.5), sign),
           .u = 0.3,
           .v = 0.3},
          {.name = "uniform features",
           .key = "uniform features",
           .task = bounded_task(rule.x, rule.w / (2 * end), uniform),
           .u = 0.3,
           .v = 0.3}};
}

}  // namespace esscher::paper
