#include "esscher/risk/batch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/prompt/sampled_heads.h"
#include "esscher/random/wishart.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/risk/draw_error.h"
#include "esscher/task/features.h"

namespace esscher {
namespace {

constexpr Index kChunk = kTrainLanes;  // prompts per unit of parallel work

const LinearRegressionTask& checked(const LinearRegressionTask& task) {
  task.check();
  return task;
}

}  // namespace

std::string_view name(GradientEngine engine) {
  switch (engine) {
    case GradientEngine::sampled: return "sampled";
    case GradientEngine::direct: return "direct";
    case GradientEngine::exact: return "exact";
  }
  return "?";
}

GradientEngine parse_gradient_engine(const std::string& text) {
  for (const auto e : {GradientEngine::sampled, GradientEngine::direct, GradientEngine::exact}) {
    if (text == name(e)) return e;
  }
  throw_argument("gradient", "engine", text, "sampled, direct or exact");
}

PromptBatch::PromptBatch(const LinearRegressionTask& task, ModelKind kind, GradientEngine engine,
                         Length length, Index batch, bool half)
    : sampler_(checked(task)), kind_(kind), engine_(engine), length_(length), batch_(batch) {
  if (batch < 1) throw_argument("train", "batch", std::to_string(batch), "an integer >= 1");
  if (length == Length(0)) throw_argument("train", "length", "0", "an integer >= 1, or inf");
  if (engine == GradientEngine::exact) {
    throw CapabilityError("train: a batch of prompts has no exact engine; use sampled or direct");
  }
  if (engine == GradientEngine::sampled && task.features != Features::gaussian) {
    throw CapabilityError("train: the sampled engine needs gaussian features, got " +
                          std::string(name(task.features)) + "; use gradient = \"direct\"");
  }
  if (engine == GradientEngine::direct && length.is_infinite()) law_ = regression_task(task);
  const double factor = half ? 1.0 : 2.0;
  residual_factor_ = factor / static_cast<double>(batch);
  loss_factor_ = 0.5 * residual_factor_;
}

// The heads in white coordinates: tokens are (xi, w~'xi + sig eps) with w~ = F'w, queries Fq n, so
// U [D,d] and r [D] absorb the factors once per batch instead of once per prompt.
struct PromptBatch::Heads {
  std::vector<Matrix> U;  // [H][D,d]
  std::vector<Vector> r;  // [H][D]

  Heads(std::span<const Readout> heads, const Matrix& F, const Matrix& Fq) {
    const Index d = F.rows();
    for (const Readout& head : heads) {
      check_dimension("train", "dimension of the model", head.dim(), d + 1);
      Matrix white(d + 1, d);
      white.topRows(d) = F.transpose() * head.U.topLeftCorner(d, d) * Fq;
      white.row(d) = head.U.row(d).head(d) * Fq;
      Vector read(d + 1);
      read.head(d) = F.transpose() * head.r.head(d);
      read(d) = head.r(d);
      U.push_back(std::move(white));
      r.push_back(std::move(read));
    }
  }
};

// Sums over prompts of the loss and of the gradient in white coordinates.
struct PromptBatch::Sums {
  double loss = 0;
  std::vector<Matrix> U;
  std::vector<Vector> r;

  Sums(std::size_t heads, Index D) : U(heads, Matrix::Zero(D, D - 1)), r(heads, Vector::Zero(D)) {}

  void add(const Sums& other) {
    loss += other.loss;
    for (std::size_t h = 0; h < U.size(); ++h) {
      U[h] += other.U[h];
      r[h] += other.r[h];
    }
  }
};

void PromptBatch::add_sampled_pair(const Heads& heads, const Stream& stream, Index first,
                                   Index count, Sums& sums) const {
  const LaneBatch batch{&sampler_.task, &sampler_.F, &sampler_.Fq, &heads.U[0],     &heads.r[0],
                        kind_,          length_,     loss_factor_, residual_factor_};
  sums.loss += sampled_lanes(batch, stream, first, count, sums.U[0], sums.r[0]);
}

// Several heads: one prompt at a time, in double.
void PromptBatch::add_one(const Heads& heads, const Stream& stream, Index prompt,
                          Sums& sums) const {
  const Index d = sampler_.task.dim;
  const Index D = d + 1;
  const auto H = static_cast<Index>(heads.U.size());
  const TaskDraw draw = draw_task(sampler_.task, sampler_.F, sampler_.Fq, stream, prompt);
  const double sigma = std::sqrt(sampler_.task.noise_variance);
  Matrix tilts(D, H);
  Matrix reads(D, H);
  for (Index h = 0; h < H; ++h) {
    const auto at = static_cast<std::size_t>(h);
    const Vector a = heads.U[at] * draw.n_x;
    tilts.col(h).head(d) = a.head(d) + a(d) * draw.w;
    tilts(d, h) = sigma * a(d);
    reads.col(h).head(d) = heads.r[at].head(d) + heads.r[at](d) * draw.w;
    reads(d, h) = sigma * heads.r[at](d);
  }
  Matrix means = tilts;
  Matrix products = reads;
  if (!length_.is_infinite()) {
    const Stream tokens = stream.split(1).split(static_cast<std::uint64_t>(prompt));
    if (kind_ == ModelKind::linear) {
      const Matrix A = bartlett_factor(tokens, D, length_.count());
      const double scale = 1 / static_cast<double>(length_.count());
      means = scale * (A * (A.transpose() * tilts));
      products = scale * (A * (A.transpose() * reads));
    } else {
      HeadsDraw drawn = draw_heads(tilts, reads, length_.count(), tokens);
      means = std::move(drawn.means);
      products = std::move(drawn.products);
    }
  }
  double prediction = 0;
  for (Index h = 0; h < H; ++h) prediction += reads.col(h).dot(means.col(h));
  const double residual = prediction - draw.y;
  sums.loss += loss_factor_ * residual * residual;
  const double g = residual_factor_ * residual;
  const auto token = [&](const auto& u) {
    Vector z(D);
    z.head(d) = u.head(d);
    z(d) = draw.w.dot(u.head(d)) + sigma * u(d);
    return z;
  };
  for (Index h = 0; h < H; ++h) {
    const auto at = static_cast<std::size_t>(h);
    sums.r[at] += g * token(means.col(h));
    sums.U[at] += g * token(products.col(h)) * draw.n_x.transpose();
  }
}

// Real tokens; gradients in the original coordinates (the caller does not map them back).
void PromptBatch::add_direct(std::span<const Readout> heads, const Stream& stream, Index prompt,
                             Sums& sums) const {
  const Index d = sampler_.task.dim;
  const Stream own = stream.split(2).split(static_cast<std::uint64_t>(prompt));
  const RegressionDraw draw = sampler_.draw(own.split(0));
  const Matrix z = sampler_.prompt(draw.w, length_.count(), own.split(1));
  const auto H = heads.size();
  Matrix weights(z.rows(), static_cast<Index>(H));
  double prediction = 0;
  for (std::size_t h = 0; h < H; ++h) {
    auto omega = weights.col(static_cast<Index>(h));
    omega = z * (heads[h].U.leftCols(d) * draw.x);
    if (kind_ == ModelKind::softmax) {
      omega = (omega.array() - omega.maxCoeff()).exp();
      omega /= omega.sum();
    } else {
      omega /= static_cast<double>(z.rows());
    }
    prediction += heads[h].r.dot(z.transpose() * omega);
  }
  const double residual = prediction - draw.y;
  sums.loss += loss_factor_ * residual * residual;
  const double g = residual_factor_ * residual;
  for (std::size_t h = 0; h < H; ++h) {
    const auto omega = weights.col(static_cast<Index>(h));
    const Vector zbar = z.transpose() * omega;
    Vector t = z * heads[h].r;
    if (kind_ == ModelKind::softmax) {
      t = omega.array() * (t.array() - heads[h].r.dot(zbar));
    } else {
      t /= static_cast<double>(z.rows());
    }
    sums.r[h] += g * zbar;
    sums.U[h] += g * (z.transpose() * t) * draw.x.transpose();
  }
}

// The same with the law of the tokens instead of tokens: the task, query and target are those that
// add_direct draws for this prompt.
void PromptBatch::add_limit(std::span<const Readout> heads, const Stream& stream, Index prompt,
                            Sums& sums) const {
  const Index d = sampler_.task.dim;
  const Stream own = stream.split(2).split(static_cast<std::uint64_t>(prompt));
  const ContextDraw draw = law_.draw(own.split(0));
  std::vector<HeadMoments> moments;
  double residual = -draw.target;
  for (const Readout& head : heads) {
    moments.push_back(head_moments(draw.tokens, head.U * draw.query, head.r, kind_, true));
    residual += head.r.dot(moments.back().mean);
  }
  sums.loss += loss_factor_ * residual * residual;
  const double g = residual_factor_ * residual;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    sums.r[h] += g * moments[h].mean;
    sums.U[h] += g * moments[h].product * draw.query.head(d).transpose();
  }
}

BatchLoss PromptBatch::operator()(std::span<const Readout> heads, const Stream& stream) const {
  const Index d = sampler_.task.dim;
  const Index D = d + 1;
  const Heads white(heads, sampler_.F, sampler_.Fq);
  const Index chunks = (batch_ + kChunk - 1) / kChunk;
  std::vector<Sums> parts(static_cast<std::size_t>(chunks), Sums(heads.size(), D));
  const bool pair = engine_ == GradientEngine::sampled && heads.size() == 1;
  parallel_for(chunks, [&](std::int64_t c) {
    Sums& sums = parts[static_cast<std::size_t>(c)];
    const Index first = c * kChunk;
    const Index count = std::min(kChunk, batch_ - first);
    if (pair) return add_sampled_pair(white, stream, first, count, sums);
    for (Index i = first; i < first + count; ++i) {
      if (engine_ == GradientEngine::sampled) {
        add_one(white, stream, i, sums);
      } else if (length_.is_infinite()) {
        add_limit(heads, stream, i, sums);
      } else {
        add_direct(heads, stream, i, sums);
      }
    }
  });
  Sums total(heads.size(), D);
  for (const Sums& part : parts) total.add(part);
  BatchLoss result{total.loss, {}};
  for (std::size_t h = 0; h < heads.size(); ++h) {
    Readout gradient = Readout::zero(D);
    if (engine_ == GradientEngine::direct) {
      gradient.U.leftCols(d) = total.U[h];
      gradient.r = total.r[h];
    } else {
      gradient.U.topLeftCorner(d, d) = sampler_.F * total.U[h].topRows(d) * sampler_.Fq.transpose();
      gradient.U.row(d).head(d) = total.U[h].row(d) * sampler_.Fq.transpose();
      gradient.r.head(d) = sampler_.F * total.r[h].head(d);
      gradient.r(d) = total.r[h](d);
    }
    result.gradient.push_back(std::move(gradient));
  }
  return result;
}

}  // namespace esscher
