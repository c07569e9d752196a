#include "esscher/risk/sample_risk.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/product.h"
#include "esscher/measure/sphere.h"
#include "esscher/task/features.h"

namespace esscher {
namespace {

constexpr std::int64_t kBlock = 64;      // draws per unit of parallel work
constexpr double kMaxNumbers = 1 << 30;  // of all prompts that are kept: 8 GiB

// body(i) for every draw, in blocks.
template <class Body>
void for_blocks(std::int64_t n, const Body& body) {
  parallel_for((n + kBlock - 1) / kBlock, [&](std::int64_t block) {
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      body(block, i);
    }
  });
}

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

void check(const Task& task, Length length, std::int64_t n, Engine engine) {
  if (n < 2) throw_argument("simulated_risk", "draws", std::to_string(n), "an integer >= 2");
  if (!length.is_infinite() && length.count() < 1) {
    throw_argument("simulated_risk", "length", length.text(), "an integer >= 1 or inf");
  }
  if (!task.draw) throw_argument("simulated_risk", "task", "empty", "a task with a draw function");
  if (engine == Engine::sampled) {
    throw CapabilityError("task " + task.name +
                          ": no sampled engine for the risk of a task; use exact or direct");
  }
}

void check_memory(const Task& task, Length length, std::int64_t prompts) {
  const double numbers = static_cast<double>(prompts) * static_cast<double>(length.count()) *
                         static_cast<double>(task.token_dim);
  if (numbers <= kMaxNumbers) return;
  throw CapabilityError("task " + task.name + ": prompts of length " + length.text() +
                        " for all draws take more than 8 GiB; use fewer draws, shorter prompts, "
                        "length inf, or Gaussian laws, which need no tokens");
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

double FixedDraw::error(const Readout& at, ModelKind kind, Readout* gradient) const {
  if (!law) return draw_error(draw, at, kind, gradient);
  return draw_error(*law, length, draw.query, draw.target, at, kind, gradient);
}

FixedDraw fix_draw(const Task& task, Length length, const Stream& stream, std::int64_t i,
                   Engine engine, std::int64_t kept) {
  const Stream own = stream.split(i);
  FixedDraw fixed{task.draw(own.split(0)), {}};
  if (length.is_infinite()) return fixed;
  fixed.length = length.count();
  if (engine != Engine::direct) fixed.law = gaussian_law(fixed.draw.tokens);
  if (fixed.law) return fixed;
  if (engine == Engine::exact) {
    throw CapabilityError("task " + task.name + ": the law of its tokens is '" +
                          fixed.draw.tokens.name() +
                          "', and the exact engine averages over "
                          "finite prompts of Gaussian tokens only; use engine = direct, which "
                          "draws prompts, or length inf");
  }
  check_memory(task, length, kept);
  fixed.draw.tokens = fixed.draw.tokens.sample(own.split(1), fixed.length);
  fixed.drawn = true;
  return fixed;
}

Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream, Engine engine) {
  check(task, length, n, engine);
  check_dimension("simulated_risk", "r", at.dim(), task.token_dim);
  Vector values(n);
  std::atomic<bool> drawn = false;
  for_blocks(n, [&](std::int64_t, std::int64_t i) {
    const FixedDraw draw = fix_draw(task, length, stream, i, engine);
    values(i) = draw.error(at, kind, nullptr);
    if (draw.drawn) drawn = true;
  });
  const double count = static_cast<double>(n), mean = values.mean();
  const double variance = (values.array() - mean).square().sum() / (count - 1);
  return {mean, std::sqrt(variance / count), n, drawn ? Engine::direct : Engine::exact};
}

SampleRisk::SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n,
                       const Stream& stream, Engine engine)
    : kind_(kind), token_dim_(task.token_dim) {
  check(task, length, n, engine);
  std::vector<std::optional<FixedDraw>> made(static_cast<std::size_t>(n));
  for_blocks(n, [&](std::int64_t, std::int64_t i) {
    made[i] = fix_draw(task, length, stream, i, engine, n);
  });
  auto draws = std::make_shared<std::vector<FixedDraw>>();
  draws->reserve(made.size());
  for (std::optional<FixedDraw>& draw : made) draws->push_back(std::move(*draw));
  draws_ = std::move(draws);
}

double SampleRisk::operator()(const Readout& at, Readout* gradient) const {
  check_dimension("SampleRisk", "r", at.dim(), token_dim_);
  const auto n = static_cast<std::int64_t>(draws_->size());
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> risks(static_cast<std::size_t>(blocks), 0.0);
  std::vector<Readout> slopes(static_cast<std::size_t>(gradient == nullptr ? 0 : blocks),
                              Readout::zero(token_dim_));
  for_blocks(n, [&](std::int64_t block, std::int64_t i) {
    risks[block] += (*draws_)[i].error(at, kind_, gradient == nullptr ? nullptr : &slopes[block]);
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
