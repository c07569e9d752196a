// Threads that compute cells, and what they send between ranks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "esscher/store/exec.h"

namespace esscher {

// A computed cell, or the reason why there is none.
struct Outcome {
  FinishedCell cell;
  std::exception_ptr error;
};

// Threads that take cells from a queue. The coordinator fills the queue, waits for outcomes and
// never computes, so that commits do not wait for a long cell. Cells run under `stop`.
class Workers {
 public:
  Workers(const TextCells& cells, const StopFlag* stop);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for running cells.
  ~Workers() { close(); }

  void add(std::size_t index);
  // The next cell that nobody has begun.
  std::optional<std::size_t> take();
  // Outcomes since the last call, after waiting at most `period` for one.
  std::vector<Outcome> collect(std::chrono::microseconds period);
  // Drops what has not begun, waits for what has.
  void close();

 private:
  void work();

  const TextCells& cells_;
  const StopFlag* stop_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable finished_;
  std::deque<std::size_t> queue_;
  std::vector<Outcome> outcomes_;
  bool closed_ = false;
  std::thread runner_;  // last: starts when everything above exists
};

std::string message_of(const std::exception_ptr& error);

// An outcome as a message to rank 0: {"key","rows","seconds","engine"}, with "error" if it failed.
std::string encode(const Outcome& outcome);
Outcome decode(int from, const Json& message);

}  // namespace esscher
