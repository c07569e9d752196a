#include "esscher/risk/layer_risk.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/base/stop.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/carriers.h"
#include "esscher/risk/layer_error.h"

namespace esscher {
namespace {

constexpr std::int64_t kBlock = 16;  // nodes of one piece of work
// A finite prompt costs a thousand times what an infinite one does, so it gets fewer nodes.
constexpr int kFewerNodes = 4;

void check_layer(const ContextTask& task, const Layer& layer) {
  layer.check(task.token_dim, task.out_dim);
}

// A law and a query, or a drawn prompt and a query.
struct Place {
  ContextNode node;
  double weight = 0;
  TaskLoss loss = TaskLoss::squared;
  std::optional<AnyMeasure> prompt = {};

  double error(const Layer& layer, Length L, Layer* gradient) const {
    return error_at_mean(layer, L, gradient) + spread_loss(loss, node.variance);
  }
  [[nodiscard]] double least() const { return least_loss(loss, node.target, node.variance); }

 private:
  double error_at_mean(const Layer& layer, Length L, Layer* gradient) const {
    if (prompt) return layer_error(layer, *prompt, node.query, node.target, gradient, loss);
    if (loss == TaskLoss::squared) {
      return prompt_error(layer, *node.tokens, L, node.query, node.target, gradient);
    }
    return layer_error(layer, node.tokens->measure(), node.query, node.target, gradient, loss);
  }
};

using Places = std::vector<Place>;

Places places_of(std::vector<WeightedNode> nodes, TaskLoss loss) {
  Places out;
  for (WeightedNode& node : nodes) out.push_back({std::move(node.node), node.weight, loss});
  return out;
}

// Weighted errors [n]; the weighted gradient is added to *gradient.
Vector errors_at(const Places& places, const Layer& layer, Length L, Layer* gradient) {
  const auto n = static_cast<std::int64_t>(places.size());
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  Vector values(n);
  std::vector<Layer> slopes(gradient == nullptr ? 0 : static_cast<std::size_t>(blocks),
                            layer.zero());
  parallel_for(blocks, [&](std::int64_t block) {
    for (std::int64_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      const Place& place = places[static_cast<std::size_t>(i)];
      if (gradient == nullptr) {
        values[i] = place.weight * place.error(layer, L, nullptr);
        continue;
      }
      Layer own = layer.zero();
      values[i] = place.weight * place.error(layer, L, &own);
      slopes[static_cast<std::size_t>(block)] += own *= place.weight;
    }
  });
  for (const Layer& slope : slopes) *gradient += slope;
  return values;
}

int log2_nodes(const Layer& layer, Length L, const RiskOptions& options) {
  const bool cheap = L.is_infinite() || layer.is_all(ModelKind::linear);
  return cheap ? options.log2_nodes : std::max(3, options.log2_nodes - kFewerNodes);
}

// A value on each of several independent node sets, and how they are put together.
template <class Value>
Estimate over_nodes(const ContextTask& task, int log2_count, const RiskOptions& options,
                    const Value& value) {
  if (has_lattice(task)) {
    const double a = value(places_of(lattice_nodes(task, 0), task.loss)).sum();
    const double b = value(places_of(lattice_nodes(task, 1), task.loss)).sum();
    return {(a + b) / 2, std::abs(a - b) / 2, 2, Engine::quadrature};
  }
  Moments sums;
  bool heavy = false;
  for (int i = 0; i < options.scramblings; ++i) {
    check_stop();
    const Stream own = options.stream.split(1).split(static_cast<std::uint64_t>(i));
    const Vector values = value(places_of(net_nodes(task, log2_count, own), task.loss));
    sums.add(values.sum());
    heavy = heavy || carriers(values) < kFewCarriers;
  }
  Estimate out = sums.estimate(Engine::quadrature);
  out.heavy = heavy;
  return out;
}

Place draw_place(const ContextTask& task, Length L, const Stream& own) {
  Place out{draw_node(task, own.split(0)), 1, task.loss};
  if (!L.is_infinite()) {
    out.prompt = AnyMeasure(out.node.tokens->measure().sample(own.split(1), L.count()));
  }
  return out;
}

// `draws` prompts of equal weight.
Places drawn_places(const ContextTask& task, Length L, const RiskOptions& options) {
  std::vector<Places> blocks(static_cast<std::size_t>((options.draws + kBlock - 1) / kBlock));
  parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t block) {
    Places& own = blocks[static_cast<std::size_t>(block)];
    for (std::int64_t i = block * kBlock; i < std::min(options.draws, (block + 1) * kBlock); ++i) {
      own.push_back(draw_place(task, L, options.stream.split(static_cast<std::uint64_t>(i))));
      own.back().weight = 1 / static_cast<double>(options.draws);
    }
  });
  Places out;
  for (Places& block : blocks) std::move(block.begin(), block.end(), std::back_inserter(out));
  return out;
}

// The mean over fresh draws of value(place, stream).
template <class Value>
Estimate over_draws(const ContextTask& task, Length L, const RiskOptions& options,
                    const Value& value) {
  if (options.draws < 2) {
    throw_argument("layer risk", "draws", std::to_string(options.draws), "an integer >= 2");
  }
  if (!L.is_infinite()) check_prompt_memory(task, L, 1);
  Vector values(options.draws);
  const std::int64_t blocks = (options.draws + kBlock - 1) / kBlock;
  parallel_for(blocks, [&](std::int64_t block) {
    for (std::int64_t i = block * kBlock; i < std::min(options.draws, (block + 1) * kBlock); ++i) {
      const Stream own = options.stream.split(1).split(static_cast<std::uint64_t>(i));
      values[i] = value(draw_place(task, L, own));
    }
  });
  Estimate out =
      moments_of({values.data(), static_cast<std::size_t>(values.size())}).estimate(Engine::direct);
  out.heavy = carriers(values) < kFewCarriers;
  return out;
}

template <class Risk>
Estimate of_moments(const ContextTask& task, const RiskOptions& options, const Risk& risk) {
  if (task.exact_moments) return {risk(task.moments(options.stream)), 0, 0, Engine::exact};
  Moments sums;
  for (int i = 0; i < options.scramblings; ++i) {
    check_stop();
    sums.add(risk(task.moments(options.stream.split(3).split(static_cast<std::uint64_t>(i)))));
  }
  return sums.estimate(Engine::quadrature);
}

// The least losses of the places, weighted [n].
Vector least_losses(const Places& places) {
  Vector out(static_cast<Index>(places.size()));
  for (Index i = 0; i < out.size(); ++i) {
    const Place& place = places[static_cast<std::size_t>(i)];
    out[i] = place.weight * place.least();
  }
  return out;
}

// The weighted logistic losses [n] of the best map of the query on these places: A z, or A z + b.
Vector losses_of_best_map(const Places& places, bool with_constant) {
  const auto n = static_cast<Index>(places.size());
  const Index D = places[0].node.query.size();
  Matrix Z = Matrix::Ones(n, with_constant ? D + 1 : D);
  Vector weights(n), labels(n);
  for (Index i = 0; i < n; ++i) {
    const Place& place = places[static_cast<std::size_t>(i)];
    Z.row(i).head(D) = place.node.query.transpose();
    weights[i] = place.weight;
    labels[i] = place.node.target[0];
  }
  const Vector odds = Z * logistic_fit(Z, weights, labels);
  Vector out(n), slope;
  for (Index i = 0; i < n; ++i) {
    const Vector own = odds.segment(i, 1);
    out[i] = weights[i] * prediction_loss(TaskLoss::logistic, own, labels.segment(i, 1), slope);
  }
  return out;
}

Estimate of_best_map(const ContextTask& task, const RiskOptions& options, bool with_constant) {
  if (task.loss == TaskLoss::squared) {
    return of_moments(task, options, with_constant ? best_affine_risk : best_linear_risk);
  }
  return over_nodes(task, options.log2_nodes, options, [with_constant](const Places& places) {
    return losses_of_best_map(places, with_constant);
  });
}

}  // namespace

void check_prompt_memory(const ContextTask& task, Length L, std::int64_t prompts) {
  constexpr double kMost = 8.0 * (1 << 30);
  const double bytes = 8.0 * static_cast<double>(L.count()) * static_cast<double>(task.token_dim) *
                       static_cast<double>(prompts);
  if (bytes <= kMost) return;
  throw CapabilityError("layer: " + std::to_string(prompts) + " prompts of L = " + L.text() +
                        " tokens take more than 8 GiB; ask for a shorter prompt or fewer draws");
}

RiskChoice choose_layer_risk(const ContextTask& task, const Layer& layer, Length length,
                             Engine engine) {
  if (engine == Engine::sampled) {
    throw CapabilityError("task " + std::string(name(task.type)) +
                          ": no sampled engine for the risk of a layer; use exact or direct");
  }
  const bool of_law = length.is_infinite() || layer.heads.empty();
  const bool squared = task.loss == TaskLoss::squared;
  const bool formula = of_law || (squared && has_prompt_formula(layer));
  // Integrals over pairs of heads cost milliseconds for each query, so that they are asked for.
  const bool by_pairs = !length.is_infinite() && reads_pairs(layer);
  const bool asked = engine != Engine::direct && engine != Engine::automatic;
  if (formula && (by_pairs ? asked : engine != Engine::direct)) {
    return {RiskMethod::quadrature, Engine::quadrature,
            "The layer is exact over tokens; laws and queries are quadrature nodes."};
  }
  const std::string who =
      squared ? "softmax and linear heads in one layer have" : "the logistic loss has";
  if (!formula && asked) {
    throw CapabilityError("task " + std::string(name(task.type)) + ": " + who +
                          " no formula at L = " + length.text() +
                          "; engine \"auto\" or \"direct\" draws prompts");
  }
  return {RiskMethod::draws, Engine::direct,
          engine == Engine::direct ? "The engine direct was asked for."
          : formula  ? "Several softmax heads are drawn unless the engine exact is asked for."
          : !squared ? "The logistic loss has no formula at a finite length; prompts are drawn."
                     : "Softmax and linear heads in one layer have no formula; prompts are drawn."};
}

Estimate layer_risk(const ContextTask& task, const Layer& layer, Length length,
                    const RiskOptions& options) {
  check_layer(task, layer);
  if (choose_layer_risk(task, layer, length, options.engine).method == RiskMethod::quadrature) {
    return over_nodes(task, log2_nodes(layer, length, options), options, [&](const Places& places) {
      return errors_at(places, layer, length, nullptr);
    });
  }
  return over_draws(task, length, options,
                    [&](const Place& place) { return place.error(layer, length, nullptr); });
}

LayerRiskFunction layer_risk_function(const ContextTask& task, const Layer& like, Length length,
                                      const RiskOptions& options) {
  check_layer(task, like);
  auto places = std::make_shared<Places>();
  if (choose_layer_risk(task, like, length, options.engine).method == RiskMethod::draws) {
    if (!length.is_infinite()) check_prompt_memory(task, length, options.draws);
    *places = drawn_places(task, length, options);
  } else if (has_lattice(task)) {
    *places = places_of(lattice_nodes(task, 0), task.loss);
  } else {
    *places =
        places_of(net_nodes(task, log2_nodes(like, length, options), options.stream), task.loss);
  }
  return [places, length](const Layer& at, Layer* gradient) {
    if (gradient != nullptr) *gradient = at.zero();
    return errors_at(*places, at, length, gradient).sum();
  };
}

RiskOptions shared_nodes(const ContextTask& task, const Layer& like, Length length,
                         RiskOptions options) {
  if (!length.is_infinite()) return options;
  const Length finite = 2;
  if (choose_layer_risk(task, like, finite, options.engine).method == RiskMethod::draws) {
    options.engine = Engine::direct;
  }
  options.log2_nodes = log2_nodes(like, finite, options);
  return options;
}

ReferenceRisks reference_risks(const ContextTask& task, Length length, const RiskOptions& options) {
  ReferenceRisks out;
  out.bayes_by = bayes_by(task, length);
  out.bayes = over_nodes(task, options.log2_nodes, options, least_losses);
  if (out.bayes_by != BayesBy::known_law && !out.bayes_is_bound()) {
    const Estimate excess = posterior_excess(task, length, options);
    out.bayes = {out.bayes.value + excess.value, std::hypot(out.bayes.std_error, excess.std_error),
                 excess.n, excess.engine, out.bayes.heavy || excess.heavy};
  }
  out.affine = of_best_map(task, options, true);
  out.linear = of_best_map(task, options, false);
  return out;
}

std::vector<RiskRow> layer_risk_rows(const LayerProblem& problem) {
  std::vector<RiskRow> rows;
  const std::string type(name(problem.task.type));
  for (const Length L : problem.lengths) {
    rows.push_back(risk_row(L, problem.layer.name(),
                            layer_risk(problem.task, problem.layer, L, problem.risk)));
    rows.back().trained = problem.trained;
    if (!problem.references) continue;
    const ReferenceRisks reference = reference_risks(problem.task, L, problem.risk);
    rows.push_back(risk_row(L, "bayes", reference.bayes));
    if (reference.bayes_is_bound()) rows.back().bound = true;
    rows.back().bayes_by = reference.bayes_by;
    rows.push_back(risk_row(L, "affine", reference.affine));
    rows.push_back(risk_row(L, "linear", reference.linear));
  }
  for (RiskRow& row : rows) {
    row.task = type;
    row.loss = named_loss(problem.task.loss);
  }
  return rows;
}

}  // namespace esscher
