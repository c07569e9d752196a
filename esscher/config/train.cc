#include "esscher/config/train.h"

#include "esscher/base/error.h"
#include "esscher/config/icl.h"

namespace esscher {
namespace {

OptimizerOptions read_optimizer(const Table& train) {
  const Range unit{.low = 0, .high = 1, .high_open = true};
  OptimizerOptions o;
  o.kind = parse_optimizer(train.choice_or("optimizer", {"sgd", "adam", "adamw"}, "sgd"));
  o.learning_rate = train.number_or("learning_rate", o.learning_rate, Range::positive());
  o.momentum = train.number_or("momentum", o.momentum, unit);
  o.beta1 = train.number_or("beta1", o.beta1, unit);
  o.beta2 = train.number_or("beta2", o.beta2, unit);
  o.epsilon = train.number_or("epsilon", o.epsilon, Range::positive());
  o.weight_decay = train.number_or("weight_decay", o.weight_decay, Range::at_least(0));
  return o;
}

InitOptions read_init(const ModelConfig& model) {
  InitOptions init;
  if (model.init == "torch") {
    init.kind = InitKind::torch;
  } else if (model.heads == 1) {
    init.kind = InitKind::dense;  // the start is known as (U, r), whatever its kind
    init.dense = {model.space.readout(model.theta0)};
  } else {
    init.kind = model.init == "balanced" ? InitKind::balanced : InitKind::small_identity;
    init.alpha = model.alpha;
  }
  return init;
}

}  // namespace

TrainRun read_train(const Table& root, std::uint64_t seed) {
  TrainRun out;
  TrainConfig& c = out.config;
  c.task = read_task(root);
  const ModelConfig model = read_model(root, c.task);
  c.model = model.kind;
  c.space = model.space;
  c.heads = model.heads;
  c.init = read_init(model);
  const Table train = root.table_or_empty("train");
  c.length = train.length_or("length", c.length);
  c.optimizer = read_optimizer(train);
  c.batch = train.integer_or("batch", c.batch, Range::between(1, 1e9));
  c.gradient =
      parse_gradient_engine(train.choice_or("gradient", {"sampled", "direct", "exact"}, "sampled"));
  c.half_loss = train.choice_or("loss", {"half", "mse"}, "half") == "half";
  c.curve_block = train.integer_or("curve_block", c.curve_block, Range::at_least(1));
  c.seed = seed;
  out.steps = train.integer_or("steps", out.steps, Range::at_least(1));
  out.checkpoints = train.integer_or("checkpoints", out.checkpoints, Range::at_least(1));
  try {
    c.check();
  } catch (const ArgumentError& error) {
    throw ConfigError(std::string("[train]: ") + error.what());
  }
  return out;
}

}  // namespace esscher
