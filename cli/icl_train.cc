#include <fmt/format.h>

#include <optional>

#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/process/progress.h"
#include "esscher/base/error.h"
#include "esscher/config/train.h"
#include "esscher/report/icl_report.h"
#include "esscher/report/report.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/heads_risk.h"
#include "esscher/store/run.h"
#include "esscher/training/exact_loss.h"

namespace esscher::cli {
namespace {

constexpr std::int64_t kTestPrompts = 25600;  // behind the final risk of several heads
constexpr std::int64_t kBayesReplicates = 1000;

// Steps [first, last) of cell k; the cells partition the run.
std::int64_t cell_end(const TrainRun& plan, std::int64_t k) {
  return plan.steps * (k + 1) / plan.checkpoints;
}

std::string cell_key(const TrainRun& plan, std::int64_t k) {
  return fmt::format("step {}", cell_end(plan, k));
}

// Training losses as risks: halves of squared errors, whatever the optimizer saw.
double as_risk(const TrainConfig& config) { return config.half_loss ? 1.0 : 0.5; }

std::vector<Json> cell_rows(const Trainer& trainer, std::int64_t first) {
  std::vector<Json> rows;
  const double scale = as_risk(trainer.config());
  for (const LossPoint& p : trainer.curve()) {
    if (p.last <= first) continue;  // in an earlier cell
    const double loss = scale * p.loss, error = scale * p.std_error;
    rows.push_back({{"what", "loss"},
                    {"step", p.last},
                    {"loss", number(loss)},
                    {"std_error", number(error)},
                    {"low", number(std::max(loss - 2 * error, 0.0))},
                    {"high", number(loss + 2 * error)}});
  }
  Json row{{"what", "checkpoint"}, {"step", trainer.step()}, {"status", name(trainer.status())}};
  const std::vector<Readout> heads = trainer.heads();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const std::string tag = heads.size() == 1 ? "" : fmt::format("head{}_", h);
    for (Index i = 0; i < heads[h].dim(); ++i) {
      for (Index j = 0; j < heads[h].dim(); ++j) {
        row[fmt::format("{}U_{}_{}", tag, i, j)] = number(heads[h].U(i, j));
      }
      row[fmt::format("{}r_{}", tag, i)] = number(heads[h].r(i));
    }
  }
  rows.push_back(std::move(row));
  return rows;
}

Estimate final_risk(const Trainer& trainer, RiskOptions options) {
  const TrainConfig& c = trainer.config();
  if (c.heads > 1) {
    options.draws = std::max(options.draws, kTestPrompts);
    if (c.gradient == GradientEngine::direct) options.engine = Engine::direct;
  }
  return heads_risk(c.task, trainer.heads(), c.model, c.length, options);
}

Json risk_row(Length length, std::string_view model, const Estimate& risk) {
  return {{"L", number(length)},
          {"model", model},
          {"risk", number(risk.value)},
          {"std_error", number(risk.std_error)},
          {"engine", name(risk.engine)}};
}

Json parameters(const std::vector<Readout>& heads) {
  Json list = Json::array();
  for (const Readout& head : heads) {
    Matrix V = Matrix::Zero(head.dim(), head.dim());
    V.row(head.dim() - 1) = head.r;
    list.push_back({{"U", json_matrix(head.U)}, {"V", json_matrix(V)}});
  }
  return heads.size() == 1 ? list[0] : Json{{"heads", list}};
}

// Runs what is missing. The state is kept before its cell is committed, so a run that stopped
// between the two goes on from the state and commits the cell then.
void train_cells(const TrainRun& plan, Trainer& trainer, std::optional<Run>& run,
                 const Globals& globals, std::vector<Json>& rows) {
  std::vector<std::string> keys;
  for (std::int64_t k = 0; k < plan.checkpoints; ++k) keys.push_back(cell_key(plan, k));
  if (run) {
    run->declare(keys, {});
    if (const std::optional<Json> state = run->document("state")) trainer.restore(*state);
  }
  Progress progress(trainer.step(), plan.steps, globals.quiet, "steps");
  for (std::int64_t k = 0; k < plan.checkpoints; ++k) {
    if (run && run->done(keys[k])) continue;
    if (trainer.status() == TrainStatus::diverged) break;
    const std::int64_t first = k == 0 ? 0 : cell_end(plan, k - 1);
    trainer.run(cell_end(plan, k) - trainer.step());
    std::vector<Json> cell = cell_rows(trainer, first);
    if (run) {
      run->set_document("state", trainer.state());
      run->commit(keys[k], cell);
    } else {
      for (Json& row : cell) rows.push_back(std::move(row));
    }
    progress.update(trainer.step(),
                    fmt::format("risk {:.4g}", as_risk(plan.config) * trainer.last_loss()));
  }
  progress.finish();
  if (run) rows = run->rows();
}

}  // namespace

void icl_train(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_length(config, options);
  const Table root = config.root();
  const TrainRun plan = read_train(root, globals.seed);
  const FlowConfig flow = read_flow(root, globals.seed);
  (void)read_lengths(root, {});
  (void)read_eps(root);
  skip_preset(root);
  config.check_all_used();

  Trainer trainer(plan.config, exact_loss(plan.config, flow.risk));
  std::optional<Run> run;
  if (!globals.out.empty()) {
    run = open_run(globals.out, {"icl train", config.resolved_toml(), globals.seed});
  }
  std::vector<Json> rows;
  train_cells(plan, trainer, run, globals, rows);

  const bool diverged = trainer.status() == TrainStatus::diverged;
  const Estimate risk =
      diverged ? Estimate{NAN, NAN, 0, Engine::sampled} : final_risk(trainer, flow.risk);
  const Json final = risk_row(plan.config.length, name(plan.config.model), risk);
  Json document{{"steps", trainer.step()},
                {"status", diverged ? "diverged" : "finished"},
                {"final_risk", final}};
  document["loss"] = Json::array();
  for (const Json& row : rows) {
    if (row["what"] != "loss") continue;
    document["loss"].push_back(
        {{"step", row["step"]}, {"loss", row["loss"]}, {"std_error", row["std_error"]}});
  }
  document["loss_is"] = "half the mean squared error on the training prompts";
  document["parameters"] = parameters(trainer.heads());
  if (run) {
    std::vector<Json> shown = rows;
    shown.push_back(final);
    for (const Length L : {plan.config.length, Length::infinity()}) {
      const Estimate bayes =
          bayes_risk(plan.config.task, L, kBayesReplicates, flow.risk.stream.split(2));
      shown.push_back(risk_row(L, "bayes", bayes));
      if (L == plan.config.length && L.is_infinite()) break;
    }
    for (std::size_t i = rows.size(); i < shown.size(); ++i) shown[i]["what"] = "risk";
    run->set_document("model", document["parameters"]);
    run->set_document("report", train_report(shown, rerun(globals, "icl train", options)));
    if (run->is_writer()) write_report(*run, std::filesystem::path(globals.out) / "report.html");
  }
  const std::string end =
      diverged
          ? fmt::format("the parameters of the last finite step are kept; learning_rate is {:g}",
                        plan.config.optimizer.learning_rate)
          : fmt::format("risk {:.6g} +- {:.2g} at L = {}", risk.value, risk.std_error,
                        plan.config.length.text());
  print_result(globals, "icl-train", document,
               fmt::format("{} after {} steps; {}\n", document["status"].get<std::string>(),
                           trainer.step(), end));
}

}  // namespace esscher::cli
