#include "arrays.h"
#include "esscher/training/exact_loss.h"
#include "esscher/training/trainer.h"
#include "results.h"
#include "tasks.h"

namespace esscher::python {
namespace {

template <class T, class Set>
void take(const py::dict& options, const char* key, const Set& set) {
  if (options.contains(key)) set(py::cast<T>(options[key]));
}

TrainConfig config_in(const py::object& task, const py::object& length, const py::dict& options) {
  TrainConfig config;
  TaskIn in = task_in(task);
  config.task = std::move(in.regression);
  config.own_task = std::move(in.own);
  config.length = length_in("train", length);
  using Text = std::string;
  take<Text>(options, "model", [&](const Text& t) { config.model = parse_model_kind(t); });
  take<Text>(options, "parametrisation",
             [&](const Text& t) { config.space.space = parse_parameter_space(t); });
  take<Text>(options, "init", [&](const Text& t) { config.init.kind = parse_init_kind(t); });
  take<Text>(options, "optimizer",
             [&](const Text& t) { config.optimizer.kind = parse_optimizer(t); });
  take<Text>(options, "gradient",
             [&](const Text& t) { config.gradient = parse_gradient_engine(t); });
  take<double>(options, "alpha", [&](double x) { config.init.alpha = x; });
  take<double>(options, "score_scale", [&](double x) { config.space.score_scale = x; });
  take<double>(options, "learning_rate", [&](double x) { config.optimizer.learning_rate = x; });
  take<double>(options, "momentum", [&](double x) { config.optimizer.momentum = x; });
  take<double>(options, "beta1", [&](double x) { config.optimizer.beta1 = x; });
  take<double>(options, "beta2", [&](double x) { config.optimizer.beta2 = x; });
  take<double>(options, "epsilon", [&](double x) { config.optimizer.epsilon = x; });
  take<double>(options, "weight_decay", [&](double x) { config.optimizer.weight_decay = x; });
  take<Index>(options, "heads", [&](Index n) { config.heads = n; });
  take<Index>(options, "batch", [&](Index n) { config.batch = n; });
  take<std::uint64_t>(options, "seed", [&](std::uint64_t n) { config.seed = n; });
  take<std::int64_t>(options, "curve_block", [&](std::int64_t n) { config.curve_block = n; });
  config.check();
  return config;
}

py::dict train(const py::object& task, const py::object& length, std::int64_t steps,
               const py::dict& options) {
  const TrainConfig config = config_in(task, length, options);
  return run_trainer(Trainer(config, exact_loss(config, {.stream = Stream(config.seed)})), steps);
}

}  // namespace

void bind_train(py::module_& m) { m.def("train", &train); }

}  // namespace esscher::python
