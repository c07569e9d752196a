#include "esscher/training/chain.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr std::int64_t kTestPrompts = 25600;  // behind the final risk of several heads

double as_risk(const TrainConfig& config) { return config.half_loss ? 1.0 : 0.5; }

TrainPlan checked(TrainPlan plan) {
  const auto positive = [](const char* field, std::int64_t n) {
    if (n < 1) throw_argument("train", field, std::to_string(n), "an integer >= 1");
  };
  positive("steps", plan.steps);
  positive("checkpoints", plan.checkpoints);
  return plan;
}

TrainRow loss_row(const LossPoint& p, double scale) {
  const double loss = scale * p.loss, error = scale * p.std_error;
  TrainRow row;
  row.step = p.last;
  row.loss = loss;
  row.std_error = error;
  row.low = std::max(loss - 2 * error, 0.0);
  row.high = loss + 2 * error;
  return row;
}

TrainRow layer_row(const Trainer& trainer) {
  const Layer layer = trainer.layer();
  TrainRow row;
  row.what = TrainRowKind::checkpoint;
  row.step = trainer.step();
  row.status = trainer.status();
  row.U = layer.stacked_U();
  row.V = layer.stacked_V();
  row.W = layer.W;
  row.kinds = layer.kinds_text();
  return row;
}

TrainRow checkpoint_row(const Trainer& trainer) {
  const std::vector<Readout> heads = trainer.heads();
  if (heads.empty()) return layer_row(trainer);
  const auto H = static_cast<Index>(heads.size());
  const Index D = heads[0].dim();
  TrainRow row;
  row.what = TrainRowKind::checkpoint;
  row.step = trainer.step();
  row.status = trainer.status();
  row.U.emplace(H * D, D);
  row.r.emplace(H * D);
  for (Index h = 0; h < H; ++h) {
    row.U->middleRows(h * D, D) = heads[static_cast<std::size_t>(h)].U;
    row.r->segment(h * D, D) = heads[static_cast<std::size_t>(h)].r;
  }
  return row;
}

RiskRow final_risk(const Trainer& trainer, RiskOptions options) {
  const TrainConfig& c = trainer.config();
  const std::string model = c.layer ? c.layer->start.name() : std::string(name(c.model));
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  RiskRow unknown = risk_row(c.length, model, {kNone, kNone, 0, Engine::sampled});
  if (trainer.status() == TrainStatus::diverged) return unknown;
  if (c.heads > 1 || c.layer) {
    options.draws = std::max(options.draws, kTestPrompts);
    if (c.gradient == Engine::direct && !c.layer) options.engine = Engine::direct;
  }
  try {
    if (c.layer) {
      RiskRow row =
          risk_row(c.length, model, layer_risk(c.layer->task, trainer.layer(), c.length, options));
      row.task = name(c.layer->task.type);
      row.loss = named_loss(c.layer->task.loss);
      return row;
    }
    return risk_row(c.length, model, risk(c.task, trainer.heads(), c.model, c.length, options));
  } catch (const DomainError&) {
    return unknown;  // scores overflow; the run is finished all the same
  }
}

}  // namespace

std::vector<Readout> TrainRow::heads() const {
  std::vector<Readout> out;
  if (!U || !r) return out;
  const Index D = U->cols();
  for (Index h = 0; h * D < U->rows(); ++h) {
    out.push_back({U->middleRows(h * D, D), r->segment(h * D, D)});
  }
  return out;
}

Layer TrainRow::layer() const {
  return Layer::of_stacked(kinds.value(), U.value(), V.value(), W.value());
}

Chain::Chain(TrainPlan plan) : plan_(checked(std::move(plan))), trainer_(plan_.config) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(plan_.checkpoints); ++k) {
    keys_.push_back("step " + std::to_string(end(k)));
  }
}

std::int64_t Chain::end(std::size_t k) const {
  return plan_.steps * (static_cast<std::int64_t>(k) + 1) / plan_.checkpoints;
}

bool Chain::is_over() const {
  return trainer_.status() == TrainStatus::diverged || trainer_.step() >= plan_.steps;
}

std::vector<TrainRow> Chain::advance(std::size_t k) {
  const std::int64_t first = k == 0 ? 0 : end(k - 1);
  trainer_.run(end(k) - trainer_.step());
  std::vector<TrainRow> rows;
  for (const LossPoint& p : trainer_.curve()) {
    if (p.last > first) rows.push_back(loss_row(p, as_risk(plan_.config)));
  }
  rows.push_back(checkpoint_row(trainer_));
  return rows;
}

double last_risk(const Trainer& trainer) { return as_risk(trainer.config()) * trainer.last_loss(); }

TrainResult assemble_training(const Trainer& trainer, std::span<const TrainRow> rows,
                              const RiskOptions& options) {
  TrainResult result;
  result.steps = trainer.step();
  result.status = trainer.status();
  for (const TrainRow& row : rows) {
    (row.what == TrainRowKind::loss ? result.losses : result.checkpoints).push_back(row);
  }
  result.heads = trainer.heads();
  if (trainer.config().layer) {
    result.layer = trainer.layer();
    result.task = name(trainer.config().layer->task.type);
  }
  result.final_risk = final_risk(trainer, options);
  return result;
}

}  // namespace esscher
