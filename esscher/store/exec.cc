#include "esscher/store/exec.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/store/progress.h"
#include "esscher/store/ranks.h"
#include "esscher/store/signals.h"

namespace esscher {
namespace {

using Clock = std::chrono::steady_clock;
using Compute = std::function<std::vector<Row>(std::size_t)>;

constexpr int kInterrupted = 130;
// How long the coordinator may sleep: alone it is woken by a finished cell, but signals and
// messages of other ranks have to be looked for.
constexpr std::chrono::microseconds kAlonePeriod{50'000};
constexpr std::chrono::microseconds kRanksPeriod{300};

struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};
Shard g_shard;

// A computed cell, or the reason why there is none.
struct Outcome {
  FinishedCell cell;
  std::exception_ptr error;
};

Outcome compute_cell(const std::string& key, std::size_t index, const Compute& compute) {
  Outcome outcome{.cell = {.key = key, .rows = {}, .engine = {}}, .error = nullptr};
  const auto start = Clock::now();
  try {
    const auto rows = compute(index);
    outcome.cell.rows = rows_text(key, rows);
    if (!rows.empty() && rows.front().contains("engine") && rows.front()["engine"].is_string()) {
      outcome.cell.engine = rows.front()["engine"].get<std::string>();
    }
  } catch (...) {
    outcome.error = std::current_exception();
  }
  outcome.cell.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

std::string what(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

// Threads that take cells from a queue. The coordinator fills the queue, waits for outcomes and
// never computes, so that commits do not wait for a long cell.
class Workers {
 public:
  Workers(std::span<const std::string> keys, const Compute& compute)
      : runner_([this, keys, &compute] {
          // oneTBB threads: loops inside a cell share them instead of adding their own.
          parallel_for(thread_count(), [&](std::int64_t) { work(keys, compute); });
        }) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Waits for running cells.
  ~Workers() { close(); }

  void add(std::size_t index) {
    {
      const std::lock_guard guard(mutex_);
      queue_.push_back(index);
    }
    work_.notify_one();
  }

  // The next cell that nobody has begun.
  std::optional<std::size_t> take() {
    const std::lock_guard guard(mutex_);
    if (queue_.empty()) return std::nullopt;
    const std::size_t index = queue_.front();
    queue_.pop_front();
    return index;
  }

  // Outcomes since the last call, after waiting at most `period` for one.
  std::vector<Outcome> collect(std::chrono::microseconds period) {
    std::unique_lock lock(mutex_);
    finished_.wait_for(lock, period, [&] { return !outcomes_.empty(); });
    return std::exchange(outcomes_, {});
  }

  // Drops what has not begun, waits for what has.
  void close() {
    {
      const std::lock_guard guard(mutex_);
      queue_.clear();
      closed_ = true;
    }
    work_.notify_all();
    if (runner_.joinable()) runner_.join();
  }

 private:
  void work(std::span<const std::string> keys, const Compute& compute) {
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      const std::size_t index = queue_.front();
      queue_.pop_front();
      lock.unlock();
      Outcome outcome = compute_cell(keys[index], index, compute);
      lock.lock();
      outcomes_.push_back(std::move(outcome));
      finished_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable finished_;
  std::deque<std::size_t> queue_;
  std::vector<Outcome> outcomes_;
  bool closed_ = false;
  std::thread runner_;  // last: starts when everything above exists
};

// Between ranks. To rank 0: {"ready":threads} and {"key","rows","seconds","engine"} or with
// "error" instead of rows. From rank 0: {"index"} and {"stop":reason}.
std::string encode(const Outcome& outcome) {
  Json message{{"key", outcome.cell.key},
               {"rows", outcome.cell.rows},
               {"seconds", outcome.cell.seconds},
               {"engine", outcome.cell.engine}};
  if (outcome.error) message["error"] = what(outcome.error);
  return dump(message);
}

Outcome decode(int from, const Json& message) {
  Outcome outcome{{message["key"], message["rows"], message["seconds"], message["engine"]},
                  nullptr};
  if (message.contains("error")) {
    outcome.error = std::make_exception_ptr(
        RuntimeFailure(fmt::format("{} (on rank {})", message["error"].get<std::string>(), from)));
  }
  return outcome;
}

void serve_rank_zero(Run& run, std::span<const std::string> keys, const Compute& compute) {
  Workers workers(keys, compute);
  send_to_rank(0, dump(Json{{"ready", thread_count()}}));
  std::string reason;
  for (bool stop = false; !stop;) {
    while (const auto message = receive_from_rank()) {
      const Json order = Json::parse(message->text);
      if (order.contains("index")) workers.add(order["index"].get<std::size_t>());
      if (order.contains("stop")) {
        stop = true;
        reason = order["stop"].get<std::string>();
      }
    }
    for (const auto& outcome : workers.collect(kRanksPeriod)) send_to_rank(0, encode(outcome));
  }
  if (!reason.empty()) throw RuntimeFailure(reason);
  run.replace(broadcast({}));
}

// Rank 0, or the only process: hands out cells, commits outcomes.
class Coordinator {
 public:
  Coordinator(Run& run, std::span<const std::string> keys, const Compute& compute, bool quiet)
      : run_(run),
        progress_(run.status().done, run.status().total, quiet),
        done_(run.status().done),
        workers_(keys, compute) {}

  void execute(const std::vector<std::size_t>& missing) {
    for (const auto index : missing) workers_.add(index);
    running_ = static_cast<std::int64_t>(missing.size());
    try {
      loop();
    } catch (const FileError& error) {
      throw FileError(fmt::format(
          "{}\n{} finished cells are kept in {}; start the same command again to resume",
          error.what(), done_, run_.directory().string()));
    }
    progress_.finish();
    dismiss_ranks();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void loop() {
    const StopSignals signals;
    const bool alone = rank_count() == 1;
    while (running_ > 0) {
      std::vector<Outcome> outcomes;
      if (!alone) listen(outcomes);
      for (auto& outcome : workers_.collect(alone ? kAlonePeriod : kRanksPeriod)) {
        outcomes.push_back(std::move(outcome));
      }
      settle(outcomes);
      if (StopSignals::caught() != 0) interrupted();
    }
  }

  void listen(std::vector<Outcome>& outcomes) {
    while (const auto message = receive_from_rank()) {
      const Json content = Json::parse(message->text);
      const std::int64_t idle = content.value("ready", 1);
      if (!content.contains("ready")) outcomes.push_back(decode(message->from, content));
      for (std::int64_t i = 0; i < idle; ++i) {
        const auto index = workers_.take();
        if (!index) break;
        send_to_rank(message->from, dump(Json{{"index", *index}}));
      }
    }
  }

  void settle(std::vector<Outcome>& outcomes) {
    std::vector<FinishedCell> cells;
    for (auto& outcome : outcomes) {
      --running_;
      if (!outcome.error) {
        cells.push_back(std::move(outcome.cell));
      } else if (!error_) {
        fail(outcome);
      }
    }
    if (cells.empty()) return;
    run_.commit(cells);
    done_ += static_cast<std::int64_t>(cells.size());
    progress_.update(done_);
  }

  // No new cells; running ones end and are kept.
  void fail(const Outcome& outcome) {
    error_ = outcome.error;
    while (workers_.take()) --running_;
    progress_.say("cell " + outcome.cell.key + " failed");
  }

  // Running cells are given up: they may take hours, and resuming computes them again.
  [[noreturn]] void interrupted() {
    progress_.say(fmt::format(
        "interrupted: {} of {} cells are finished and kept in {}; start the same command again to "
        "resume",
        done_, total_, run_.directory().string()));
    // Tidy only: what is committed survives anyway, and mpirun may kill this rank at any moment.
    run_.flush();
    abandon_ranks(kInterrupted);
  }

  void dismiss_ranks() {
    if (rank_count() == 1) return;
    const std::string reason = error_ ? what(error_) : "";
    for (int to = 1; to < rank_count(); ++to) send_to_rank(to, dump(Json{{"stop", reason}}));
    if (!error_) broadcast(run_.image());
  }

  Run& run_;
  Progress progress_;
  std::int64_t done_;
  std::int64_t total_ = run_.status().total;
  std::int64_t running_ = 0;  // handed out or waiting
  std::exception_ptr error_;
  Workers workers_;
};

void check_distinct(std::span<const std::string> keys) {
  std::unordered_set<std::string_view> seen;
  for (const auto& key : keys) {
    if (!seen.insert(key).second) {
      throw_argument("run_cells", "key", "\"" + key + "\" twice", "keys that are all different");
    }
  }
}

[[noreturn]] void end_shard(Run& run, bool quiet) {
  const auto [done, total] = run.status();
  run.close();
  if (!quiet) {
    fmt::print(stderr,
               "shard {}/{} is done: {} of {} cells in {}; put the shards together with\n"
               "  esscher runs merge SHARD... --out DIR\n",
               g_shard.index + 1, g_shard.count, done, total, run.directory().string());
  }
  std::exit(finish_ranks(0));
}

}  // namespace

void set_shard(const std::string& shard) {
  if (shard.empty()) {
    g_shard = {};
    return;
  }
  Shard parsed;
  const char* end = shard.data() + shard.size();
  const auto [slash, first] = std::from_chars(shard.data(), end, parsed.index);
  const bool has_slash = first == std::errc() && slash != end && *slash == '/';
  const auto [rest, second] = has_slash ? std::from_chars(slash + 1, end, parsed.count)
                                        : std::from_chars(end, end, parsed.count);
  if (second != std::errc() || rest != end || parsed.index < 1 || parsed.index > parsed.count) {
    throw_argument("shard", "index/count", "\"" + shard + "\"", "e.g. 1/4 up to 4/4");
  }
  --parsed.index;
  g_shard = parsed;
}

void run_cells(Run& run, std::span<const std::string> keys, const Compute& compute,
               const ExecOptions& options) {
  check_distinct(keys);
  run.declare(keys);
  if (rank() == 0) {
    const auto finished = run.finished_keys();
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i % g_shard.count == g_shard.index && !finished.contains(keys[i])) missing.push_back(i);
    }
    Coordinator(run, keys, compute, options.quiet).execute(missing);
  } else {
    serve_rank_zero(run, keys, compute);
  }
  const auto [done, total] = run.status();
  if (g_shard.count > 1 && done < total) end_shard(run, options.quiet);
}

}  // namespace esscher
