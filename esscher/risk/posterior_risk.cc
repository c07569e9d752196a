#include "esscher/risk/posterior_risk.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/base/stop.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/longest_read.h"

namespace esscher {
namespace {

constexpr double kTokens = 1e8;               // evaluations in all, about a second or two
constexpr double kEvaluationsOfChains = 4e3;  // of each token, by four chains or by a quadrature
constexpr std::int64_t kFewestDraws = 64;
constexpr std::int64_t kFewerOfParts = 4;  // draws of a part, whose excess is known to a half only

struct Sides {
  double above = 0, below = 0;
};

// A prompt, its query, and what is known of the law it is from.
struct Scene {
  Vector normals;  // of the law
  ContextNode node;
  Matrix prompt;
};

Scene draw_scene(const ContextTask& task, std::int64_t L, const Stream& own) {
  const NodeDraw draw = draw_normals(task, own.split(0));
  Scene out{draw.normals.head(task.law_normals), task.node(draw.normals, draw.stratum), {}};
  out.prompt = out.node.tokens->measure().sample(own.split(1), L).tokens();
  return out;
}

// The loss of a prediction of the mean of the target beyond the least one.
double excess_loss(TaskLoss loss, const ContextNode& node, Vector prediction) {
  if (loss == TaskLoss::squared) return (prediction - node.target).squaredNorm() / 2;
  prediction = 2 * prediction.cwiseMax(-1 + 1e-15).cwiseMin(1 - 1e-15).array().atanh();
  Vector slope;
  return prediction_loss(loss, prediction, node.target, slope) -
         least_loss(loss, node.target, node.variance);
}

Sides sides_by_chains(const ContextTask& task, const Scene& scene, const Stream& own) {
  const LawEvidence evidence = task.evidence(scene.prompt, scene.node.query);
  const ChainOptions options;
  const auto from_prior = [&](std::uint64_t i) {
    return chain_mean(evidence, scene.normals.size(), options, own.split(i));
  };
  const auto from_law = [&](std::uint64_t i) {
    return chain_mean(evidence, scene.normals, options, own.split(i));
  };
  if (task.loss != TaskLoss::squared) {
    return {excess_loss(task.loss, scene.node, from_prior(0)),
            excess_loss(task.loss, scene.node, from_law(1))};
  }
  const Vector& f = scene.node.target;
  return {(from_prior(0) - f).dot(from_prior(1) - f) / 2,
          (from_law(2) - f).dot(from_law(3) - f) / 2};
}

Sides sides_of(const ContextTask& task, std::int64_t L, const Stream& own) {
  const Scene scene = draw_scene(task, L, own);
  if (!task.posterior_mean) return sides_by_chains(task, scene, own.split(2));
  const double excess =
      excess_loss(task.loss, scene.node, task.posterior_mean(scene.prompt, scene.node.query));
  return {excess, excess};
}

std::int64_t draws_for(const ContextTask& task, std::int64_t L, std::int64_t asked) {
  const double once = task.posterior_by == PosteriorBy::formula ? 1 : kEvaluationsOfChains;
  const double most = kTokens / (once * static_cast<double>(L));
  if (most >= static_cast<double>(asked)) return asked;
  return std::min(asked, std::max(kFewestDraws, static_cast<std::int64_t>(most)));
}

}  // namespace

BayesBy bayes_by(const ContextTask& task, Length length) {
  if (task.fixed_law || length.is_infinite()) return BayesBy::known_law;
  const std::int64_t L = length.count();
  if (task.tells_law_from > 0 && L >= task.tells_law_from) return BayesBy::known_law;
  if (task.posterior_mean && task.posterior_by == PosteriorBy::formula) return BayesBy::formula;
  if (task.posterior_mean) return BayesBy::quadrature;
  return task.evidence ? BayesBy::chains : BayesBy::bound;
}

Estimate posterior_excess(const ContextTask& task, Length length, const RiskOptions& options) {
  if (options.draws < 2) {
    throw_argument("layer risk", "draws", std::to_string(options.draws), "an integer >= 2");
  }
  const std::int64_t L = std::min(length.count(), longest_read(bayes_by(task, length)));
  const bool whole = L == length.count();
  const std::int64_t all = draws_for(task, L, options.draws);
  const std::int64_t n = whole ? all : std::max<std::int64_t>(2, all / kFewerOfParts);
  std::vector<Sides> sides(static_cast<std::size_t>(n));
  parallel_for(n, [&](std::int64_t i) {
    check_stop();
    sides[static_cast<std::size_t>(i)] =
        sides_of(task, L, options.stream.split(1).split(static_cast<std::uint64_t>(i)));
  });
  Moments middle, gap;
  for (const Sides& side : sides) {
    middle.add((side.above + side.below) / 2);
    gap.add(side.above - side.below);
  }
  Estimate out = middle.estimate(Engine::direct);
  out.std_error = std::hypot(out.std_error, gap.estimate(Engine::direct).value / 2);
  if (whole) return out;
  out.value /= 2;
  out.std_error = std::hypot(out.std_error, out.value);
  return out;
}

}  // namespace esscher
