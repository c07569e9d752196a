// The process of the program: how it starts, which MPI ranks it is one of, and how it ends. Alone
// unless started by mpirun or srun, and then MPI begins at the first use of ranks(), so that an
// ordinary start does not pay for it.
#pragma once

#include "esscher/store/exec.h"
#include "esscher/store/ranks.h"

namespace esscher::cli {

inline constexpr int kInterruptedExit = 130;

// First thing in main. Silences stdout and stderr of all ranks but the first, and shares the cores
// of a machine between its ranks (an explicit --threads comes later and wins).
void prepare_process();

// Last thing in main: ends MPI if it was started. A failure of one rank ends all of them.
int finish_process(int exit_code);

// Ends this process and all ranks now, without waiting for running work.
[[noreturn]] void abandon_process(int exit_code);

// Whether this process is the one that speaks and writes files; known without starting MPI.
bool is_first_rank();

// The ranks this process is one of, for Run::create_or_resume; null when alone.
Ranks* ranks();

// Options of run_cells for a program that a person watches. Progress is drawn on stderr, and SIGINT
// and SIGTERM are caught while the options live: a signal ends the program with exit code 130 once
// the finished cells are kept, and says how to resume.
ExecOptions watched_options(const Shard& shard, bool quiet);

}  // namespace esscher::cli
