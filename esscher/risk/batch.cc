#include "esscher/risk/batch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/prompt/sampled_heads.h"
#include "esscher/random/wishart.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/risk/draw_error.h"

namespace esscher {
namespace {

// Prompts per unit of parallel work; part of the result's rounding.
constexpr Index kChunk = kTrainLanes;
constexpr Index kOwnChunk = 8;  // a draw of your own task takes longer

}  // namespace

Engine batch_engine(const AnyTask& task, Engine asked) {
  if (asked == Engine::automatic) return task.has_formulas() ? Engine::sampled : Engine::direct;
  if (asked == Engine::exact || asked == Engine::quadrature) {
    throw CapabilityError("a batch of prompts has no exact engine; use sampled or direct");
  }
  if (asked == Engine::sampled && !task.has_formulas()) {
    throw CapabilityError(
        "the sampled engine needs linear regression with gaussian features, the task is " +
        task.name() + "; use \"direct\" or \"auto\"");
  }
  return asked;
}

Batch::Batch(const AnyTask& task, ModelKind kind, Engine engine, Length length, Index prompts,
             bool half)
    : token_dim_(task.token_dim()),
      kind_(kind),
      engine_(batch_engine(task, engine)),
      length_(length),
      prompts_(prompts) {
  task.check();
  if (prompts < 1) throw_argument("train", "batch", std::to_string(prompts), "an integer >= 1");
  if (length == Length(0)) throw_argument("train", "length", "0", "an integer >= 1, or inf");
  if (task.is_regression()) sampler_.emplace(task.regression());
  const bool laws = !task.is_regression() || (engine_ == Engine::direct && length.is_infinite());
  if (laws) fixer_.emplace(task.drawn(), length, Engine::direct);
  const double factor = half ? 1.0 : 2.0;
  residual_factor_ = factor / static_cast<double>(prompts);
  loss_factor_ = 0.5 * residual_factor_;
}

// The heads in white coordinates: tokens are (xi, w~'xi + sig eps) with w~ = F'w, queries Fq n, so
// U [D,d] and r [D] absorb the factors once per batch instead of once per prompt.
struct Batch::White {
  std::vector<Matrix> U;  // [H][D,d]
  std::vector<Vector> r;  // [H][D]

  White() = default;
  White(std::span<const Readout> heads, const Matrix& F, const Matrix& Fq) {
    const Index d = F.rows();
    for (const Readout& head : heads) {
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

// Sums over prompts of the loss and of the gradient: in white coordinates [D,d] for the engine
// sampled, as it is [D,D] for direct.
struct Batch::Sums {
  double loss = 0;
  std::vector<Matrix> U;
  std::vector<Vector> r;

  Sums(std::size_t heads, Index D, Index columns)
      : U(heads, Matrix::Zero(D, columns)), r(heads, Vector::Zero(D)) {}

  void add(const Sums& other) {
    loss += other.loss;
    for (std::size_t h = 0; h < U.size(); ++h) {
      U[h] += other.U[h];
      r[h] += other.r[h];
    }
  }
};

// One head: prompts side by side.
void Batch::add_lanes(const White& heads, const Stream& stream, Index first, Index count,
                      Sums& sums) const {
  const LaneBatch batch{.task = &sampler_->task,
                        .F = &sampler_->F,
                        .Fq = &sampler_->Fq,
                        .U = heads.U.data(),
                        .r = heads.r.data(),
                        .kind = kind_,
                        .L = length_,
                        .loss_factor = loss_factor_,
                        .residual_factor = residual_factor_};
  sums.loss += sampled_lanes(batch, stream, first, count, sums.U[0], sums.r[0]);
}

// Several heads: one prompt at a time, in double.
void Batch::add_scores(const White& heads, const Stream& stream, Index prompt, Sums& sums) const {
  const Index d = sampler_->task.dim;
  const Index D = d + 1;
  const auto H = static_cast<Index>(heads.U.size());
  const TaskDraw draw = draw_task(sampler_->task, sampler_->F, sampler_->Fq, stream, prompt);
  const double sigma = std::sqrt(sampler_->task.noise_variance);
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

// Linear regression on real tokens.
void Batch::add_tokens(std::span<const Readout> heads, const Stream& own, Sums& sums) const {
  const Index d = sampler_->task.dim;
  const RegressionDraw draw = sampler_->draw(own.split(0));
  const Matrix z = sampler_->prompt(draw.w, length_.count(), own.split(1));
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
    sums.U[h].leftCols(d) += g * (z.transpose() * t) * draw.x.transpose();
  }
}

// Any task: tokens that are drawn, or at L = infinity their law.
void Batch::add_draw(std::span<const Readout> heads, const Stream& own, Sums& sums) const {
  const FixedDraw fixed = (*fixer_)(own);
  const ContextDraw& draw = fixed.draw;
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
    sums.U[h] += g * moments[h].product * draw.query.transpose();
  }
}

// Prompts first .. first + count - 1. The draws of linear regression have addresses of their own,
// the same for tokens and for laws, so that lengths are compared on the same tasks.
void Batch::add(std::span<const Readout> heads, const White& white, const Stream& stream,
                Index first, Index count, Sums& sums) const {
  if (engine_ == Engine::sampled && heads.size() == 1) {
    return add_lanes(white, stream, first, count, sums);
  }
  for (Index i = first; i < first + count; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    if (engine_ == Engine::sampled) {
      add_scores(white, stream, i, sums);
    } else if (!sampler_) {
      add_draw(heads, stream.split(at).split(0), sums);
    } else if (length_.is_infinite()) {
      add_draw(heads, stream.split(2).split(at), sums);
    } else {
      add_tokens(heads, stream.split(2).split(at), sums);
    }
  }
}

BatchLoss Batch::operator()(std::span<const Readout> heads, const Stream& stream) const {
  const Index D = token_dim_, d = D - 1;
  for (const Readout& head : heads) {
    check_dimension("train", "dimension of the model", head.dim(), D);
  }
  const bool is_white = engine_ == Engine::sampled;
  const White white = is_white ? White(heads, sampler_->F, sampler_->Fq) : White();
  const Sums zero(heads.size(), D, is_white ? d : D);
  const Index chunk = sampler_ ? kChunk : kOwnChunk;
  std::vector<Sums> parts(static_cast<std::size_t>((prompts_ + chunk - 1) / chunk), zero);
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t c) {
    const Index first = c * chunk;
    add(heads, white, stream, first, std::min(chunk, prompts_ - first),
        parts[static_cast<std::size_t>(c)]);
  });
  Sums total = zero;
  for (const Sums& part : parts) total.add(part);
  BatchLoss result{total.loss, {}};
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (!is_white) {
      result.gradient.push_back({std::move(total.U[h]), std::move(total.r[h])});
      continue;
    }
    Readout gradient = Readout::zero(D);
    const Matrix& Fq = sampler_->Fq;
    gradient.U.topLeftCorner(d, d) = sampler_->F * total.U[h].topRows(d) * Fq.transpose();
    gradient.U.row(d).head(d) = total.U[h].row(d) * Fq.transpose();
    gradient.r.head(d) = sampler_->F * total.r[h].head(d);
    gradient.r(d) = total.r[h](d);
    result.gradient.push_back(std::move(gradient));
  }
  return result;
}

}  // namespace esscher
