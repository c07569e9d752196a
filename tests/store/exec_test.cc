// The driver of cells: the same rows here, into a store, on threads, on ranks, in shards, after a
// failure and after an interruption.
#include "esscher/store/exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>

#include "esscher/base/parallel.h"
#include "esscher/store/export.h"
#include "esscher/store/merge.h"
#include "esscher/store/ranks.h"
#include "tests/store/temporary.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using testing::Temporary;

const RunInfo kInfo{"study", "cells = 40\n", 7};
constexpr std::size_t kCells = 40;

struct DriverRow {
  std::int64_t cell_index = 0;
  double value = 0;
  std::vector<double> parts = {};
  std::string engine = "exact";

  friend bool operator==(const DriverRow&, const DriverRow&) = default;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("cell_index", row.cell_index, "", "which cell it is of");
    column("value", row.value, "", "1 / index, which is infinite for the first");
    column("parts", row.parts, "", "as many numbers as the index says");
    column("engine", row.engine, "", "how it was computed");
  }
};

std::vector<DriverRow> rows_of_cell(std::size_t i) {
  const double x = static_cast<double>(i);
  std::vector<DriverRow> rows(1 + i % 3);
  for (DriverRow& row : rows) {
    row = {.cell_index = static_cast<std::int64_t>(i),
           .value = 1 / x,
           .parts = std::vector<double>(i, x / 3)};
  }
  return rows;
}

Cells<DriverRow> cells(std::function<void(std::size_t)> before = {}) {
  Cells<DriverRow> out;
  for (std::size_t i = 0; i < kCells; ++i) out.keys.push_back("i=" + std::to_string(i));
  out.compute = [before](std::size_t i) {
    if (before) before(i);
    return rows_of_cell(i);
  };
  return out;
}

// Ranks that are threads of one process. Real ranks have threads of their own; these would share the
// arena of oneTBB and wait for each other's places in it, so each has one thread.
class ThreadRanks {
 public:
  explicit ThreadRanks(int count) : boxes_(static_cast<std::size_t>(count)) {
    set_thread_count(1);
    for (int r = 0; r < count; ++r) ranks_.emplace_back(*this, r);
  }
  ~ThreadRanks() { set_thread_count(0); }
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;
  Ranks* operator[](int rank) { return &ranks_[static_cast<std::size_t>(rank)]; }

 private:
  class One : public Ranks {
   public:
    One(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int count() const override { return static_cast<int>(all_.boxes_.size()); }
    void send(int to, std::string_view text) override {
      const std::lock_guard guard(all_.mutex_);
      all_.boxes_[static_cast<std::size_t>(to)].push_back({rank_, std::string(text)});
    }
    std::optional<RankMessage> receive() override {
      const std::lock_guard guard(all_.mutex_);
      auto& box = all_.boxes_[static_cast<std::size_t>(rank_)];
      if (box.empty()) return std::nullopt;
      RankMessage message = std::move(box.front());
      box.pop_front();
      return message;
    }
    std::string broadcast(std::string text) override {
      std::unique_lock lock(all_.mutex_);
      if (rank_ == 0) all_.told_.push_back(text);
      all_.changed_.notify_all();
      all_.changed_.wait(lock, [&] { return all_.told_.size() > heard_; });
      return all_.told_[heard_++];
    }

   private:
    ThreadRanks& all_;
    int rank_;
    std::size_t heard_ = 0;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<RankMessage>> boxes_;
  std::vector<std::string> told_;
  std::deque<One> ranks_;
};

TEST(Driver, SameRowsHereInAStoreAndOnTwoThreads) {
  const Temporary tmp;
  std::vector<DriverRow> want;
  for (std::size_t i = 0; i < kCells; ++i) {
    for (DriverRow& row : rows_of_cell(i)) want.push_back(std::move(row));
  }
  EXPECT_EQ(run_cells(nullptr, cells()).rows, want);
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    auto run = Run::create_or_resume(tmp / std::to_string(threads), kInfo);
    const auto all = run_cells(&run, cells());
    EXPECT_TRUE(all.complete);
    EXPECT_EQ(all.rows, want) << threads << " threads";
    EXPECT_EQ(run.provenance()["engines"], Json::array({"exact"}));
  }
  set_thread_count(0);
  EXPECT_EQ(export_json(Run::open(tmp / "1")), export_json(Run::open(tmp / "2")));
}

TEST(Driver, SameRowsOnTwoRanks) {
  const Temporary tmp;
  const std::vector<DriverRow> want = run_cells(nullptr, cells()).rows;
  ThreadRanks ranks(2);
  std::atomic<int> computed[2] = {0, 0};
  const auto on_rank = [&](int r) {
    auto run = Run::create_or_resume(tmp / "a", kInfo, ranks[r]);
    EXPECT_EQ(run.is_writer(), r == 0);
    const auto all = run_cells(&run, cells([&](std::size_t) {
      ++computed[r];
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }));
    EXPECT_EQ(all.rows, want) << "rank " << r;
  };
  std::thread other([&] { on_rank(1); });
  on_rank(0);
  other.join();
  EXPECT_EQ(computed[0] + computed[1], static_cast<int>(kCells));
  EXPECT_GT(computed[1], 0);
  EXPECT_EQ(Run::open(tmp / "a").provenance()["sessions"][0]["ranks"], 2);
}

TEST(Driver, AFailureOnOneRankReachesAll) {
  const Temporary tmp;
  ThreadRanks ranks(2);
  const auto on_rank = [&](int r) {
    auto run = Run::create_or_resume(tmp / "a", kInfo, ranks[r]);
    return message_of<Error>([&] {
      run_cells(&run, cells([](std::size_t i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (i == 20) throw DomainError("cursed");
      }));
    });
  };
  std::string message;
  std::thread other([&] { message = on_rank(1); });
  EXPECT_THAT(on_rank(0), HasSubstr("cursed"));
  other.join();
  EXPECT_THAT(message, HasSubstr("cursed"));
  EXPECT_GT(Run::open(tmp / "a").status().done, 10);
}

TEST(Driver, CommitsFinishedCellsWhenOneFails) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  std::atomic<int> calls = 0;
  std::string failed;
  const ExecOptions options{.progress = [&](const CellProgress& p) { failed = p.failed; }};
  EXPECT_THROW(run_cells(&run, cells([&](std::size_t i) {
                 ++calls;
                 if (i == 25) throw DomainError("cursed");
               }),
                         options),
               DomainError);
  EXPECT_EQ(failed, "i=25");
  const auto done = run.status().done;
  EXPECT_GE(done, 20);
  calls = 0;
  const auto all = run_cells(&run, cells([&](std::size_t) { ++calls; }));
  EXPECT_EQ(calls, static_cast<int>(kCells) - done) << "a finished cell is not computed again";
  EXPECT_EQ(all.rows, run_cells(nullptr, cells()).rows);
  Cells<DriverRow> twice = cells();
  twice.keys[1] = twice.keys[0];
  EXPECT_THROW(run_cells(&run, twice), ArgumentError);
}

TEST(Driver, TellsProgress) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  const Cells<DriverRow> all = cells();
  run.declare(all.keys, columns_of<DriverRow>());
  run.commit(all.keys[3], rows_of_cell(3));
  std::vector<std::int64_t> done;
  run_cells(&run, all, {.progress = [&](const CellProgress& p) {
    EXPECT_EQ(p.resumed, 1);
    EXPECT_EQ(p.total, static_cast<std::int64_t>(kCells));
    done.push_back(p.done);
  }});
  EXPECT_EQ(done.front(), 1);
  EXPECT_EQ(done.back(), static_cast<std::int64_t>(kCells));
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(Driver, ShardsMergeToTheWhole) {
  const Temporary tmp;
  for (std::size_t shard = 0; shard < 3; ++shard) {
    auto run = Run::create_or_resume(tmp / std::to_string(shard), kInfo);
    const auto all = run_cells(&run, cells(), {.shard = {.index = shard, .count = 3}});
    EXPECT_FALSE(all.complete);
    EXPECT_TRUE(all.rows.empty());
    EXPECT_NEAR(static_cast<double>(run.status().done), kCells / 3.0, 1);
    EXPECT_EQ(run.status().total, static_cast<std::int64_t>(kCells));
  }
  merge_runs({tmp / "2", tmp / "0", tmp / "1"}, tmp / "all");
  auto run = Run::create_or_resume(tmp / "all", kInfo);
  const auto all = run_cells(&run, cells([](std::size_t) { FAIL() << "nothing is missing"; }));
  EXPECT_EQ(all.rows, run_cells(nullptr, cells()).rows);
}

TEST(Driver, AStopFlagInterruptsAndTheSameCallResumes) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  StopFlag stop = false;
  std::string said;
  const ExecOptions options{.stop = &stop,
                            .abandon = [&](const std::string& message) { said = message; }};
  const auto text = message_of<Interrupted>([&] {
    run_cells(&run, cells([&](std::size_t i) {
      if (i == 10) stop = true;
      // A long cell looks at the flag.
      for (int k = 0; i >= 10 && k < 10000; ++k) {
        check_stop();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }),
              options);
  });
  EXPECT_THAT(text, HasSubstr("interrupted: "));
  EXPECT_THAT(text, HasSubstr("of 40 cells are finished and kept in " + (tmp / "a").string()));
  EXPECT_EQ(said, text);
  EXPECT_GE(run.status().done, 8);
  EXPECT_LT(run.status().done, 12);
  EXPECT_EQ(run_cells(&run, cells()).rows, run_cells(nullptr, cells()).rows);
}

TEST(Driver, TheFlagOfTheCallingThreadInterruptsToo) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  StopFlag stop = false;
  const StopScope scope(&stop);
  EXPECT_THROW(run_cells(&run, cells([&](std::size_t i) {
                 if (i == 10) stop = true;
                 check_stop();
               })),
               Interrupted);
}

struct Newer {
  std::int64_t cell_index = 0;
  double value = 0;
  double later = 0;
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("cell_index", row.cell_index, "", "which cell it is of");
    column("value", row.value, "", "the same");
    column("later", row.later, "", "a column that an older program did not write");
  }
};

TEST(Driver, NamesTheCellAndColumnOfWhatDoesNotFit) {
  const Temporary tmp;
  auto run = Run::create_or_resume(tmp / "a", kInfo);
  const auto all = run_cells(&run, cells());
  const std::vector<std::string> keys{"i=4"};
  EXPECT_THAT(message_of<FileError>([&] { (void)run.rows<Newer>(keys); }),
              ::testing::AllOf(HasSubstr("cell \"i=4\""), HasSubstr("\"later\"")));
}

TEST(Shards, Names) {
  for (const char* bad : {"0/2", "3/2", "1", "/2", "1/", "a/b", "1/2x", "-1/2"}) {
    EXPECT_THROW(Shard::parse(bad), ArgumentError) << bad;
  }
  EXPECT_EQ(Shard::parse("2/3").index, 1u);
  EXPECT_EQ(Shard::parse("2/3").count, 3u);
  EXPECT_EQ(Shard::parse("").count, 1u);
}

}  // namespace
}  // namespace esscher
