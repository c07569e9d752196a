#include "esscher/config/train.h"

#include <string>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/risk/batch.h"

namespace esscher {
namespace {

OptimizerOptions read_optimizer(const Table& train) {
  const Range unit{.low = 0, .high = 1, .high_open = true};
  OptimizerOptions o;
  o.kind = train.enumerator_or("optimizer", o.kind);
  o.learning_rate = train.number_or("learning_rate", o.learning_rate, Range::positive());
  o.momentum = train.number_or("momentum", o.momentum, unit);
  o.beta1 = train.number_or("beta1", o.beta1, unit);
  o.beta2 = train.number_or("beta2", o.beta2, unit);
  o.epsilon = train.number_or("epsilon", o.epsilon, Range::positive());
  o.weight_decay = train.number_or("weight_decay", o.weight_decay, Range::at_least(0));
  if (train.has("clip")) o.clip = train.number("clip", Range::positive());
  return o;
}

void read_heads(const Table& root, std::uint64_t seed, TrainConfig& c) {
  const LinearRegressionTask task = read_task(root);
  const ModelConfig model = read_model(root, task, seed);
  c.task = task;
  c.model = model.kind;
  c.space = model.space;
  c.heads = model.heads;
  c.start = model.start;
}

}  // namespace

TrainPlan read_train(const Table& root, std::uint64_t seed) {
  allow_lab_keys(root);
  TrainPlan out;
  TrainConfig& c = out.config;
  if (read_task_type(root) == TaskType::regression) {
    read_heads(root, seed, c);
  } else {
    c.layer = read_layer_model(root, read_context_task(root), seed);
  }
  c.risk = read_flow(root, seed).risk;
  const Table train = root.table_or_empty("train");
  c.length = read_length(root);
  c.optimizer = read_optimizer(train);
  c.batch = train.integer_or("batch", c.batch, Range::between(1, 1e9));
  // A stored configuration names the engine that a missing key stands for. The released program
  // wrote "sampled" there, so its unfinished runs are the same study today and go on.
  c.gradient = train.enumerator_or(
      "gradient", c.layer ? Engine::direct : batch_engine(c.task, Engine::automatic));
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

void allow_train_keys(const Table& root) {
  const std::optional<Table> train = root.find_table("train");
  if (!train) return;
  train->allow({"length", "optimizer", "learning_rate", "momentum", "beta1", "beta2", "epsilon",
                "weight_decay", "clip", "batch", "steps", "gradient", "loss", "curve_block",
                "checkpoints"});
}

}  // namespace esscher
