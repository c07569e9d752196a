#include "esscher/training/trainer.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/risk/closed_form.h"
#include "esscher/risk/task_batch.h"

namespace esscher {
namespace {

constexpr Index kMaxHeads = 8;

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

// Closed forms of risk/closed_form.h are halves of mean squared errors.
ExactLoss closed_form(const TrainConfig& config) {
  const bool limit = config.length.is_infinite();
  if (config.heads != 1 || config.task.features != Features::gaussian ||
      (config.model == ModelKind::softmax && !limit)) {
    throw CapabilityError(
        "train: no closed-form gradient for this model; give the exact loss of softmax_risk, or "
        "use "
        "gradient = \"sampled\"");
  }
  const double factor = config.half_loss ? 1.0 : 2.0;
  return [task = config.task, length = config.length, factor](std::span<const Readout> heads,
                                                              std::vector<Readout>& gradient) {
    gradient.resize(1);
    const double risk = linear_risk(task, heads[0], length, gradient.data());
    gradient[0].U *= factor;
    gradient[0].r *= factor;
    return factor * risk;
  };
}

Vector vector_of(const Json& state, const char* key, Index size) {
  const Json& values = state.at(key);
  if (static_cast<Index>(values.size()) != size) {
    throw FileError("training state: " + std::string(key) + " has " +
                    std::to_string(values.size()) + " numbers, expected " + std::to_string(size));
  }
  Vector v(size);
  for (Index i = 0; i < size; ++i) v(i) = values[static_cast<std::size_t>(i)].get<double>();
  return v;
}

}  // namespace

std::string_view name(TrainStatus status) {
  return status == TrainStatus::running ? "running" : "diverged";
}

TrainConfig TrainConfig::authors(ModelKind model, Length length) {
  TrainConfig config;
  config.task = LinearRegressionTask::with_covariance(power_covariance(5, 0.5));
  config.task.task_variance = 0.2;
  config.task.noise_variance = 0.1;
  config.task.query_noise = true;
  config.model = model;
  config.length = length;
  config.space = {ParameterSpace::KQVO, 6, 6, 1 / std::sqrt(6.0)};
  return config;
}

void TrainConfig::check() const {
  if (!own_task) task.check();
  if (own_task && gradient != GradientEngine::direct) {
    throw CapabilityError("train: gradient = \"" + std::string(esscher::name(gradient)) +
                          "\" is for linear regression; task " + own_task->name +
                          " is trained with gradient = \"direct\"");
  }
  if (heads < 1 || heads > kMaxHeads) {
    throw_argument("train", "heads", std::to_string(heads), "an integer from 1 to 8");
  }
  check_positive("learning_rate", optimizer.learning_rate);
  check_positive("divergence_loss", divergence_loss);
  check_unit("momentum", optimizer.momentum);
  check_unit("beta1", optimizer.beta1);
  check_unit("beta2", optimizer.beta2);
  check_positive("epsilon", optimizer.epsilon);
  if (!(optimizer.weight_decay >= 0) || !std::isfinite(optimizer.weight_decay)) {
    throw_argument("train", "weight_decay", to_text(optimizer.weight_decay),
                   "a finite number >= 0");
  }
  if (curve_block < 1) {
    throw_argument("train", "curve_block", std::to_string(curve_block), "an integer >= 1");
  }
  if (!std::isfinite(space.score_scale)) {
    throw_argument("train", "score_scale", to_text(space.score_scale), "a finite number");
  }
}

Trainer::Trainer(TrainConfig config, ExactLoss exact)
    : config_(std::move(config)), exact_(std::move(exact)) {
  config_.check();
  const auto& own = config_.own_task;
  config_.space.token_dim = own ? own->token_dim : config_.task.token_dim();
  if (config_.space.key_dim == 0) config_.space.key_dim = config_.space.token_dim;
  if (config_.gradient == GradientEngine::exact) {
    if (!exact_) exact_ = closed_form(config_);
  } else if (own) {
    batch_ = TaskBatch(*own, config_.model, config_.length, config_.batch, config_.half_loss);
  } else {
    batch_ = PromptBatch(config_.task, config_.model, config_.gradient, config_.length,
                         config_.batch, config_.half_loss);
  }
  theta_ =
      initial_parameters(config_.space, config_.heads, config_.init, Stream(config_.seed).split(0));
  check_finite("train", "initial parameters", theta_);
}

std::vector<Readout> Trainer::heads() const {
  const Index size = config_.space.size();
  std::vector<Readout> heads;
  for (Index h = 0; h < config_.heads; ++h) {
    heads.push_back(config_.space.readout(theta_.segment(h * size, size)));
  }
  return heads;
}

double Trainer::gradient(std::int64_t t, Vector& out) const {
  const std::vector<Readout> at = heads();
  BatchLoss batch;
  if (batch_) {
    batch = batch_(at, Stream(config_.seed).split(1).split(static_cast<std::uint64_t>(t)));
  } else {
    batch.loss = exact_(at, batch.gradient);
  }
  const Index size = config_.space.size();
  out.resize(theta_.size());
  for (Index h = 0; h < config_.heads; ++h) {
    out.segment(h * size, size) = config_.space.pull_back(
        theta_.segment(h * size, size), batch.gradient[static_cast<std::size_t>(h)]);
  }
  return batch.loss;
}

std::int64_t Trainer::run(std::int64_t steps) {
  std::int64_t taken = 0;
  Vector g;
  for (; taken < steps && status_ == TrainStatus::running; ++taken) {
    const double loss = gradient(step_, g);
    if (!std::isfinite(loss) || loss > config_.divergence_loss || !g.allFinite()) {
      status_ = TrainStatus::diverged;
      break;
    }
    Vector next = theta_;
    OptimizerState moments = optimizer_;
    optimizer_step(config_.optimizer, step_ + 1, g, next, moments);
    // The product K'Q must be finite too, or the next loss would be read from infinities.
    const bool moments_finite = moments.first.allFinite() && moments.second.allFinite();
    if (!next.allFinite() || !moments_finite || next.cwiseAbs().maxCoeff() > 1e100) {
      status_ = TrainStatus::diverged;
      break;
    }
    theta_ = std::move(next);
    optimizer_ = std::move(moments);
    ++step_;
    record(loss);
  }
  return taken;
}

void Trainer::record(double loss) {
  last_loss_ = loss;
  block_sum_ += loss;
  block_square_ += loss * loss;
  if (++block_count_ < config_.curve_block) return;
  const auto n = static_cast<double>(block_count_);
  const double mean = block_sum_ / n;
  const double variance =
      block_count_ > 1 ? std::max(block_square_ - n * mean * mean, 0.0) / (n - 1) : 0.0;
  curve_.push_back({step_ - block_count_, step_, mean, std::sqrt(variance / n)});
  block_sum_ = block_square_ = 0;
  block_count_ = 0;
}

Json Trainer::state() const {
  Json curve = Json::array();
  for (const LossPoint& p : curve_) curve.push_back({p.first, p.last, p.loss, p.std_error});
  return {{"step", step_},
          {"status", std::string(name(status_))},
          {"seed", config_.seed},
          {"last_loss", last_loss_},
          {"theta", json_vector(theta_)},
          {"first", json_vector(optimizer_.first)},
          {"second", json_vector(optimizer_.second)},
          {"block", {block_sum_, block_square_, block_count_}},
          {"curve", curve}};
}

void Trainer::restore(const Json& state) {
  try {
    if (state.at("seed").get<std::uint64_t>() != config_.seed) {
      throw FileError("training state: seed " + state.at("seed").dump() + ", expected " +
                      std::to_string(config_.seed));
    }
    const Vector theta = vector_of(state, "theta", theta_.size());
    OptimizerState moments;
    if (!state.at("first").empty()) moments.first = vector_of(state, "first", theta_.size());
    if (!state.at("second").empty()) moments.second = vector_of(state, "second", theta_.size());
    std::vector<LossPoint> curve;
    for (const Json& p : state.at("curve")) {
      curve.push_back({p.at(0).get<std::int64_t>(), p.at(1).get<std::int64_t>(),
                       p.at(2).get<double>(), p.at(3).get<double>()});
    }
    const Json& block = state.at("block");
    block_sum_ = block.at(0).get<double>();
    block_square_ = block.at(1).get<double>();
    block_count_ = block.at(2).get<std::int64_t>();
    step_ = state.at("step").get<std::int64_t>();
    last_loss_ = state.at("last_loss").get<double>();
    status_ = state.at("status") == "diverged" ? TrainStatus::diverged : TrainStatus::running;
    theta_ = theta;
    optimizer_ = std::move(moments);
    curve_ = std::move(curve);
  } catch (const Json::exception& e) {
    throw FileError(std::string("training state: ") + e.what());
  }
}

}  // namespace esscher
