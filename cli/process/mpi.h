// MPI, if the program was built with it. The only file that knows it is mpi.cc.
#pragma once

#include "esscher/store/ranks.h"

namespace esscher::cli {

// Starts MPI at the first call. Null if the program was built without MPI and there is one process;
// throws RuntimeFailure if there are several.
Ranks* mpi_ranks();

bool mpi_is_running();
void end_mpi();
void abort_mpi(int exit_code);

}  // namespace esscher::cli
