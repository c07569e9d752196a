// Faults that a run must survive, tried on a real process: program "study" (study_main.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "esscher/store/export.h"
#include "esscher/store/lock.h"
#include "esscher/store/merge.h"
#include "esscher/store/run.h"
#include "tests/store/temporary.h"
#include "tests/testing.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::Process;
using testing::run_program;
using testing::Temporary;

const std::string kStudy = testing::binary_dir() + "/tests/study";

void sleep_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

std::vector<std::string> study(const fs::path& directory, int cells, int milliseconds,
                               std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{kStudy, directory.string(), std::to_string(cells),
                                     std::to_string(milliseconds)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// As root and with more ranks than cores, which tests and containers are.
std::vector<std::string> on_ranks(int ranks, std::vector<std::string> program) {
  std::vector<std::string> arguments{"mpirun", "--allow-run-as-root", "--oversubscribe", "-np",
                                     std::to_string(ranks)};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

// A small file system of its own; gone with the object.
class Mount {
 public:
  Mount(fs::path point, const char* options) : point_(std::move(point)) {
    fs::create_directories(point_);
    mounted_ = mount("none", point_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~Mount() {
    if (mounted_) umount2(point_.c_str(), MNT_DETACH);
  }
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  void make_read_only() const {
    ASSERT_EQ(mount("none", point_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0)
        << std::strerror(errno);
  }

 private:
  fs::path point_;
  bool mounted_ = false;
};

std::int64_t done_in(const fs::path& directory) {
  return fs::exists(directory) ? Run::open(directory).status().done : 0;
}

// Waits until the study has finished more than `cells` cells; machines under load are slow.
void wait_for_more(const fs::path& directory, std::int64_t cells) {
  for (int i = 0; i < 2000 && done_in(directory) <= cells; ++i) sleep_ms(10);
}

TEST(Faults, KilledFiftyTimesThenResumed) {
  const Temporary tmp;
  const int cells = 5000;  // more than can be done between the kills
  const Outcome whole = run_program(study(tmp / "whole", cells, 0));
  ASSERT_EQ(whole.status, 0) << whole.err;
  std::mt19937 random(1);
  std::int64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    Process process(study(tmp / "killed", cells, 3));
    if (i % 5 == 4) wait_for_more(tmp / "killed", last);
    sleep_ms(static_cast<int>(random() % 70));
    process.send(SIGKILL);
    process.wait();
    const auto done = done_in(tmp / "killed");  // valid at every moment
    EXPECT_GE(done, last);
    last = done;
  }
  EXPECT_GT(last, 0);
  EXPECT_LT(last, cells);
  const Outcome resumed = run_program(study(tmp / "killed", cells, 0));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(resumed.out, whole.out);
  for (const auto& entry : fs::directory_iterator((tmp / "killed").parent_path())) {
    // An empty one may stay for a minute, in case its maker is alive.
    if (!entry.path().filename().string().starts_with(".killed.new-")) continue;
    EXPECT_TRUE(fs::is_empty(entry.path())) << "remains of a killed creation";
  }
}

TEST(Faults, SameBytesForAnyNumberOfThreads) {
  const Temporary tmp;
  const auto one = run_program(study(tmp / "one", 200, 0, {"--threads", "1"}));
  const auto two = run_program(study(tmp / "two", 200, 1, {"--threads", "2"}));
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_GT(one.out.size(), 1000u);
  EXPECT_EQ(one.out, two.out);
}

TEST(Progress, ABarOnATerminalPlainLinesInAPipe) {
  const Temporary tmp;
  const Outcome quiet = run_program(study(tmp / "quiet", 20, 0));
  EXPECT_EQ(quiet.err, "");
  const Outcome piped = run_program(study(tmp / "piped", 20, 0, {"--verbose"}));
  EXPECT_THAT(piped.err, HasSubstr("20/20 cells"));
  EXPECT_THAT(piped.err, Not(HasSubstr("\r")));
  const std::string command = kStudy + " " + (tmp / "terminal").string() + " 100 5 --verbose";
  const Outcome terminal = run_program({"script", "-qec", command, "/dev/null"});
  EXPECT_THAT(terminal.out, ContainsRegex("\r[^\n]*/100 cells[^\n]*left"));
  EXPECT_THAT(terminal.out, HasSubstr("100/100 cells"));
}

TEST(Faults, InterruptTellsHowToResume) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Temporary tmp;
    Process process(study(tmp / "a", 1000, 5));
    wait_for_more(tmp / "a", 0);
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 130);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("start the same command again to resume"));
    const auto status = Run::open(tmp / "a").status();
    EXPECT_GT(status.done, 0);
    EXPECT_LT(status.done, 1000);
    EXPECT_EQ(status.total, 1000);
    EXPECT_FALSE(lock_holder(tmp / "a"));
  }
}

TEST(Faults, SecondProcessIsToldWhoHoldsTheRun) {
  const Temporary tmp;
  Process first(study(tmp / "a", 1000, 5));
  while (!fs::exists(tmp / "a" / "run.lock")) sleep_ms(5);
  const Outcome second = run_program(study(tmp / "a", 1000, 5));
  EXPECT_EQ(second.status, 1);
  EXPECT_THAT(second.err, HasSubstr("held by process " + std::to_string(first.pid())));
  first.send(SIGKILL);
  first.wait();
  EXPECT_FALSE(lock_holder(tmp / "a"));
}

TEST(Faults, FullDiskKeepsWhatIsThere) {
  const Temporary tmp;
  const Mount disk(tmp / "disk", "size=400k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small tmpfs is not permitted here";
  // A millisecond a cell: instant ones may all wait for the first commit, and the disk with them.
  const Outcome outcome = run_program(study(tmp / "disk" / "a", 5000, 1));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("disk is full"));
  EXPECT_THAT(outcome.err, HasSubstr("start the same command again to resume"));
  const auto run = Run::open(tmp / "disk" / "a");
  EXPECT_GT(run.status().done, 0);
  EXPECT_EQ(run.table().rows.size(), static_cast<std::size_t>(3 * run.status().done));
}

TEST(Faults, FullDiskAtCreationLeavesNothing) {
  const Temporary tmp;
  const Mount disk(tmp / "disk", "size=16k");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small tmpfs is not permitted here";
  const Outcome outcome = run_program(study(tmp / "disk" / "a", 10, 0));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("disk"));
  EXPECT_TRUE(fs::is_empty(tmp / "disk"));
}

TEST(Faults, ReadOnlyDirectory) {
  const Temporary tmp;
  const Mount disk(tmp / "disk", "size=4m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not permitted here";
  const Outcome before = run_program(study(tmp / "disk" / "a", 10, 0));
  EXPECT_EQ(before.status, 0) << before.err;
  disk.make_read_only();
  EXPECT_EQ(Run::open(tmp / "disk" / "a").status().done, 10);
  for (const char* name : {"a", "new"}) {
    const Outcome outcome = run_program(study(tmp / "disk" / name, 10, 0));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("Read-only file system")) << name;
    EXPECT_THAT(outcome.err, HasSubstr("disk"));
  }
}

TEST(Shards, MergeToTheWholeRun) {
  const Temporary tmp;
  const Outcome whole = run_program(study(tmp / "whole", 30, 0));
  for (const char* shard : {"1/2", "2/2"}) {
    const Outcome part =
        run_program(study(tmp / std::string(1, shard[0]), 30, 0, {"--shard", shard, "--verbose"}));
    EXPECT_EQ(part.status, 0) << part.err;
    EXPECT_EQ(part.out, "") << "an incomplete run has no result";
    EXPECT_THAT(part.err, HasSubstr("15/30 cells"));
  }
  merge_runs({tmp / "1", tmp / "2"}, tmp / "both");
  EXPECT_EQ(export_csv(Run::open(tmp / "both")), whole.out);
}

#ifdef ESSCHER_HAVE_MPI

TEST(Ranks, SameBytesForAnyNumberOfRanks) {
  const Temporary tmp;
  const Outcome alone = run_program(study(tmp / "0", 60, 0));
  for (const int ranks : {1, 2, 4}) {
    const auto directory = tmp / std::to_string(ranks);
    const Outcome outcome = run_program(on_ranks(ranks, study(directory, 60, 2)));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, alone.out) << ranks << " ranks";
    EXPECT_EQ(Run::open(directory).provenance()["sessions"][0]["ranks"], ranks);
  }
}

TEST(Ranks, AFailedCellEndsAllRanks) {
  const Temporary tmp;
  const Outcome outcome = run_program(on_ranks(3, study(tmp / "a", 60, 1, {"--fail", "30"})));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("index is cursed"));
  EXPECT_GT(Run::open(tmp / "a").status().done, 10);
}

// Pids of all ranks: programs "study" whose environment says so.
std::vector<pid_t> ranks_of(const fs::path& directory) {
  std::vector<pid_t> out(3, 0);
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string command = bytes_of(entry.path() / "cmdline");
    if (command.find("study") == std::string::npos || command.starts_with("mpirun")) continue;
    if (command.find(directory.string()) == std::string::npos) continue;
    const std::string environment = bytes_of(entry.path() / "environ");
    const auto at = environment.find("OMPI_COMM_WORLD_RANK=");
    if (at == std::string::npos) continue;
    out[static_cast<std::size_t>(environment[at + 21] - '0')] =
        std::stoi(entry.path().filename().string());
  }
  return out;
}

// mpirun gives the other ranks a second: what is committed is kept, but on a busy machine rank 0
// may be gone before it has said how to resume.
TEST(Ranks, ADeadRankEndsTheRunAndKeepsCells) {
  const Temporary tmp;
  const Outcome whole = run_program(study(tmp / "whole", 600, 0));
  for (const int signal : {SIGTERM, SIGKILL}) {
    const auto directory = tmp / ("after" + std::to_string(signal));
    Process process(on_ranks(3, study(directory, 600, 20)));
    wait_for_more(directory, 30);
    kill(ranks_of(directory)[2], signal);
    const Outcome outcome = process.wait();
    EXPECT_NE(outcome.status, 0);
    EXPECT_THAT(outcome.err, HasSubstr("rank 2"));
    const auto done = Run::open(directory).status().done;
    EXPECT_GE(done, 30);
    EXPECT_LT(done, 600);
    const Outcome resumed = run_program(study(directory, 600, 0));
    EXPECT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_EQ(resumed.out, whole.out);
  }
}

#endif

}  // namespace
}  // namespace esscher
