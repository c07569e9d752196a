#include "cli/process/mpi.h"

#include <algorithm>
#include <cstdlib>

#include "esscher/base/error.h"

#ifdef ESSCHER_HAVE_MPI
#define OMPI_SKIP_MPICXX 1  // the C interface is enough
#include <mpi.h>
#endif

namespace esscher::cli {

#ifdef ESSCHER_HAVE_MPI
namespace {

constexpr int kTag = 1;
constexpr std::size_t kChunk = std::size_t{1} << 28;

class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    // Only the thread that coordinates a run calls MPI.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int count() const override { return count_; }

  void send(int to, std::string_view text) override {
    if (text.size() > kChunk) throw RuntimeFailure("a cell with more than 256 MB of rows");
    MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kTag, MPI_COMM_WORLD);
  }

  std::optional<RankMessage> receive() override {
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

  std::string broadcast(std::string text) override {
    auto size = static_cast<unsigned long long>(text.size());
    MPI_Bcast(&size, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    text.resize(size);
    for (std::size_t at = 0; at < text.size(); at += kChunk) {
      const auto part = static_cast<int>(std::min(kChunk, text.size() - at));
      MPI_Bcast(text.data() + at, part, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    return text;
  }

 private:
  int rank_ = 0;
  int count_ = 1;
};

}  // namespace

Ranks* mpi_ranks() {
  static MpiRanks instance;
  return &instance;
}

bool mpi_is_running() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

void end_mpi() { MPI_Finalize(); }
void abort_mpi(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

#else

Ranks* mpi_ranks() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size != nullptr && std::atoi(size) > 1) {
    throw RuntimeFailure(
        "started by mpirun, but this program was built without MPI; install libopenmpi-dev and "
        "build again, or start it without mpirun");
  }
  return nullptr;
}

bool mpi_is_running() { return false; }
void end_mpi() {}
void abort_mpi(int) {}

#endif

}  // namespace esscher::cli
