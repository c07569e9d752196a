#include "esscher/icl/task_risk.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/icl/features.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sphere.h"

namespace esscher {
namespace {

constexpr std::int64_t kBlock = 64;  // draws per unit of parallel work

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

ContextDraw with_prompt(ContextDraw draw, Length length, const Stream& stream) {
  if (!length.is_infinite()) draw.tokens = draw.tokens.sample(stream, length.count());
  return draw;
}

void check(const Task& task, Length length, std::int64_t n) {
  if (n < 2) throw_argument("simulated_risk", "n", std::to_string(n), "an integer >= 2");
  if (!length.is_infinite() && length.count() < 1) {
    throw_argument("simulated_risk", "length", length.text(), "an integer >= 1 or inf");
  }
  if (!task.draw) throw_argument("simulated_risk", "task", "empty", "a task with a draw function");
}

// prediction - target; adds error * d(prediction)/d(U, r) to the gradient.
double visit(const ContextDraw& draw, const Readout& at, ModelKind kind, Readout* gradient) {
  const Vector a = at.U * draw.query;
  const Vector m =
      kind == ModelKind::softmax ? draw.tokens.tilted_mean(a) : draw.tokens.second_moment_times(a);
  const double error = at.r.dot(m) - draw.target;
  if (gradient != nullptr) {
    const Vector c = kind == ModelKind::softmax ? draw.tokens.tilted_cov_times(a, at.r)
                                                : draw.tokens.second_moment_times(at.r);
    gradient->U += error * c * draw.query.transpose();
    gradient->r += error * m;
  }
  return error;
}

}  // namespace

Task regression_task(const LinearRegressionTask& task) {
  task.check();
  const Index d = task.dim;
  const auto sampler = std::make_shared<const RegressionSampler>(task);
  const AnyMeasure source =
      Product({feature_law(task.features, d), Gaussian(Matrix::Identity(1, 1))});
  Task out;
  out.token_dim = d + 1;
  out.name = "linear regression, " + std::string(name(task.features)) + " features";
  out.draw = [sampler, source, d](const Stream& stream) {
    const RegressionDraw draw = sampler->draw(stream);
    Matrix B = Matrix::Zero(d + 1, d + 1);
    B.topLeftCorner(d, d) = sampler->F;
    B.bottomLeftCorner(1, d) = draw.w.transpose() * sampler->F;
    B(d, d) = std::sqrt(sampler->task.noise_variance);
    Vector query = Vector::Zero(d + 1);
    query.head(d) = draw.x;
    return ContextDraw{Affine(Vector::Zero(d + 1), B, source), query, draw.y};
  };
  return out;
}

Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream) {
  check(task, length, n);
  check_dimension("simulated_risk", "r", at.dim(), task.token_dim);
  Vector values(n);
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  parallel_for(blocks, [&](std::int64_t block) {
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      const Stream own = stream.split(i);
      const ContextDraw draw = with_prompt(task.draw(own.split(0)), length, own.split(1));
      const double error = visit(draw, at, kind, nullptr);
      values(i) = error * error / 2;
    }
  });
  const double count = static_cast<double>(n), mean = values.mean();
  const double variance = (values.array() - mean).square().sum() / (count - 1);
  return {mean, std::sqrt(variance / count), n, Engine::direct};
}

SampleRisk::SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n,
                       const Stream& stream)
    : kind_(kind), token_dim_(task.token_dim) {
  check(task, length, n);
  auto draws = std::make_shared<std::vector<ContextDraw>>();
  draws->reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const Stream own = stream.split(i);
    draws->push_back(with_prompt(task.draw(own.split(0)), length, own.split(1)));
  }
  draws_ = std::move(draws);
}

double SampleRisk::operator()(const Readout& at, Readout* gradient) const {
  check_dimension("SampleRisk", "r", at.dim(), token_dim_);
  const auto n = static_cast<std::int64_t>(draws_->size());
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> risks(static_cast<std::size_t>(blocks), 0.0);
  std::vector<Readout> slopes(static_cast<std::size_t>(gradient == nullptr ? 0 : blocks));
  parallel_for(blocks, [&](std::int64_t block) {
    Readout* slope = nullptr;
    if (gradient != nullptr) {
      slopes[block] = Readout::zero(token_dim_);
      slope = &slopes[block];
    }
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      const double error = visit((*draws_)[i], at, kind_, slope);
      risks[block] += error * error / 2;
    }
  });
  const double weight = 1 / static_cast<double>(n);
  double risk = 0;
  for (double part : risks) risk += weight * part;
  if (gradient != nullptr) {
    *gradient = Readout::zero(token_dim_);
    for (const Readout& slope : slopes) {
      gradient->U += weight * slope.U;
      gradient->r += weight * slope.r;
    }
  }
  return risk;
}

}  // namespace esscher
