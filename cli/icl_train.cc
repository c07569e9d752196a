#include <fmt/format.h>

#include <optional>

#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/process/progress.h"
#include "esscher/base/error.h"
#include "esscher/config/train.h"
#include "esscher/json/training.h"
#include "esscher/report/page_training.h"
#include "esscher/report/report.h"
#include "esscher/store/run.h"

namespace esscher::cli {
namespace {

constexpr std::int64_t kBayesReplicates = 1000;

// Runs what is missing of the chain. The state is kept before its checkpoint is committed, so a run
// that stopped between the two goes on from the state and commits the checkpoint then.
std::vector<TrainRow> run_chain(Chain& chain, Run* run, bool quiet) {
  if (run != nullptr) {
    run->declare(chain.keys(), columns_of<TrainRow>());
    if (const std::optional<Json> state = run->document("state")) chain.restore(state_of(*state));
  }
  std::vector<TrainRow> rows;
  Progress progress(chain.trainer().step(), chain.plan().steps, quiet, "steps");
  std::vector<std::string> finished;
  for (std::size_t k = 0; k < chain.keys().size(); ++k) {
    const std::string& key = chain.keys()[k];
    if (run == nullptr || !run->done(key)) {
      if (chain.trainer().status() == TrainStatus::diverged) break;
      const std::vector<TrainRow> part = chain.advance(k);
      if (run != nullptr) {
        run->set_document("state", state_json(chain.state()));
        run->commit(key, part);
      } else {
        rows.insert(rows.end(), part.begin(), part.end());
      }
      progress.update(chain.trainer().step(),
                      fmt::format("risk {:.4g}", last_risk(chain.trainer())));
    }
    finished.push_back(key);
  }
  progress.finish();
  return run == nullptr ? rows : run->rows<TrainRow>(finished);
}

// The final risk beside Bayes at this length and at L = infinity.
std::vector<RiskRow> risks_beside(const TrainResult& result, const TrainConfig& config) {
  std::vector<RiskRow> rows{result.final_risk};
  const LinearRegressionTask& task = config.task.regression();
  rows.push_back(bayes_row(task, config.length, kBayesReplicates, config.risk));
  if (!config.length.is_infinite()) {
    rows.push_back(bayes_row(task, Length::infinity(), kBayesReplicates, config.risk));
  }
  return rows;
}

std::string end_text(const TrainResult& result, const TrainConfig& config) {
  if (result.status == TrainStatus::diverged) {
    return fmt::format("the parameters of the last finite step are kept; learning_rate is {:g}",
                       config.optimizer.learning_rate);
  }
  return fmt::format("risk {:.6g} +- {:.2g} at L = {}", result.final_risk.risk,
                     result.final_risk.std_error, config.length.text());
}

}  // namespace

void icl_train(const Globals& globals, const IclOptions& options) {
  Config config = icl_config(globals, options);
  set_length(config, options);
  const TrainPlan plan = read_train(config.root(), globals.seed);
  config.check_all_used();
  Chain chain(plan);
  std::optional<Run> run;
  if (!globals.out.empty()) {
    run = open_run(
        globals.out,
        {.verb = "icl train", .config_toml = config.resolved_toml(), .seed = globals.seed});
  }
  const std::vector<TrainRow> rows = run_chain(chain, run ? &*run : nullptr, globals.quiet);
  const TrainResult result = assemble_training(chain.trainer(), rows, plan.config.risk);
  const Json document = train_document(result);
  if (run) {
    run->set_document("model", document.at("parameters"));
    const Page page = training_page(result, risks_beside(result, plan.config),
                                    rerun(globals, "icl train", options));
    set_page(*run, page);
    if (run->is_writer()) write_report(*run, page, run->directory() / "report.html");
  }
  print_result(globals, "icl-train", document,
               fmt::format("{} after {} steps; {}\n", document.at("status").get<std::string>(),
                           result.steps, end_text(result, plan.config)));
  // The result is printed; scripts notice the exit code.
  if (result.status == TrainStatus::diverged) {
    throw RuntimeFailure("the training diverged; try a smaller train.learning_rate");
  }
}

}  // namespace esscher::cli
