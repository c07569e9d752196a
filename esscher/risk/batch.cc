#include "esscher/risk/batch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/risk/detail/head_lanes.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/risk/draw_error.h"
#include "esscher/simd/gemm.h"

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
  if (task.is_regression()) {
    sampler_.emplace(task.regression());
    context_ = regression_context(task.regression());
  } else {
    fixer_.emplace(task.drawn(), length, Engine::direct);
  }
  const double factor = half ? 1.0 : 2.0;
  residual_factor_ = factor / static_cast<double>(prompts);
  loss_factor_ = 0.5 * residual_factor_;
}

// The heads in white coordinates, one below the other: tokens are (xi, w~'xi + sig eps) with w~ =
// F'w, queries Fq n, so U and r absorb the factors once per batch instead of once per prompt.
struct Batch::White {
  Matrix U;  // [H D,d]
  Vector r;  // [H D]

  White() = default;
  White(std::span<const Readout> heads, const Matrix& F, const Matrix& Fq) {
    const Index d = F.rows(), D = d + 1, H = static_cast<Index>(heads.size());
    Matrix half = Matrix::Zero(H * D, d);
    r.resize(H * D);
    for (Index h = 0; h < H; ++h) {
      const Readout& head = heads[static_cast<std::size_t>(h)];
      add_product(F.transpose(), head.U.topLeftCorner(d, d), half.middleRows(h * D, d));
      half.row(h * D + d) = head.U.row(d).head(d);
      r.segment(h * D, d) = F.transpose() * head.r.head(d);
      r(h * D + d) = head.r(d);
    }
    U = Matrix::Zero(H * D, d);
    add_product(half, Fq, U);
  }

  // The gradient in the heads, from sums in white coordinates.
  static std::vector<Readout> pull_back(const Matrix& U, const Vector& r, const Matrix& F,
                                        const Matrix& Fq) {
    const Index d = F.rows(), D = d + 1, H = r.size() / D;
    Matrix half = Matrix::Zero(H * D, d);
    add_product(U, Fq.transpose(), half);
    std::vector<Readout> out(static_cast<std::size_t>(H), Readout::zero(D));
    for (Index h = 0; h < H; ++h) {
      Readout& head = out[static_cast<std::size_t>(h)];
      add_product(F, half.middleRows(h * D, d), head.U.topLeftCorner(d, d));
      head.U.row(d).head(d) = half.row(h * D + d);
      head.r.head(d) = F * r.segment(h * D, d);
      head.r(d) = r(h * D + d);
    }
    return out;
  }
};

// Sums over prompts of the loss and of the gradient, heads one below the other: in white coordinates
// with d columns, else with D.
struct Batch::Sums {
  double loss = 0;
  Matrix U;  // [H D,columns]
  Vector r;  // [H D]

  Sums(Index rows, Index columns) : U(Matrix::Zero(rows, columns)), r(Vector::Zero(rows)) {}

  void add(const Sums& other) {
    loss += other.loss;
    U += other.U;
    r += other.r;
  }
};

// pairs  one head on Gaussian tokens, prompts side by side
// lanes  any heads and features, prompts side by side
// laws   the law of the tokens of an infinite prompt
// draws  a task of your own
Batch::Way Batch::way(std::size_t heads) const {
  if (!sampler_) return Way::draws;
  if (engine_ == Engine::direct) return length_.is_infinite() ? Way::laws : Way::lanes;
  return heads == 1 ? Way::pairs : Way::lanes;
}

void Batch::add_lanes(Way way, const White& heads, const Stream& stream, Index first, Index count,
                      Sums& sums) const {
  const LaneBatch batch{.task = &sampler_->task,
                        .F = &sampler_->F,
                        .Fq = &sampler_->Fq,
                        .U = &heads.U,
                        .r = &heads.r,
                        .kind = kind_,
                        .L = length_,
                        .draws_tokens = engine_ == Engine::direct,
                        .loss_factor = loss_factor_,
                        .residual_factor = residual_factor_};
  const auto kernel = way == Way::pairs ? sampled_lanes : head_lanes;
  sums.loss += kernel(batch, stream, first, count, sums.U, sums.r);
}

// Any task: tokens that are drawn, or a law.
void Batch::add_draw(std::span<const Readout> heads, const ContextDraw& draw, Sums& sums) const {
  std::vector<HeadMoments> moments;
  double residual = -draw.target;
  for (const Readout& head : heads) {
    moments.push_back(head_moments(draw.tokens, head.U * draw.query, head.r, kind_, true));
    residual += head.r.dot(moments.back().mean);
  }
  sums.loss += loss_factor_ * residual * residual;
  const double g = residual_factor_ * residual;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Index D = token_dim_, first = static_cast<Index>(h) * D;
    sums.r.segment(first, D) += g * moments[h].mean;
    sums.U.middleRows(first, D) += g * moments[h].product * draw.query.transpose();
  }
}

// Prompts first .. first + count - 1. The tasks and queries of linear regression have addresses of
// their own, the same at every length, so that lengths are compared on the same tasks.
void Batch::add(Way way, std::span<const Readout> heads, const White& white, const Stream& stream,
                Index first, Index count, Sums& sums) const {
  if (way == Way::pairs || way == Way::lanes) {
    return add_lanes(way, white, stream, first, count, sums);
  }
  for (Index i = first; i < first + count; ++i) {
    if (way == Way::laws) {
      add_draw(heads, context_(draw_task(*sampler_, stream, i)), sums);
    } else {
      add_draw(heads, (*fixer_)(stream.split(static_cast<std::uint64_t>(i)).split(0)).draw, sums);
    }
  }
}

BatchLoss Batch::operator()(std::span<const Readout> heads, const Stream& stream) const {
  const Index D = token_dim_, d = D - 1;
  for (const Readout& head : heads) {
    check_dimension("train", "dimension of the model", head.dim(), D);
  }
  const Way chosen = way(heads.size());
  const bool is_white = chosen != Way::laws && chosen != Way::draws;
  const White white = is_white ? White(heads, sampler_->F, sampler_->Fq) : White();
  const Sums zero(static_cast<Index>(heads.size()) * D, is_white ? d : D);
  const Index chunk = sampler_ ? kChunk : kOwnChunk;
  std::vector<Sums> parts(static_cast<std::size_t>((prompts_ + chunk - 1) / chunk), zero);
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t c) {
    const Index first = c * chunk;
    add(chosen, heads, white, stream, first, std::min(chunk, prompts_ - first),
        parts[static_cast<std::size_t>(c)]);
  });
  Sums total = zero;
  for (const Sums& part : parts) total.add(part);
  BatchLoss result{total.loss, {}};
  if (is_white) {
    result.gradient = White::pull_back(total.U, total.r, sampler_->F, sampler_->Fq);
    return result;
  }
  for (Index h = 0; h < static_cast<Index>(heads.size()); ++h) {
    result.gradient.push_back({total.U.middleRows(h * D, D), total.r.segment(h * D, D)});
  }
  return result;
}

}  // namespace esscher
