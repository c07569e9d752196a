// Training in context: SGD (momentum), Adam or AdamW on fresh prompts, or on the population loss.
//
// Step t draws its prompts from Stream(seed).split(1).split(t), so a run is a pure function of its
// configuration: stopping after any step and resuming from the state gives the same bits, for any
// number of threads.
//
//   TrainConfig config{.task = task, .length = 1000};
//   Trainer trainer(config);
//   trainer.run(10000);
//   trainer.status(), trainer.heads(), trainer.curve(), trainer.state()
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/length.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/batch.h"
#include "esscher/risk/risk.h"
#include "esscher/training/layer_model.h"
#include "esscher/training/optimizer.h"
#include "esscher/training/start.h"

namespace esscher {

struct TrainConfig {
  AnyTask task;
  ModelKind model = ModelKind::softmax;
  // token_dim is set from the task; key_dim 0 means token_dim. score_scale acts in KQV and KQVO.
  Parametrisation space{ParameterSpace::UV, 0, 0, 1.0};
  Index heads = 1;  // 1 .. kMaxHeads
  StartOptions start;
  // A layer on a task beyond regression; it stands for task, model, space, heads and start.
  std::optional<LayerModel> layer = {};
  Length length = 100;
  Engine gradient = Engine::automatic;  // choose_gradient
  RiskOptions risk;                     // nodes of gradient = exact
  OptimizerOptions optimizer;
  Index batch = 128;
  bool half_loss = false;  // loss is (prediction - y)^2, or one half of it
  std::uint64_t seed = 0;
  std::int64_t curve_block = 100;  // steps averaged in one point of the loss curve
  double divergence_loss = 1e8;    // a loss above this ends the run

  // The authors' experiment (docs/maths/icl.md#the-experiment-of-the-authors): KQVO, D = 6, scores
  // scaled by 1/sqrt(6), SGD 1e-3, batch 128, w ~ N(0, I/5), noise of variance 0.1 on the labels of
  // prompt and query, covariance 0.5^|i-j|.
  static TrainConfig authors(ModelKind model, Length length);

  // Throws ArgumentError naming the field that is wrong, CapabilityError for a gradient that the
  // model does not have.
  void check() const;
};

struct GradientChoice {
  Engine engine = Engine::sampled;  // sampled, direct or exact
  std::string reason;               // a sentence
};

// Where the gradient of a step comes from, known before any work:
//   sampled    fresh prompts of linear regression with Gaussian features, without tokens
//   direct     fresh prompts of any task, token by token
//   exact      the population loss: one head, linear regression with Gaussian features; a layer
//              whose risk is exact over prompts (risk/layer_risk.h)
//   automatic  sampled where it exists, else direct
// Throws CapabilityError for an engine that does not serve this model, naming one that does.
GradientChoice choose_gradient(const TrainConfig& config);

enum class TrainStatus { running, diverged };

constexpr auto enum_names(TrainStatus) {
  return EnumNames<TrainStatus, 2>{
      "status of a training run",
      {{{TrainStatus::running, "running"}, {TrainStatus::diverged, "diverged"}}}};
}

// Mean loss over the steps (first, last] and its standard error from their spread (infinite for one
// step).
struct LossPoint {
  std::int64_t first = 0;
  std::int64_t last = 0;
  double loss = 0;
  double std_error = 0;
};

// Everything needed to go on; json/training.h writes and reads it.
struct TrainState {
  std::uint64_t seed = 0;
  std::int64_t step = 0;
  TrainStatus status = TrainStatus::running;
  double last_loss = 0;
  Vector theta;              // of all heads, one after another; phi of a layer
  OptimizerState optimizer;  // empty vectors before the first step
  Moments block;             // losses since the last point of the curve
  std::vector<LossPoint> curve;
};

class Trainer {
 public:
  explicit Trainer(TrainConfig config);

  // At most `steps` more steps; fewer if the run diverges. Returns how many were taken.
  std::int64_t run(std::int64_t steps);

  // A run has diverged if the loss, the gradient or the parameters are no longer finite, or if the
  // loss exceeds divergence_loss. The parameters are those before the step that failed, so they are
  // always finite.
  [[nodiscard]] TrainStatus status() const { return state_.status; }
  [[nodiscard]] std::int64_t step() const { return state_.step; }
  [[nodiscard]] const TrainConfig& config() const { return config_; }
  [[nodiscard]] const Vector& theta() const { return state_.theta; }
  [[nodiscard]] std::vector<Readout> heads() const;  // none of a layer
  [[nodiscard]] Layer layer() const;                 // throws ArgumentError unless there is one
  [[nodiscard]] const std::vector<LossPoint>& curve() const { return state_.curve; }
  [[nodiscard]] double last_loss() const { return state_.last_loss; }

  // Loss and gradient in theta of the batch of step t at the present parameters.
  [[nodiscard]] double gradient(std::int64_t t, Vector& out) const;

  [[nodiscard]] const TrainState& state() const { return state_; }
  // Throws FileError if the state does not fit the configuration; the trainer is then unchanged.
  void restore(TrainState state);

 private:
  void record(double loss);

  TrainConfig config_;
  // The loss of the prompts of a stream at theta; the gradient in theta is overwritten.
  std::function<double(const Vector& theta, const Stream&, Vector& gradient)> loss_;
  TrainState state_;
};

}  // namespace esscher
