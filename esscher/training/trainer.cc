#include "esscher/training/trainer.h"

#include <cmath>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/risk/layer_batch.h"
#include "esscher/risk/layer_error.h"

namespace esscher {
namespace {

void check_positive(const char* field, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw_argument("train", field, to_text(value), "a positive finite number");
  }
}

void check_unit(const char* field, double value) {
  if (!(value >= 0 && value < 1)) {
    throw_argument("train", field, to_text(value), "a number in [0, 1)");
  }
}

void check_optimizer(const OptimizerOptions& o) {
  check_positive("learning_rate", o.learning_rate);
  check_unit("momentum", o.momentum);
  check_unit("beta1", o.beta1);
  check_unit("beta2", o.beta2);
  check_positive("epsilon", o.epsilon);
  if (!(o.weight_decay >= 0) || !std::isfinite(o.weight_decay)) {
    throw_argument("train", "weight_decay", to_text(o.weight_decay), "a finite number >= 0");
  }
  if (o.clip) check_positive("clip", *o.clip);
}

// The population loss. A risk is half a mean squared error.
auto exact_loss(const TrainConfig& config) {
  RiskOptions options = config.risk;
  options.engine = Engine::automatic;
  return [risk = risk_function(config.task, config.model, config.length, options),
          scale = config.half_loss ? 1.0 : 2.0](std::span<const Readout> heads, const Stream&) {
    BatchLoss out{0, {Readout::zero(heads[0].dim())}};
    try {
      out.loss = scale * risk(heads[0], out.gradient.data());
      out.gradient[0] *= scale;
    } catch (const DomainError&) {  // scores overflow: the run has diverged
      out.loss = HUGE_VAL;
    }
    return out;
  };
}

using Loss = std::function<double(const Vector& theta, const Stream&, Vector& gradient)>;

std::vector<Readout> heads_at(const TrainConfig& config, const Vector& theta) {
  const Index size = config.space.size();
  std::vector<Readout> heads;
  for (Index h = 0; h < config.heads; ++h) {
    heads.push_back(config.space.readout(theta.segment(h * size, size)));
  }
  return heads;
}

Loss head_loss(const TrainConfig& config) {
  std::function<BatchLoss(std::span<const Readout>, const Stream&)> of_heads;
  if (config.gradient == Engine::exact) {
    of_heads = exact_loss(config);
  } else {
    of_heads = Batch(config.task, config.model, config.gradient, config.length, config.batch,
                     config.half_loss);
  }
  return [config, of_heads](const Vector& theta, const Stream& stream, Vector& gradient) {
    const BatchLoss batch = of_heads(heads_at(config, theta), stream);
    const Index size = config.space.size();
    gradient.resize(theta.size());
    for (Index h = 0; h < config.heads; ++h) {
      gradient.segment(h * size, size) = config.space.pull_back(
          theta.segment(h * size, size), batch.gradient[static_cast<std::size_t>(h)]);
    }
    return batch.loss;
  };
}

// Several softmax heads are exact where the engine asks for it.
RiskOptions exact_risk(const TrainConfig& config) {
  RiskOptions out = config.risk;
  out.engine = Engine::exact;
  return out;
}

Loss layer_loss(const TrainConfig& config) {
  const LayerModel& model = *config.layer;
  const LayerMap map = model.map();
  if (config.gradient == Engine::exact) {
    return
        [risk = layer_objective(model.task, map, config.length, exact_risk(config)),
         scale = config.half_loss ? 1.0 : 2.0](const Vector& phi, const Stream&, Vector& gradient) {
          const double loss = scale * risk(phi, gradient);
          gradient *= scale;
          return loss;
        };
  }
  const LayerBatch batch(model.task, config.length, config.batch, config.half_loss);
  return [batch, map](const Vector& phi, const Stream& stream, Vector& gradient) {
    try {
      const LayerLoss found = batch(map.layer(phi), stream);
      gradient = map.pull_back(phi, found.gradient);
      return found.loss;
    } catch (const DomainError&) {  // scores overflow: the run has diverged
      gradient = Vector::Zero(phi.size());
      return HUGE_VAL;
    }
  };
}

GradientChoice choose_layer_gradient(const TrainConfig& config) {
  const std::string type(name(config.layer->task.type));
  switch (config.gradient) {
    case Engine::automatic:
    case Engine::direct:
      return {Engine::direct, config.length.is_infinite()
                                  ? "Laws and queries are drawn; the layer reads the law."
                                  : "Prompts of " + type + " are drawn token by token."};
    case Engine::exact:
      if (config.length.is_infinite() || (config.layer->task.loss == TaskLoss::squared &&
                                          has_prompt_formula(config.layer->start))) {
        return {Engine::exact, "The population loss is exact over prompts."};
      }
      throw CapabilityError("train: gradient = \"exact\" on " + type +
                            " is for the squared loss of softmax heads or of linear heads at a "
                            "finite length; gradient = \"auto\" draws prompts");
    default: break;
  }
  throw CapabilityError("train: gradient = \"" + std::string(name(config.gradient)) +
                        "\" does not serve " + type + "; use \"direct\" or \"exact\"");
}

void check_size(const char* what, const Vector& values, Index size) {
  if (values.size() == size) return;
  throw FileError("training state: " + std::string(what) + " has " + std::to_string(values.size()) +
                  " numbers, expected " + std::to_string(size));
}

}  // namespace

TrainConfig TrainConfig::authors(ModelKind model, Length length) {
  LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(5, 0.5));
  task.task_variance = 0.2;
  task.noise_variance = 0.1;
  task.query_noise = true;
  TrainConfig config;
  config.task = std::move(task);
  config.model = model;
  config.length = length;
  config.space = {ParameterSpace::KQVO, 6, 6, 1 / std::sqrt(6.0)};
  return config;
}

void TrainConfig::check() const {
  if (layer) {
    (void)layer->theta0();
    if (layer->task.loss != TaskLoss::squared && !half_loss) {
      throw_argument("train", "loss", "mse", "\"half\", beside the task's own loss");
    }
  } else {
    task.check();
  }
  if (heads < 1 || heads > kMaxHeads) {
    throw_argument("train", "heads", std::to_string(heads),
                   "an integer from 1 to " + std::to_string(kMaxHeads));
  }
  check_optimizer(optimizer);
  check_positive("divergence_loss", divergence_loss);
  if (curve_block < 1) {
    throw_argument("train", "curve_block", std::to_string(curve_block), "an integer >= 1");
  }
  if (!std::isfinite(space.score_scale)) {
    throw_argument("train", "score_scale", to_text(space.score_scale), "a finite number");
  }
  choose_gradient(*this);
}

GradientChoice choose_gradient(const TrainConfig& config) {
  if (config.layer) return choose_layer_gradient(config);
  if (config.gradient != Engine::exact) {
    const Engine engine = batch_engine(config.task, config.gradient);
    const bool sampled = engine == Engine::sampled;
    return {engine, sampled ? "Gaussian features need no tokens."
                            : "Prompts of " + config.task.name() + " are drawn token by token."};
  }
  if (config.heads != 1 || !config.task.has_formulas()) {
    throw CapabilityError(
        "train: gradient = \"exact\" is for one head on linear regression with gaussian features; "
        "here are " +
        std::to_string(config.heads) + " on " + config.task.name() +
        "; gradient = \"auto\" draws prompts");
  }
  return {Engine::exact, "The population loss has a formula."};
}

Trainer::Trainer(TrainConfig config) : config_(std::move(config)) {
  config_.check();
  config_.gradient = choose_gradient(config_).engine;
  state_.seed = config_.seed;
  if (config_.layer) {
    loss_ = layer_loss(config_);
    state_.theta = config_.layer->theta0();
  } else {
    config_.space.token_dim = config_.task.token_dim();
    if (config_.space.key_dim == 0) config_.space.key_dim = config_.space.token_dim;
    loss_ = head_loss(config_);
    state_.theta = start_parameters(config_.space, config_.heads, config_.start, config_.seed);
  }
  check_finite("train", "initial parameters", state_.theta);
}

std::vector<Readout> Trainer::heads() const {
  return config_.layer ? std::vector<Readout>() : heads_at(config_, state_.theta);
}

Layer Trainer::layer() const {
  if (!config_.layer) throw ArgumentError("train: the model has heads (U, r), expected a layer");
  return config_.layer->map().layer(state_.theta);
}

double Trainer::gradient(std::int64_t t, Vector& out) const {
  const Stream stream = Stream(config_.seed).split(1).split(static_cast<std::uint64_t>(t));
  return loss_(state_.theta, stream, out);
}

std::int64_t Trainer::run(std::int64_t steps) {
  std::int64_t taken = 0;
  Vector g;
  for (; taken < steps && status() == TrainStatus::running; ++taken) {
    check_stop();
    const double loss = gradient(step(), g);
    if (!std::isfinite(loss) || loss > config_.divergence_loss || !g.allFinite()) {
      state_.status = TrainStatus::diverged;
      break;
    }
    Vector next = state_.theta;
    OptimizerState moments = state_.optimizer;
    optimizer_step(config_.optimizer, step() + 1, g, next, moments);
    // The product K'Q must be finite too, or the next loss would be read from infinities.
    const bool moments_finite = moments.first.allFinite() && moments.second.allFinite();
    if (!next.allFinite() || !moments_finite || next.cwiseAbs().maxCoeff() > 1e100) {
      state_.status = TrainStatus::diverged;
      break;
    }
    state_.theta = std::move(next);
    state_.optimizer = std::move(moments);
    ++state_.step;
    record(loss);
  }
  return taken;
}

void Trainer::record(double loss) {
  state_.last_loss = loss;
  Moments& block = state_.block;
  block.add(loss);
  if (block.count() < config_.curve_block) return;
  state_.curve.push_back({.first = step() - block.count(),
                          .last = step(),
                          .loss = block.mean(),
                          .std_error = block.std_error()});
  block = Moments();
}

void Trainer::restore(TrainState state) {
  if (state.seed != config_.seed) {
    throw FileError("training state: seed " + std::to_string(state.seed) + ", expected " +
                    std::to_string(config_.seed));
  }
  check_size("theta", state.theta, theta().size());
  if (state.optimizer.first.size() > 0) check_size("first", state.optimizer.first, theta().size());
  if (state.optimizer.second.size() > 0) {
    check_size("second", state.optimizer.second, theta().size());
  }
  state_ = std::move(state);
}

}  // namespace esscher
