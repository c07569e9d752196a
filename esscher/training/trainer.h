// Training in context: SGD (momentum), Adam or AdamW on fresh prompts.
//
// Step t draws its prompts from Stream(seed).split(1).split(t), so a run is a pure function of its
// configuration: stopping after any step and resuming from the state gives the same bits, for any
// number of threads. The state is JSON with numbers that read back as the same doubles.
//
//   TrainConfig config;  config.task = ..;  config.length = 1000;
//   Trainer trainer(config);
//   trainer.run(10000);
//   trainer.status(), trainer.heads(), trainer.curve(), trainer.state()
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/length.h"
#include "esscher/json/json.h"
#include "esscher/risk/batch.h"
#include "esscher/risk/readout.h"
#include "esscher/risk/sample_risk.h"
#include "esscher/task/regression.h"
#include "esscher/training/optimizer.h"
#include "esscher/training/start.h"

namespace esscher {

struct TrainConfig {
  LinearRegressionTask task;
  std::optional<Task> own_task;  // instead of `task`; gradient must be direct
  ModelKind model = ModelKind::softmax;
  // token_dim is set from the task; key_dim 0 means token_dim. score_scale acts in KQV and KQVO.
  Parametrisation space{ParameterSpace::UV, 0, 0, 1.0};
  Index heads = 1;  // 1..8
  InitOptions init;
  Length length = 100;
  GradientEngine gradient = GradientEngine::sampled;
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

  // Throws ArgumentError naming the field that is wrong.
  void check() const;
};

enum class TrainStatus { running, diverged };
std::string_view name(TrainStatus status);

// Mean loss over the steps (first, last] and its standard error from their spread.
struct LossPoint {
  std::int64_t first = 0;
  std::int64_t last = 0;
  double loss = 0;
  double std_error = 0;
};

// Population loss of the heads and its gradient, for gradient = exact: the same scale as the batch
// loss (no one half unless half_loss).
using ExactLoss =
    std::function<double(std::span<const Readout> heads, std::vector<Readout>& gradient)>;

class Trainer {
 public:
  // `exact` is needed for gradient = exact unless a closed form exists: one head, Gaussian
  // features, and linear attention or L = infinity.
  explicit Trainer(TrainConfig config, ExactLoss exact = {});

  // At most `steps` more steps; fewer if the run diverges. Returns how many were taken.
  std::int64_t run(std::int64_t steps);

  // Diverged: the loss, gradient or parameters left the range of finite numbers, or the loss passed
  // divergence_loss. The parameters are those before the step that failed, always finite.
  [[nodiscard]] TrainStatus status() const { return status_; }
  [[nodiscard]] std::int64_t step() const { return step_; }
  [[nodiscard]] const TrainConfig& config() const { return config_; }
  [[nodiscard]] const Vector& theta() const { return theta_; }
  [[nodiscard]] std::vector<Readout> heads() const;
  [[nodiscard]] const std::vector<LossPoint>& curve() const { return curve_; }
  [[nodiscard]] double last_loss() const { return last_loss_; }

  // Loss and gradient in theta of the batch of step t at the present parameters.
  [[nodiscard]] double gradient(std::int64_t t, Vector& out) const;

  // Everything needed to go on. restore() throws FileError if the state does not fit the config.
  [[nodiscard]] Json state() const;
  void restore(const Json& state);

 private:
  void record(double loss);

  TrainConfig config_;
  ExactLoss exact_;
  std::function<BatchLoss(std::span<const Readout>, const Stream&)> batch_;  // none: exact_
  Vector theta_;
  OptimizerState optimizer_;
  std::int64_t step_ = 0;
  TrainStatus status_ = TrainStatus::running;
  double last_loss_ = 0;
  std::vector<LossPoint> curve_;
  double block_sum_ = 0;
  double block_square_ = 0;
  std::int64_t block_count_ = 0;
};

}  // namespace esscher
