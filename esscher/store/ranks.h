// Processes of one run. Alone unless started by mpirun or srun, and then MPI is initialised at the
// first use, so that an ordinary start does not pay for it. All ranks run the same program; rank 0
// owns the run directory and speaks to the user.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace esscher {

// First thing in main: silences stdout and stderr of all ranks but the first, and shares the cores
// of a machine between its ranks (an explicit --threads comes later and wins).
void prepare_ranks();

// Last thing in main: ends MPI if it was started. A failure of one rank ends all of them.
int finish_ranks(int exit_code);

// Ends all ranks now, without waiting for running work.
[[noreturn]] void abandon_ranks(int exit_code);

// Whether this process is the one that speaks and writes files; known without starting MPI.
bool is_first_rank();

int rank();        // 0 when alone
int rank_count();  // 1 when alone

struct RankMessage {
  int from = 0;
  std::string text;
};
void send_to_rank(int to, std::string_view text);
std::optional<RankMessage> receive_from_rank();  // never waits
// Gives rank 0's text to everyone.
std::string broadcast(std::string text);

}  // namespace esscher
