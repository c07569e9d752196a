#include "esscher/store/merge.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "esscher/base/error.h"
#include "esscher/store/files.h"
#include "esscher/store/lock.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;

constexpr int kListDepth = 2;

void check_mergeable(const Run& first, const Run& other) {
  const auto text = [](const RunInfo& info) {
    return "verb = " + info.verb + "\nseed = " + std::to_string(info.seed) + "\n" +
           info.config_toml;
  };
  const std::string a = text(first.info());
  const std::string b = text(other.info());
  if (a == b) return;
  throw ConfigError("merge: " + first.directory().string() + " (-) and " +
                    other.directory().string() + " (+) are different studies:\n" +
                    line_difference(a, b));
}

// In the order of the shard, which its layouts alone do not tell.
void declare_all(const Run& shard, Run& out) {
  const std::vector<Run::Layout> layouts = shard.layouts();
  if (!layouts.empty()) out.declare(shard.keys(), layouts.front().columns);
  for (const Run::Layout& layout : layouts) out.declare(layout.keys, layout.columns);
}

void copy_cells(const std::vector<Run>& shards, Run& out) {
  std::map<std::string, std::pair<std::string, std::string>> seen;  // key -> rows, shard
  for (const auto& shard : shards) {
    declare_all(shard, out);
    const auto cells = shard.cells();
    for (const auto& cell : cells) {
      const auto [found, is_new] =
          seen.try_emplace(cell.key, cell.rows, shard.directory().string());
      if (is_new || found->second.first == cell.rows) continue;
      throw RuntimeFailure("merge: cell \"" + cell.key + "\" differs between " +
                           found->second.second + " and " + shard.directory().string());
    }
    out.commit(cells);
  }
}

double age_of(const fs::path& directory) {
  std::error_code ignored;
  auto newest = fs::last_write_time(directory / "run.sqlite", ignored);
  const auto wal = fs::last_write_time(directory / "run.sqlite-wal", ignored);
  if (!ignored) newest = std::max(newest, wal);
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - newest).count();
}

RunSummary summary_of(const fs::path& directory) {
  RunSummary summary{directory, "", {}, "", age_of(directory)};
  try {
    const auto run = Run::open(directory);
    summary.verb = run.info().verb;
    summary.status = run.status();
    const auto holder = lock_holder(directory);
    const bool complete = summary.status.total > 0 && summary.status.done == summary.status.total;
    summary.state = holder ? "running (" + *holder + ")" : complete ? "complete" : "interrupted";
  } catch (const Error& error) {
    summary.state = std::string("damaged: ") + error.what();
  }
  return summary;
}

void collect(const fs::path& directory, int depth, std::vector<RunSummary>& out) {
  std::error_code error;
  if (fs::exists(directory / "run.sqlite", error)) {
    out.push_back(summary_of(directory));
    return;
  }
  if (depth == 0) return;
  std::vector<fs::path> children;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const bool hidden = entry.path().filename().string().starts_with(".");
    if (!hidden && entry.is_directory(error)) children.push_back(entry.path());
  }
  std::sort(children.begin(), children.end());
  for (const auto& child : children) collect(child, depth - 1, out);
}

}  // namespace

void merge_runs(const std::vector<fs::path>& shards, const fs::path& out) {
  if (shards.empty()) throw_argument("merge", "shards", "none", "at least one run");
  std::error_code error;
  if (fs::exists(out, error) && !fs::is_empty(out, error)) {
    throw FileError(out.string() + ": exists, expected a new directory for the merged run");
  }
  std::vector<Run> runs;
  for (const auto& shard : shards) runs.push_back(Run::open(shard));
  for (const auto& run : runs) check_mergeable(runs.front(), run);
  const bool made = create_directory_atomically(out, [&](const fs::path& temporary) {
    Run merged = Run::create_or_resume(temporary / "run", runs.front().info());
    copy_cells(runs, merged);
    merged.close();
    for (const auto& entry : fs::directory_iterator(temporary / "run")) {
      fs::rename(entry.path(), temporary / entry.path().filename());
    }
    fs::remove(temporary / "run");
  });
  if (!made) throw FileError(out.string() + ": appeared while the runs were being merged");
}

std::vector<RunSummary> list_runs(const fs::path& directory) {
  if (!fs::is_directory(directory)) {
    throw FileError(directory.string() + ": is not a directory");
  }
  std::vector<RunSummary> out;
  collect(directory, kListDepth, out);
  return out;
}

}  // namespace esscher
