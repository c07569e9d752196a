#include "esscher/store/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"

#ifdef ESSCHER_HAVE_MPI
#define OMPI_SKIP_MPICXX 1  // the C interface is enough
#include <mpi.h>
#endif

namespace esscher {
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

#ifdef ESSCHER_HAVE_MPI

constexpr int kTag = 1;
constexpr std::size_t kChunk = std::size_t{1} << 28;

struct World {
  int rank = 0;
  int size = 1;
  bool active = false;
};

World start() {
  World world;
  if (!launched_in_parallel()) return world;
  int provided = 0;
  // Only the thread that coordinates a run calls MPI.
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  world.active = true;
  return world;
}

World& world() {
  static World instance = start();
  return instance;
}

bool started() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

#endif

}  // namespace

bool is_first_rank() {
  return environment("OMPI_COMM_WORLD_RANK",
                     environment("PMIX_RANK", environment("PMI_RANK", 0))) == 0;
}

void prepare_ranks() {
  if (!launched_in_parallel()) return;
  const int neighbours =
      environment("OMPI_COMM_WORLD_LOCAL_SIZE", environment("SLURM_NTASKS_PER_NODE", 1));
  set_thread_count(std::max(1, thread_count() / std::max(1, neighbours)));
  if (is_first_rank()) return;
  if (std::freopen("/dev/null", "w", stdout) == nullptr ||
      std::freopen("/dev/null", "w", stderr) == nullptr) {
    throw RuntimeFailure("prepare_ranks: /dev/null cannot be opened");
  }
}

#ifdef ESSCHER_HAVE_MPI

int rank() { return world().rank; }
int rank_count() { return world().size; }

int finish_ranks(int exit_code) {
  if (!started()) return exit_code;
  if (exit_code != 0) {
    // The others fail in the same way; the first rank must have the time to say why.
    if (rank() != 0) std::this_thread::sleep_for(std::chrono::seconds(10));
    abandon_ranks(exit_code);
  }
  MPI_Finalize();
  return exit_code;
}

void abandon_ranks(int exit_code) {
  std::fflush(nullptr);
  if (started()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

void send_to_rank(int to, std::string_view text) {
  if (text.size() > kChunk) throw RuntimeFailure("a cell with more than 256 MB of rows");
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kTag, MPI_COMM_WORLD);
}

std::optional<RankMessage> receive_from_rank() {
  int found = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &found, &status);
  if (found == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  RankMessage message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.text.data(), size, MPI_CHAR, message.from, kTag, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return message;
}

std::string broadcast(std::string text) {
  if (rank_count() == 1) return text;
  auto size = static_cast<unsigned long long>(text.size());
  MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  text.resize(size);
  for (std::size_t at = 0; at < text.size(); at += kChunk) {
    const auto part = static_cast<int>(std::min(kChunk, text.size() - at));
    MPI_Bcast(text.data() + at, part, MPI_CHAR, 0, MPI_COMM_WORLD);
  }
  return text;
}

#else

int rank() {
  if (environment("OMPI_COMM_WORLD_SIZE", 1) > 1) {
    throw RuntimeFailure(
        "started by mpirun, but this program was built without MPI; install libopenmpi-dev and "
        "build again, or start it without mpirun");
  }
  return 0;
}
int rank_count() { return rank() + 1; }
int finish_ranks(int exit_code) { return exit_code; }
void abandon_ranks(int exit_code) {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
void send_to_rank(int, std::string_view) {}
std::optional<RankMessage> receive_from_rank() { return std::nullopt; }
std::string broadcast(std::string text) { return text; }

#endif

}  // namespace esscher
