#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/icl_setup.h"
#include "cli/process/process.h"
#include "cli/process/progress.h"
#include "cli/process/signals.h"
#include "esscher/base/error.h"
#include "esscher/base/stop.h"
#include "esscher/config/presets.h"
#include "esscher/config/train.h"
#include "esscher/json/training.h"
#include "esscher/report/page_training.h"
#include "esscher/report/report.h"
#include "esscher/report/setting.h"
#include "esscher/store/chain_run.h"

namespace esscher::cli {
namespace {

[[noreturn]] void end_interrupted(const Chain& chain, Run* run) {
  if (run == nullptr) {
    throw RuntimeFailure("interrupted; nothing was kept, --out DIR makes a run that resumes");
  }
  // A chain goes on from any step, so nothing that was trained is lost.
  run->set_document("state", state_json(chain.state()));
  run->flush();
  std::fprintf(stderr,
               "esscher: interrupted: %lld of %lld steps are finished and kept in %s; start the "
               "same command again to resume\n",
               static_cast<long long>(chain.trainer().step()),
               static_cast<long long>(chain.plan().steps), run->directory().c_str());
  abandon_process(kInterruptedExit);
}

// The chain with its progress on stderr. SIGINT and SIGTERM end the program between two steps.
std::vector<TrainRow> watched_chain(Chain& chain, Run* run, bool quiet) {
  std::optional<Progress> progress;
  const StopSignals signals;
  const StopScope scope(&StopSignals::flag());
  try {
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
  } catch (const RuntimeFailure&) {
    if (!StopSignals::flag()) throw;
  }
  end_interrupted(chain, run);
}

struct Training {
  TrainPlan plan;
  std::string config_toml;
  std::uint64_t seed = 0;
};

Training training_of(const Config& config, std::uint64_t seed) {
  TrainPlan plan = read_train(config.root(), seed);
  config.check_all_used();
  return {.plan = std::move(plan), .config_toml = config.resolved_toml(), .seed = seed};
}

// The training in --out with more steps. Checkpoints keep their distance, so that its cells are those
// of a training of that length in one go.
Training extended(const Globals& globals, const IclOptions& options, Training& stored) {
  if (globals.out.empty()) throw ArgumentError("--extend needs --out, the run to go on with");
  if (!globals.config.empty() || !globals.set.empty() || !options.preset.empty() ||
      !options.lengths.empty() || globals.has_seed) {
    throw ArgumentError(
        "--extend takes the configuration of the run in --out; give no other (--config, --set, "
        "--preset, --length, --seed)");
  }
  const RunInfo info = Run::open(globals.out).info();
  if (info.verb != "icl train") {
    throw ArgumentError("--extend: " + globals.out + " is a run of " + info.verb +
                        ", expected one of icl train");
  }
  const auto config = [&] { return Config::parse(info.config_toml, globals.out + "/config.toml"); };
  stored = training_of(config(), info.seed);
  const std::int64_t old = stored.plan.steps, checkpoints = stored.plan.checkpoints;
  const std::int64_t steps = options.extend;
  if (steps < old || steps > (std::int64_t{1} << 40) || steps * checkpoints % old != 0) {
    throw ArgumentError(fmt::format(
        "--extend is {}, expected at least {} steps, in whole checkpoints of {:g} steps as before",
        steps, old, static_cast<double>(old) / static_cast<double>(checkpoints)));
  }
  Config longer = config();
  const std::string door = fmt::format("--extend {}", steps);
  longer.set(fmt::format("train.steps={}", steps), door);
  longer.set(fmt::format("train.checkpoints={}", steps * checkpoints / old), door);
  return training_of(longer, info.seed);
}

// The run of --out: made, resumed, or given its longer configuration.
Run run_of(const Globals& globals, const Training& stored, const Training& training) {
  const auto info = [](const Training& t) {
    return RunInfo{.verb = "icl train", .config_toml = t.config_toml, .seed = t.seed};
  };
  try {
    Run run = open_run(globals.out, info(stored));
    if (stored.config_toml != training.config_toml) run.extend(training.config_toml);
    return run;
  } catch (const ConfigError& error) {
    throw ConfigError(std::string(error.what()) +
                      "\nmore steps for the same training: esscher icl train --out " + globals.out +
                      " --extend STEPS");
  }
}

// A few steps after the first, which makes tables.
DryRun estimate(const TrainPlan& plan) {
  Trainer trainer(plan.config);
  trainer.run(1);
  constexpr int kProbe = 3;
  const double seconds = cpu_seconds([&] { trainer.run(kProbe); });
  const GradientChoice choice = choose_gradient(plan.config);
  return {.verb = "icl train",
          .what = fmt::format("a training of {} steps at L = {}, {} prompts per step", plan.steps,
                              plan.config.length.text(), plan.config.batch),
          .engine = fmt::format("{}: {}", name(choice.engine), choice.reason),
          .unit = "checkpoints",
          .count = plan.checkpoints,
          .cpu_seconds = seconds / kProbe * static_cast<double>(plan.steps),
          .basis = fmt::format("measured on {} steps", kProbe)};
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
  Training stored, training;
  if (options.extend > 0) {
    training = extended(globals, options, stored);
  } else {
    Config config = icl_config(globals, options);
    set_length(config, options);
    stored = training = training_of(config, globals.seed);
  }
  const TrainPlan& plan = training.plan;
  if (globals.dry_run) {
    print_dry_run(globals, estimate(plan));
    return;
  }
  Chain chain(plan);
  std::optional<Run> run;
  if (!globals.out.empty()) run = run_of(globals, stored, training);
  const std::vector<TrainRow> rows = watched_chain(chain, run ? &*run : nullptr, globals.quiet);
  const TrainResult result = assemble_training(chain.trainer(), rows, plan.config.risk);
  const Json document = train_document(result);
  if (run) {
    run->set_document("model", document.at("parameters"));
    Page page = with_setting(training_setting(plan.config),
                             training_page(result, risks_beside(result, plan.config),
                                           rerun(globals, "icl train", options)));
    for (const Preset& preset : presets()) {
      if (preset.name == options.preset) page.setting += " Expected: " + preset.expected + ".";
    }
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
