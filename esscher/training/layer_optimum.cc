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
Layer start(const OptimumProblem& problem, const QueryMoments& moments, int restart) {
  const FamilyMap map(problem.family, problem.task, problem.kinds);
  const double variance = std::max(moments.zz.diagonal().maxCoeff(), 1e-12);
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
  return map.layer(phi);
}

void add_scalars(const FamilyMap& map, const LayerOptimum& best, OptimumRow& row) {
  for (Index i = 0; i < map.size(); ++i) {
    if (map.role(i) == FamilyMap::Role::U && !row.u) row.u = best.phi[i];
    if (map.role(i) == FamilyMap::Role::V && !row.v) row.v = best.phi[i];
    if (map.role(i) == FamilyMap::Role::W && !row.w) row.w = best.phi[i];
  }
}

// One search: the coordinates, and descents in them that end where scores are beyond kSharpest.
class Search {
 public:
  explicit Search(const OptimumProblem& problem)
      : problem_(problem), map_(map_of(problem)), moments_(moments_of(problem)) {}

  [[nodiscard]] Vector first(int restart) const {
    if (restart == 0 && problem_.start) return map_.coordinates(*problem_.start);
    Layer layer = start(problem_, moments_, restart);
    const double size = score_deviation(layer, moments_) / kSharpest;
    if (size > 1) {
      for (LayerHead& head : layer.heads) head.U /= size;
    }
    return map_.coordinates(map_.nearest(layer));
  }
  [[nodiscard]] Vector mirrored(Layer layer) const {
    for (LayerHead& head : layer.heads) {
      head.U *= -1;
      head.V *= -1;
    }
    return map_.coordinates(layer);
  }
  [[nodiscard]] Layer layer(const Vector& phi) const { return map_.layer(phi); }

  [[nodiscard]] SmoothFunction objective(Length length, const RiskOptions& options) const {
    // Steps that go far beyond are not evaluated, which would take as long as scores are large.
    return [f = layer_objective(problem_.task, map_, length, options), this](const Vector& phi,
                                                                             Vector& gradient) {
      if (deviation(phi) > 2 * kSharpest) return HUGE_VAL;
      return f(phi, gradient);
    };
  }
  [[nodiscard]] Minimum descend(const SmoothFunction& f, const Vector& from) const {
    const auto is_beyond = [this, before = deviation(from)](const Vector& phi) mutable {
      const double now = deviation(phi);
      const bool leaves = now > kSharpest && now >= before;
      before = now;
      return leaves;
    };
    return minimise(f, from, {.is_beyond = is_beyond});
  }

 private:
  static LayerMap map_of(const OptimumProblem& problem) {
    LayerModel model{.task = problem.task, .family = problem.family, .factors = problem.factors};
    const FamilyMap family(LayerFamily::full, problem.task, problem.kinds);
    model.start = family.layer(Vector::Zero(family.size()));
    return model.map();
  }
  static QueryMoments moments_of(const OptimumProblem& problem) {
    return problem.task.moments(problem.risk.stream.split(7));
  }
  [[nodiscard]] double deviation(const Vector& phi) const {
    return score_deviation(map_.layer(phi), moments_);
  }

  const OptimumProblem& problem_;
  LayerMap map_;
  QueryMoments moments_;
};

void keep(const Search& search, const Minimum& found, LayerOptimum& out) {
  out.layer = search.layer(found.x);
  out.phi = found.x;
  out.risk = found.value;
  out.gradient_norm = found.gradient_norm;
  out.converged = found.converged;
  out.sharp = found.escaped;
}

// Adds the mirror of the best of all ends.
void mirror(const SmoothFunction& f, const Search& search, LayerOptimum& out) {
  const Minimum found = search.descend(f, search.mirrored(out.layer));
  LayerOptimum other = out;
  keep(search, found, other);
  // Not for a difference of rounding, so that signs are those of the starts.
  if (other.risk < out.risk - 1e-9 * (1 + std::abs(out.risk))) std::swap(other, out);
  out.mirror = other.layer;
  out.mirror_risk = other.risk;
}

// Starts need to be near, not exact.
RiskOptions fewer_nodes(RiskOptions options, Length length) {
  constexpr int kEnough = 9;
  if (!length.is_infinite()) {
    options.log2_nodes = std::min(options.log2_nodes, std::max(options.log2_nodes - 2, kEnough));
  }
  return options;
}

bool is_linear(const OptimumProblem& problem) {
  return std::ranges::all_of(problem.kinds,
                             [](ModelKind kind) { return kind == ModelKind::linear; });
}

double least_of_linear_heads(OptimumProblem problem, Length L) {
  problem.kinds.assign(problem.kinds.size(), ModelKind::linear);
  problem.start.reset();
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
  row.bayes_std_error = reference.bayes.std_error;
  if (reference.bayes_is_bound()) row.bound = true;
  row.bayes_by = reference.bayes_by;
  row.affine = reference.affine.value;
  row.linear = reference.linear.value;
  row.limit_risk = layer_risk(problem.task, limit.layer, L, problem.risk).value;
  if (!is_linear(problem)) row.linear_heads = least_of_linear_heads(problem, L);
  row.mirror_risk = layer_risk(problem.task, best.mirror, L, problem.risk).value;
  row.restarts = problem.restarts;
  row.agreeing = best.agreeing;
  row.converged = best.converged;
  if (best.sharp) row.sharp = true;
  if (problem.factors.is_factored()) {
    row.parametrisation = problem.factors.space;
    row.key_dim = problem.factors.key_dim > 0 ? problem.factors.key_dim : problem.task.token_dim;
  }
  row.gradient_norm = best.gradient_norm;
  row.U = best.layer.stacked_U();
  row.V = best.layer.stacked_V();
  row.W = best.layer.W;
  if (problem.family == LayerFamily::scalars && !problem.factors.is_factored()) {
    add_scalars(FamilyMap(problem.family, problem.task, problem.kinds), best, row);
  }
  return row;
}

}  // namespace

double score_deviation(const Layer& layer, const QueryMoments& moments) {
  Matrix tokens = moments.zz;
  const Index D = tokens.rows(), m = layer.out_dim();
  if (m < D) tokens(D - 1, D - 1) += moments.tt;  // the label, which a query has not
  double most = 0;
  for (const LayerHead& head : layer.heads) {
    if (head.kind != ModelKind::softmax) continue;
    most = std::max(most, (head.U * moments.zz * head.U.transpose()).cwiseProduct(tokens).sum());
  }
  return std::sqrt(most);
}

LayerOptimum layer_optimum(const OptimumProblem& problem, Length length) {
  if (problem.restarts < 1) {
    throw_argument("optimum", "restarts", std::to_string(problem.restarts), "an integer >= 1");
  }
  if (problem.kinds.empty()) throw_argument("optimum", "heads", "0", "at least one head");
  const Search search(problem);
  const RiskOptions fewer = fewer_nodes(problem.risk, length);
  const SmoothFunction rough = search.objective(length, fewer);
  LayerOptimum out;
  out.risk = HUGE_VAL;
  std::vector<double> ends;
  for (int i = 0; i < problem.restarts; ++i) {
    const Minimum found = search.descend(rough, search.first(i));
    ends.push_back(found.value);
    if (found.value < out.risk) keep(search, found, out);
  }
  if (out.phi.size() == 0) throw RuntimeFailure("optimum: no start has a finite risk");
  out.agreeing = static_cast<int>(std::count_if(ends.begin(), ends.end(), [&](double end) {
    return end <= out.risk + kAgree * (1 + std::abs(out.risk));
  }));
  const bool is_rough = fewer.log2_nodes < problem.risk.log2_nodes;
  const SmoothFunction f = is_rough ? search.objective(length, problem.risk) : rough;
  if (is_rough) keep(search, search.descend(f, out.phi), out);
  mirror(f, search, out);
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
