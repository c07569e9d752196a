#include "cli/process/process.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/process/mpi.h"
#include "cli/process/progress.h"
#include "cli/process/signals.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"

namespace esscher::cli {
namespace {

int environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}

// Open MPI sets the first; PMIx and PMI are set by srun.
bool launched_in_parallel() {
  return environment("OMPI_COMM_WORLD_SIZE", 1) > 1 || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr;
}

}  // namespace

bool is_first_rank() {
  return environment("OMPI_COMM_WORLD_RANK",
                     environment("PMIX_RANK", environment("PMI_RANK", 0))) == 0;
}

void prepare_process() {
  if (!launched_in_parallel()) return;
  const int neighbours =
      environment("OMPI_COMM_WORLD_LOCAL_SIZE", environment("SLURM_NTASKS_PER_NODE", 1));
  set_thread_count(std::max(1, thread_count() / std::max(1, neighbours)));
  if (is_first_rank()) return;
  if (std::freopen("/dev/null", "w", stdout) == nullptr ||
      std::freopen("/dev/null", "w", stderr) == nullptr) {
    throw RuntimeFailure("the output of this rank cannot be silenced: /dev/null cannot be opened");
  }
}

Ranks* ranks() {
  if (!launched_in_parallel()) return nullptr;
  Ranks* all = mpi_ranks();
  return all == nullptr || all->count() == 1 ? nullptr : all;
}

int finish_process(int exit_code) {
  if (!mpi_is_running()) return exit_code;
  if (exit_code != 0) {
    // The others fail in the same way; the first rank must have the time to say why.
    if (!is_first_rank()) std::this_thread::sleep_for(std::chrono::seconds(10));
    abandon_process(exit_code);
  }
  end_mpi();
  return exit_code;
}

void abandon_process(int exit_code) {
  std::fflush(nullptr);
  if (mpi_is_running()) abort_mpi(exit_code);
  std::_Exit(exit_code);
}

ExecOptions watched_options(const Shard& shard, bool quiet) {
  // Only the first rank says how to resume. A signal ends another rank at once, and mpirun all of them.
  if (!is_first_rank()) return {.shard = shard, .progress = {}, .stop = nullptr, .abandon = {}};
  // Both live as long as the options do.
  const auto bar = std::make_shared<CellBar>(quiet);
  const auto signals = std::make_shared<StopSignals>();
  return {.shard = shard,
          .progress = [bar](const CellProgress& progress) { bar->show(progress); },
          .stop = &StopSignals::flag(),
          .abandon =
              [bar, signals](const std::string& message) {
                bar->say(message);
                abandon_process(kInterruptedExit);
              }};
}

}  // namespace esscher::cli
