#include <pybind11/stl.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "arrays.h"
#include "esscher/base/error.h"
#include "esscher/training/trainer.h"
#include "readouts.h"
#include "results.h"
#include "tasks.h"

namespace esscher::python {
namespace {

// Options by name: each is taken once, and what nobody took is an error.
class Options {
 public:
  explicit Options(const py::dict& given) : given_(given) {}

  template <class T>
  void take(const char* key, T& value) {
    known_.insert(key);
    if (given_.contains(key)) value = py::cast<T>(given_[key]);
  }
  template <NamedEnum E>
  void take_enum(const char* key, E& value) {
    std::string text(name(value));
    take(key, text);
    value = parse_enum<E>(text);
  }
  void check_all_known() const {
    for (const auto& item : given_) {
      const auto key = py::cast<std::string>(item.first);
      if (!known_.contains(key)) throw_argument("train", "option", key, "an option of train");
    }
  }

 private:
  const py::dict& given_;
  std::set<std::string> known_;
};

TrainConfig config_in(const py::object& task, const py::object& length, const py::dict& given) {
  TrainConfig config;
  if (!py::isinstance<ContextTask>(task)) config.task = task_in(task);
  config.length = length_in("train", length);
  Options options(given);
  options.take_enum("kind", config.model);
  options.take("half_loss", config.half_loss);
  options.take_enum("parametrisation", config.space.space);
  options.take_enum("init", config.start.kind);
  options.take_enum("optimizer", config.optimizer.kind);
  options.take_enum("gradient", config.gradient);
  options.take("alpha", config.start.alpha);
  options.take("score_scale", config.space.score_scale);
  options.take("learning_rate", config.optimizer.learning_rate);
  options.take("momentum", config.optimizer.momentum);
  options.take("beta1", config.optimizer.beta1);
  options.take("beta2", config.optimizer.beta2);
  options.take("epsilon", config.optimizer.epsilon);
  options.take("weight_decay", config.optimizer.weight_decay);
  options.take("clip", config.optimizer.clip);
  options.take("heads", config.heads);
  options.take("batch", config.batch);
  options.take("seed", config.seed);
  options.take("curve_block", config.curve_block);
  if (py::isinstance<ContextTask>(task)) {
    py::tuple layer;  // (W, heads)
    options.take("layer", layer);
    config.layer = LayerModel{.task = py::cast<const ContextTask&>(task),
                              .start = layer_in(layer[0], layer[1])};
    options.take_enum("family", config.layer->family);
    config.layer->factors.space = config.space.space;
    config.layer->factors.score_scale = config.space.score_scale;
    if (config.start.kind == StartKind::torch) {
      config.layer = with_torch_start(*config.layer, Stream(config.seed).split(0));
    }
  }
  py::list start;
  options.take("start", start);
  for (const py::handle head : start) {
    const auto [U, r] = py::cast<std::pair<py::object, py::object>>(head);
    config.start.dense.push_back(readout_in(U, r));
  }
  options.check_all_known();
  config.risk.stream = Stream(config.seed);
  config.check();
  return config;
}

py::dict train(const py::object& task, const py::object& length, std::int64_t steps,
               std::int64_t checkpoints, const py::dict& options, const py::object& where) {
  Outlet outlet(where);
  return run_training({.config = config_in(task, length, options),
                       .steps = steps,
                       .checkpoints = std::min(checkpoints, steps)},
                      outlet);
}

}  // namespace

void bind_train(py::module_& m) { m.def("train", &train); }

}  // namespace esscher::python
