#include "esscher/training/layer_optimum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/training/layer_model.h"

namespace esscher {
namespace {

constexpr double kAgree = 1e-6;

// The first start has scores <Uz, z'> of deviation about 1/2. Others go from a quarter of that to
// sixty times as much, because a risk may have one minimum at cool scores and one at sharp ones;
// what sharp heads say is taken less of.
Vector start(const OptimumProblem& problem, const FamilyMap& map, int restart) {
  const Matrix zz = problem.task.moments(problem.risk.stream.split(7)).zz;
  const double variance = std::max(zz.diagonal().maxCoeff(), 1e-12);
  const Stream own = problem.risk.stream.split(8).split(static_cast<std::uint64_t>(restart));
  const double others = std::max(1, problem.restarts - 1);
  const double sharp = restart == 0 ? 0.25 : (restart - 1 + own.split(1).uniform(0)) / others;
  Vector phi(map.size());
  for (Index i = 0; i < phi.size(); ++i) {
    const double dice =
        restart == 0 ? 1 : 1 + 0.2 * own.split(3).normal(static_cast<std::uint64_t>(i));
    switch (map.role(i)) {
      case FamilyMap::Role::U: phi[i] = dice * 0.5 / variance * std::exp2(8 * sharp - 2); break;
      case FamilyMap::Role::V: phi[i] = dice * 0.5 * std::exp2(0.75 - 3 * sharp); break;
      case FamilyMap::Role::W: phi[i] = dice * 0.25; break;
      case FamilyMap::Role::off: phi[i] = dice - 1; break;
    }
  }
  // Heads that start equal stay equal.
  if (problem.kinds.size() > 1) {
    for (Index i = 0; i < phi.size(); ++i) {
      phi[i] *= 1 + 0.5 * own.split(2).normal(static_cast<std::uint64_t>(i));
    }
  }
  return phi;
}

void add_scalars(const FamilyMap& map, const LayerOptimum& best, OptimumRow& row) {
  for (Index i = 0; i < map.size(); ++i) {
    if (map.role(i) == FamilyMap::Role::U && !row.u) row.u = best.phi[i];
    if (map.role(i) == FamilyMap::Role::V && !row.v) row.v = best.phi[i];
    if (map.role(i) == FamilyMap::Role::W && !row.w) row.w = best.phi[i];
  }
}

void keep(const FamilyMap& map, const Minimum& found, LayerOptimum& out) {
  out.layer = map.layer(found.x);
  out.phi = found.x;
  out.risk = found.value;
  out.gradient_norm = found.gradient_norm;
  out.converged = found.converged;
}

// Adds the mirror of the best of all ends.
void mirror(const SmoothFunction& f, const FamilyMap& map, LayerOptimum& out) {
  Layer start = out.layer;
  for (LayerHead& head : start.heads) {
    head.U *= -1;
    head.V *= -1;
  }
  const Minimum found = minimise(f, map.coordinates(start));
  LayerOptimum other = out;
  keep(map, found, other);
  // Not for a difference of rounding, so that signs are those of the starts.
  if (other.risk < out.risk - 1e-9 * (1 + std::abs(out.risk))) std::swap(other, out);
  out.mirror = other.layer;
  out.mirror_risk = other.risk;
}

bool is_linear(const OptimumProblem& problem) {
  return std::ranges::all_of(problem.kinds,
                             [](ModelKind kind) { return kind == ModelKind::linear; });
}

double least_of_linear_heads(OptimumProblem problem, Length L) {
  problem.kinds.assign(problem.kinds.size(), ModelKind::linear);
  return layer_risk(problem.task, layer_optimum(problem, L).layer, L, problem.risk).value;
}

OptimumRow optimum_row(const OptimumProblem& problem, Length L) {
  const LayerOptimum best = layer_optimum(problem, L);
  const LayerOptimum limit = L.is_infinite() ? best : layer_optimum(problem, Length::infinity());
  const Estimate risk = layer_risk(problem.task, best.layer, L, problem.risk);
  const ReferenceRisks reference = reference_risks(problem.task, L, problem.risk);
  OptimumRow row;
  row.L = L;
  row.task = name(problem.task.type);
  row.loss = named_loss(problem.task.loss);
  row.family = problem.family;
  row.model = best.layer.name();
  row.risk = risk.value;
  row.std_error = risk.std_error;
  row.engine = risk.engine;
  row.bayes = reference.bayes.value;
  if (reference.bayes_is_bound) row.bound = true;
  row.affine = reference.affine.value;
  row.linear = reference.linear.value;
  row.limit_risk = layer_risk(problem.task, limit.layer, L, problem.risk).value;
  if (!is_linear(problem)) row.linear_heads = least_of_linear_heads(problem, L);
  row.mirror_risk = layer_risk(problem.task, best.mirror, L, problem.risk).value;
  row.restarts = problem.restarts;
  row.agreeing = best.agreeing;
  row.converged = best.converged;
  row.gradient_norm = best.gradient_norm;
  row.U = best.layer.stacked_U();
  row.V = best.layer.stacked_V();
  row.W = best.layer.W;
  if (problem.family == LayerFamily::scalars) {
    add_scalars(FamilyMap(problem.family, problem.task, problem.kinds), best, row);
  }
  return row;
}

}  // namespace

LayerOptimum layer_optimum(const OptimumProblem& problem, Length length) {
  if (problem.restarts < 1) {
    throw_argument("optimum", "restarts", std::to_string(problem.restarts), "an integer >= 1");
  }
  if (problem.kinds.empty()) throw_argument("optimum", "heads", "0", "at least one head");
  const FamilyMap map(problem.family, problem.task, problem.kinds);
  const SmoothFunction f = layer_objective(problem.task, map, length, problem.risk);
  LayerOptimum out;
  out.risk = HUGE_VAL;
  std::vector<double> ends;
  for (int i = 0; i < problem.restarts; ++i) {
    const Minimum found = minimise(f, start(problem, map, i));
    ends.push_back(found.value);
    if (!(found.value < out.risk)) continue;
    keep(map, found, out);
  }
  if (out.phi.size() == 0) throw RuntimeFailure("optimum: no start has a finite risk");
  mirror(f, map, out);
  out.agreeing = static_cast<int>(std::count_if(ends.begin(), ends.end(), [&](double end) {
    return end <= out.risk + kAgree * (1 + std::abs(out.risk));
  }));
  return out;
}

Cells<OptimumRow> optimum_cells(const OptimumProblem& problem) {
  Cells<OptimumRow> cells;
  for (const Length L : problem.lengths) cells.keys.push_back("L=" + L.text());
  cells.compute = [problem](std::size_t i) {
    return std::vector<OptimumRow>{optimum_row(problem, problem.lengths[i])};
  };
  return cells;
}

}  // namespace esscher
