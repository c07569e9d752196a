#include "esscher/risk/sample_risk.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/carriers.h"

namespace esscher {
namespace {

constexpr std::int64_t kBlock = 64;      // draws per unit of parallel work
constexpr double kMaxNumbers = 1 << 30;  // of all prompts that are kept: 8 GiB

// body(block, i) for every draw i, in blocks.
template <class Body>
void for_blocks(std::int64_t n, const Body& body) {
  parallel_for((n + kBlock - 1) / kBlock, [&](std::int64_t block) {
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      body(block, i);
    }
  });
}

void check_count(std::int64_t n) {
  if (n < 2) throw_argument("simulated_risk", "draws", std::to_string(n), "an integer >= 2");
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

double FixedDraw::error(const Readout& at, ModelKind kind, Readout* gradient) const {
  if (!law) return draw_error(draw, at, kind, gradient);
  return draw_error(*law, *tables, draw.query, draw.target, at, kind, gradient);
}

DrawFixer::DrawFixer(Task task, Length length, Engine engine, std::int64_t kept)
    : task_(std::move(task)), length_(length), engine_(engine), kept_(kept) {
  if (length == Length(0)) {
    throw_argument("simulated_risk", "length", length.text(), "an integer >= 1 or inf");
  }
  if (!task_.draw) throw_argument("simulated_risk", "task", "empty", "a task with a draw function");
  if (engine == Engine::sampled) {
    throw CapabilityError("task " + task_.name +
                          ": no sampled engine for the risk of a task; use exact or direct");
  }
  if (!length.is_infinite() && engine != Engine::direct) tables_.emplace(length.count());
}

FixedDraw DrawFixer::operator()(const Stream& own) const {
  FixedDraw fixed{task_.draw(own.split(0)), {}, {}};
  if (length_.is_infinite()) return fixed;
  if (engine_ != Engine::direct) fixed.law = gaussian_law(fixed.draw.tokens);
  if (fixed.law) {
    fixed.tables = tables_;
    return fixed;
  }
  if (engine_ == Engine::exact) {
    throw CapabilityError("task " + task_.name + ": the law of its tokens is '" +
                          fixed.draw.tokens.name() +
                          "', and the exact engine averages over "
                          "finite prompts of Gaussian tokens only; use engine = direct, which "
                          "draws prompts, or length inf");
  }
  check_memory(task_, length_, kept_);
  fixed.draw.tokens = fixed.draw.tokens.sample(own.split(1), length_.count());
  fixed.drawn = true;
  return fixed;
}

Estimate simulated_risk(const Task& task, const Readout& at, ModelKind kind, Length length,
                        std::int64_t n, const Stream& stream, Engine engine) {
  check_count(n);
  const DrawFixer fix(task, length, engine);
  check_dimension("simulated_risk", "r", at.dim(), task.token_dim);
  Vector values(n);
  std::atomic<bool> drawn = false;
  for_blocks(n, [&](std::int64_t, std::int64_t i) {
    const FixedDraw draw = fix(stream.split(static_cast<std::uint64_t>(i)));
    values(i) = draw.error(at, kind, nullptr);
    if (draw.drawn) drawn = true;
  });
  Estimate out = moments_of({values.data(), static_cast<std::size_t>(n)})
                     .estimate(drawn ? Engine::direct : Engine::quadrature);
  out.heavy = carriers(values) < kFewCarriers;
  return out;
}

SampleRisk::SampleRisk(const Task& task, ModelKind kind, Length length, std::int64_t n,
                       const Stream& stream, Engine engine)
    : kind_(kind), token_dim_(task.token_dim) {
  check_count(n);
  const DrawFixer fix(task, length, engine, n);
  std::vector<std::optional<FixedDraw>> made(static_cast<std::size_t>(n));
  for_blocks(n, [&](std::int64_t, std::int64_t i) {
    made[static_cast<std::size_t>(i)] = fix(stream.split(static_cast<std::uint64_t>(i)));
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
