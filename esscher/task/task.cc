#include "esscher/task/task.h"

#include <cmath>
#include <memory>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sphere.h"
#include "esscher/task/features.h"

namespace esscher {
namespace {

// Law of xi with identity covariance.
AnyMeasure feature_law(Features features, Index d) {
  switch (features) {
    case Features::rademacher: return Rademacher(d);
    case Features::uniform:
      return Affine(Vector::Zero(d), std::sqrt(3.0) * Matrix::Identity(d, d), Uniform(d));
    case Features::sphere: return Sphere(d, std::sqrt(static_cast<double>(d)));
    case Features::gaussian: break;
  }
  return Gaussian(Matrix::Identity(d, d));
}

std::string name_of(const LinearRegressionTask& task) {
  return "linear regression, " + std::string(name(task.features)) + " features";
}

}  // namespace

std::function<ContextDraw(const RegressionDraw&)> regression_context(
    const LinearRegressionTask& task) {
  task.check();
  const Index d = task.dim;
  const AnyMeasure source =
      Product({feature_law(task.features, d), Gaussian(Matrix::Identity(1, 1))});
  return [F = RegressionSampler(task).F, sigma = std::sqrt(task.noise_variance), source,
          d](const RegressionDraw& draw) {
    Matrix B = Matrix::Zero(d + 1, d + 1);
    B.topLeftCorner(d, d) = F;
    B.bottomLeftCorner(1, d) = draw.w.transpose() * F;
    B(d, d) = sigma;
    Vector query = Vector::Zero(d + 1);
    query.head(d) = draw.x;
    return ContextDraw{Affine(Vector::Zero(d + 1), B, source), query, draw.y};
  };
}

Task regression_task(const LinearRegressionTask& task) {
  Task out;
  out.token_dim = task.dim + 1;
  out.name = name_of(task);
  out.draw = [context = regression_context(task),
              sampler = std::make_shared<const RegressionSampler>(task)](const Stream& stream) {
    return context(sampler->draw(stream));
  };
  return out;
}

AnyTask::AnyTask(LinearRegressionTask task) : task_(std::move(task)) {}

AnyTask::AnyTask(Task task) : task_(std::move(task)) {}

bool AnyTask::is_regression() const { return std::holds_alternative<LinearRegressionTask>(task_); }

bool AnyTask::has_formulas() const {
  return is_regression() && regression().features == Features::gaussian;
}

const LinearRegressionTask& AnyTask::regression() const {
  if (const auto* task = std::get_if<LinearRegressionTask>(&task_)) return *task;
  throw CapabilityError("task " + name() + " is not linear regression, and only that has formulas");
}

Task AnyTask::drawn() const {
  if (const auto* own = std::get_if<Task>(&task_)) return *own;
  return regression_task(regression());
}

Index AnyTask::token_dim() const {
  if (const auto* own = std::get_if<Task>(&task_)) return own->token_dim;
  return regression().token_dim();
}

std::string AnyTask::name() const {
  if (const auto* own = std::get_if<Task>(&task_)) return own->name;
  return name_of(regression());
}

void AnyTask::check() const {
  if (is_regression()) return regression().check();
  const Task& own = std::get<Task>(task_);
  if (own.token_dim < 1) {
    throw_argument("task", "token_dim", std::to_string(own.token_dim), "an integer >= 1");
  }
  if (!own.draw) throw_argument("task", "draw", "empty", "a function from a stream to a draw");
}

}  // namespace esscher
