// The ranks of a script under mpirun (esscher/ranks.py) as the store sees them. Messages are bytes, and
// every call takes the GIL, so the thread that works may call them.
#pragma once

#include <pybind11/pybind11.h>

#include "esscher/store/ranks.h"

namespace esscher::python {

class PythonRanks : public Ranks {
 public:
  // With the GIL held; so is the destructor.
  explicit PythonRanks(pybind11::object ranks);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int count() const override { return count_; }
  void send(int to, std::string_view text) override;
  std::optional<RankMessage> receive() override;
  std::string broadcast(std::string text) override;

  // On rank 0, in place of a broadcast that the others wait for: they throw RuntimeFailure.
  void fail(const std::string& reason);

 private:
  pybind11::object ranks_;
  int rank_, count_;
};

}  // namespace esscher::python
