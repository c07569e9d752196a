#include "esscher/store/exec.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "esscher/base/parallel.h"
#include "esscher/store/detail/workers.h"
#include "esscher/store/ranks.h"

namespace esscher {
namespace {

// How long the coordinator may sleep: alone it is woken by a finished cell, but the stop flag and
// messages of other ranks have to be looked for.
constexpr std::chrono::microseconds kAlonePeriod{50'000};
constexpr std::chrono::microseconds kRanksPeriod{300};

bool is_set(const StopFlag* flag) { return flag != nullptr && flag->load(); }

// Ranks other than the first. They tell rank 0 {"ready":threads} and their outcomes, and get
// {"index"} and {"stop":reason}; the reason is "" if all went well.
void serve_rank_zero(Run& run, Ranks& ranks, const TextCells& cells) {
  StopFlag stop = false;
  std::string reason;
  {
    Workers workers(cells, &stop);
    ranks.send(0, dump(Json{{"ready", thread_count()}}));
    for (bool dismissed = false; !dismissed;) {
      while (const auto message = ranks.receive()) {
        const Json order = Json::parse(message->text);
        if (order.contains("index")) workers.add(order["index"].get<std::size_t>());
        if (!order.contains("stop")) continue;
        dismissed = true;
        reason = order["stop"].get<std::string>();
        // Rank 0 waits for nobody any more.
        stop = true;
      }
      for (const auto& outcome : workers.collect(kRanksPeriod)) ranks.send(0, encode(outcome));
    }
  }
  if (!reason.empty()) throw RuntimeFailure(reason);
  run.replace(ranks.broadcast({}));
}

// Rank 0, or the only process: hands out cells, commits outcomes.
class Coordinator {
 public:
  Coordinator(Run& run, const TextCells& cells, const ExecOptions& options)
      : run_(run),
        ranks_(run.ranks()),
        options_(options),
        stop_(options.stop != nullptr ? options.stop : current_stop_flag()),
        workers_(cells, stop_) {
    const auto [done, total] = run.status();
    progress_ = {.resumed = done, .done = done, .total = total, .failed = {}};
  }

  void execute(const std::vector<std::size_t>& missing) {
    for (const auto index : missing) workers_.add(index);
    running_ = static_cast<std::int64_t>(missing.size());
    tell();
    try {
      while (running_ > 0 && !is_set(stop_)) settle(wait());
    } catch (const FileError& error) {
      throw FileError(std::string(error.what()) + "\n" + std::to_string(progress_.done) +
                      " finished cells are kept in " + run_.directory().string() +
                      "; start the same command again to resume");
    }
    if (running_ > 0 || given_up_) interrupt();
    dismiss_ranks(error_ ? message_of(error_) : "");
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::vector<Outcome> wait() {
    if (ranks_ == nullptr) return workers_.collect(kAlonePeriod);
    std::vector<Outcome> outcomes;
    listen(outcomes);
    for (auto& outcome : workers_.collect(kRanksPeriod)) outcomes.push_back(std::move(outcome));
    return outcomes;
  }

  void listen(std::vector<Outcome>& outcomes) {
    while (const auto message = ranks_->receive()) {
      const Json content = Json::parse(message->text);
      const std::int64_t idle = content.value("ready", 1);
      if (!content.contains("ready")) outcomes.push_back(decode(message->from, content));
      for (std::int64_t i = 0; i < idle; ++i) {
        const auto index = workers_.take();
        if (!index) break;
        ranks_->send(message->from, dump(Json{{"index", *index}}));
      }
    }
  }

  void settle(std::vector<Outcome> outcomes) {
    std::vector<FinishedCell> cells;
    for (auto& outcome : outcomes) {
      --running_;
      if (!outcome.error) {
        cells.push_back(std::move(outcome.cell));
      } else if (is_set(stop_)) {
        given_up_ = true;
      } else if (!error_) {
        fail(outcome);
      }
    }
    if (cells.empty()) return;
    run_.commit(cells);
    progress_.done += static_cast<std::int64_t>(cells.size());
    tell();
  }

  // No new cells; running ones end and are kept.
  void fail(const Outcome& outcome) {
    error_ = outcome.error;
    while (workers_.take()) --running_;
    progress_.failed = outcome.cell.key;
    tell();
  }

  // What is committed survives anyway. Resuming computes the running cells again.
  [[noreturn]] void interrupt() {
    while (workers_.take()) --running_;
    settle(workers_.collect(std::chrono::microseconds(0)));
    const std::string message = "interrupted: " + std::to_string(progress_.done) + " of " +
                                std::to_string(progress_.total) +
                                " cells are finished and kept in " + run_.directory().string() +
                                "; start the same command again to resume";
    run_.flush();
    if (options_.abandon) options_.abandon(message);
    dismiss_ranks(message);
    workers_.close();
    settle(workers_.collect(std::chrono::microseconds(0)));
    throw Interrupted(message);
  }

  void dismiss_ranks(const std::string& reason) {
    if (ranks_ == nullptr) return;
    for (int to = 1; to < ranks_->count(); ++to) ranks_->send(to, dump(Json{{"stop", reason}}));
    if (reason.empty()) ranks_->broadcast(run_.image());
  }

  void tell() const {
    if (options_.progress) options_.progress(progress_);
  }

  Run& run_;
  Ranks* ranks_;  // null when alone
  const ExecOptions& options_;
  const StopFlag* stop_;
  CellProgress progress_;
  std::int64_t running_ = 0;  // handed out or waiting
  bool given_up_ = false;     // a cell ended without rows because the stop flag was set
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

}  // namespace

Shard Shard::parse(const std::string& text) {
  if (text.empty()) return {};
  Shard shard;
  const char* end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  const bool has_slash = first == std::errc() && slash != end && *slash == '/';
  const auto [rest, second] = has_slash ? std::from_chars(slash + 1, end, shard.count)
                                        : std::from_chars(end, end, shard.count);
  if (second != std::errc() || rest != end || shard.index < 1 || shard.index > shard.count) {
    throw_argument("shard", "index/count", "\"" + text + "\"", "e.g. 1/4 up to 4/4");
  }
  --shard.index;
  return shard;
}

bool run_text_cells(Run& run, const TextCells& cells, const ExecOptions& options) {
  check_distinct(cells.keys);
  run.declare(cells.keys, cells.columns);
  Ranks* ranks = run.ranks();
  if (ranks != nullptr && ranks->rank() != 0) {
    serve_rank_zero(run, *ranks, cells);
  } else {
    const auto finished = run.finished_keys();
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < cells.keys.size(); ++i) {
      const bool mine = i % options.shard.count == options.shard.index;
      if (mine && !finished.contains(cells.keys[i])) missing.push_back(i);
    }
    Coordinator(run, cells, options).execute(missing);
  }
  const auto finished = run.finished_keys();
  return std::all_of(cells.keys.begin(), cells.keys.end(),
                     [&](const std::string& key) { return finished.contains(key); });
}

std::string engine_of(const RecordTable& rows) {
  for (std::size_t i = 0; i < rows.columns.size() && !rows.rows.empty(); ++i) {
    const auto* text = std::get_if<std::string>(&rows.rows.front()[i]);
    if (rows.columns[i].name == "engine" && text != nullptr) return *text;
  }
  return "";
}

}  // namespace esscher
