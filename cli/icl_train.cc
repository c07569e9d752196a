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
#include "esscher/store/chain_run.h"

namespace esscher::cli {
namespace {

// The chain with its progress on stderr.
std::vector<TrainRow> watched_chain(Chain& chain, Run* run, bool quiet) {
  std::optional<Progress> progress;
  std::vector<TrainRow> rows = run_chain(chain, run, [&](const Chain& now) {
    const Trainer& trainer = now.trainer();
    if (!progress) {
      progress.emplace(trainer.step(), now.plan().steps, quiet, "steps");
    } else {
      progress->update(trainer.step(), fmt::format("risk {:.4g}", last_risk(trainer)));
    }
  });
  progress->finish();
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
  const std::vector<TrainRow> rows = watched_chain(chain, run ? &*run : nullptr, globals.quiet);
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
