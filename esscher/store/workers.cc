#include "esscher/store/detail/workers.h"

#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"

namespace esscher {
namespace {

using Clock = std::chrono::steady_clock;

Outcome compute_cell(const TextCells& cells, std::size_t index, const StopFlag* stop) {
  Outcome outcome{.cell = {.key = cells.keys[index], .rows = {}, .engine = {}}, .error = nullptr};
  const auto start = Clock::now();
  try {
    const StopScope scope(stop);
    TextCells::Rows rows = cells.compute(index);
    outcome.cell.rows = std::move(rows.text);
    outcome.cell.engine = std::move(rows.engine);
  } catch (...) {
    outcome.error = std::current_exception();
  }
  outcome.cell.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

}  // namespace

Workers::Workers(const TextCells& cells, const StopFlag* stop)
    : cells_(cells), stop_(stop), runner_([this] {
        // The threads of oneTBB: loops inside a cell share them instead of adding their own.
        parallel_for(thread_count(), [&](std::int64_t) { work(); });
      }) {}

void Workers::add(std::size_t index) {
  {
    const std::lock_guard guard(mutex_);
    queue_.push_back(index);
  }
  work_.notify_one();
}

std::optional<std::size_t> Workers::take() {
  const std::lock_guard guard(mutex_);
  if (queue_.empty()) return std::nullopt;
  const std::size_t index = queue_.front();
  queue_.pop_front();
  return index;
}

std::vector<Outcome> Workers::collect(std::chrono::microseconds period) {
  std::unique_lock lock(mutex_);
  finished_.wait_for(lock, period, [&] { return !outcomes_.empty(); });
  return std::exchange(outcomes_, {});
}

void Workers::close() {
  {
    const std::lock_guard guard(mutex_);
    queue_.clear();
    closed_ = true;
  }
  work_.notify_all();
  if (runner_.joinable()) runner_.join();
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (closed_) return;
    const std::size_t index = queue_.front();
    queue_.pop_front();
    lock.unlock();
    Outcome outcome = compute_cell(cells_, index, stop_);
    lock.lock();
    outcomes_.push_back(std::move(outcome));
    finished_.notify_one();
  }
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

std::string encode(const Outcome& outcome) {
  Json message{{"key", outcome.cell.key},
               {"rows", outcome.cell.rows},
               {"seconds", outcome.cell.seconds},
               {"engine", outcome.cell.engine}};
  if (outcome.error) message["error"] = message_of(outcome.error);
  return dump(message);
}

Outcome decode(int from, const Json& message) {
  Outcome outcome{.cell = {.key = message.at("key"),
                           .rows = message.at("rows"),
                           .seconds = message.at("seconds"),
                           .engine = message.at("engine")},
                  .error = nullptr};
  if (message.contains("error")) {
    outcome.error = std::make_exception_ptr(RuntimeFailure(
        message.at("error").get<std::string>() + " (on rank " + std::to_string(from) + ")"));
  }
  return outcome;
}

}  // namespace esscher
