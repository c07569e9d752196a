// Training as a chain of checkpoints. Unlike a grid of cells (base/cells.h) a checkpoint needs the
// one before it, so a chain runs in order and resumes from a state.
//
//   Chain chain(plan);
//   if (found) chain.restore(state);
//   for (std::size_t k = 0; k < chain.keys().size() && !chain.is_over(); ++k) rows = chain.advance(k);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/risk/risk_rows.h"
#include "esscher/training/trainer.h"

namespace esscher {

struct TrainPlan {
  TrainConfig config;
  std::int64_t steps = 10000;
  std::int64_t checkpoints = 50;  // resuming starts at the last one
};

enum class TrainRowKind { loss, checkpoint };

constexpr auto enum_names(TrainRowKind) {
  return EnumNames<TrainRowKind, 2>{
      "kind of row", {{{TrainRowKind::loss, "loss"}, {TrainRowKind::checkpoint, "checkpoint"}}}};
}

// Losses are risks, halves of squared errors, whatever the optimizer saw.
struct TrainRow {
  TrainRowKind what = TrainRowKind::loss;
  std::int64_t step = 0;
  std::optional<double> loss, std_error, low, high;
  std::optional<TrainStatus> status;
  std::optional<Matrix> U;  // [H D,D], the heads one below the other
  std::optional<Vector> r;  // [H D]
  // Checkpoints of a layer: what its heads read [H m,D], its residual [m,D], the kinds of its heads.
  std::optional<Matrix> V, W;
  std::optional<std::string> kinds;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("what", row.what, "", "loss over a block of steps, or checkpoint");
    column("step", row.step, "", "last step of the block; steps done");
    column("loss", row.loss, "", "half the mean squared error on the training prompts");
    column("std_error", row.std_error, "", "standard error of the loss over the block");
    column("low", row.low, "", "loss minus two standard errors, at least 0");
    column("high", row.high, "", "loss plus two standard errors");
    column("status", row.status, "", "running or diverged");
    column("U", row.U, "", "K'Q of the heads, one below the other");
    column("r", row.r, "", "last rows of V of the heads, one after another");
    column("V", row.V, "", "what the heads of a layer read, one below the other");
    column("W", row.W, "", "the residual of a layer");
    column("kinds", row.kinds, "", "attention of the heads of a layer");
  }

  // The heads of a checkpoint, or its layer.
  [[nodiscard]] std::vector<Readout> heads() const;
  [[nodiscard]] bool is_layer() const { return W.has_value(); }
  [[nodiscard]] Layer layer() const;
};

class Chain {
 public:
  // Throws ArgumentError unless steps and checkpoints are positive.
  explicit Chain(TrainPlan plan);

  [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }  // "step 200", ..
  [[nodiscard]] const TrainPlan& plan() const { return plan_; }
  [[nodiscard]] const Trainer& trainer() const { return trainer_; }
  [[nodiscard]] const TrainState& state() const { return trainer_.state(); }
  void restore(TrainState state) { trainer_.restore(std::move(state)); }
  [[nodiscard]] bool is_over() const;  // diverged, or every step is done

  // Trains to the end of checkpoint k, from wherever the state is, and returns the rows of that
  // checkpoint.
  std::vector<TrainRow> advance(std::size_t k);

 private:
  [[nodiscard]] std::int64_t end(std::size_t k) const;  // steps before and in checkpoint k

  TrainPlan plan_;
  Trainer trainer_;
  std::vector<std::string> keys_;
};

// The last loss as a risk.
double last_risk(const Trainer& trainer);

struct TrainResult {
  std::int64_t steps = 0;
  TrainStatus status = TrainStatus::running;
  std::vector<TrainRow> losses, checkpoints;
  std::vector<Readout> heads;
  std::optional<Layer> layer;  // instead of heads
  std::string task;            // type of the task, of a layer
  RiskRow final_risk;          // NaN if the run diverged
};

// The end of a chain: the risk of its heads on fresh nodes or prompts, with the options given.
TrainResult assemble_training(const Trainer& trainer, std::span<const TrainRow> rows,
                              const RiskOptions& options);

}  // namespace esscher
