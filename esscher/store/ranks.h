// The processes that compute one run together. The library sees them as numbered ranks that
// exchange texts; the program decides what carries the texts (cli/process is MPI, a test may be two
// threads). Every rank runs the same program. Rank 0 owns the run directory, hands out cells and
// commits them; the others work on a copy of the run in memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace esscher {

struct RankMessage {
  int from = 0;
  std::string text;
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int count() const = 0;

  // Messages between two ranks arrive in the order in which they were sent. Only the thread that
  // called Run::create_or_resume and run_cells calls these.
  virtual void send(int to, std::string_view text) = 0;
  virtual std::optional<RankMessage> receive() = 0;  // never waits
  // Gives rank 0's text to everyone; every rank calls it.
  virtual std::string broadcast(std::string text) = 0;
};

}  // namespace esscher
