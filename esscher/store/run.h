// A run is a directory: config.toml (the resolved configuration), run.sqlite (cells, results,
// provenance, documents) and run.lock. A study is a list of cells; each cell yields rows and is
// committed atomically when it ends. A directory appears complete or not at all, and the same
// command started again resumes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "esscher/json/json.h"

namespace esscher {

class Database;
class RunLock;

// A flat object: column -> number | string | bool | null.
using Row = Json;

// What makes two runs the same study.
struct RunInfo {
  std::string verb;         // "concentration"
  std::string config_toml;  // resolved configuration, as saved in config.toml
  std::uint64_t seed = 0;
};

// A cell as it comes from a worker: rows as JSON text, written verbatim.
struct FinishedCell {
  std::string key;
  std::string rows;  // "[{..},..]"
  double seconds = 0;
  std::string engine;
};

struct RunStatus {
  std::int64_t done = 0;
  std::int64_t total = 0;  // declared cells
};

class Run {
 public:
  // Makes the directory, or continues the run in it. Throws ConfigError with the difference if the
  // run there has another verb, seed or configuration; RuntimeFailure naming the holder if another
  // process works on it; FileError if it is damaged, from a newer program or cannot be written.
  static Run create_or_resume(const std::filesystem::path& directory, const RunInfo& info);
  // For reading only; works while another process writes, and on read-only media.
  static Run open(const std::filesystem::path& directory);

  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] const RunInfo& info() const { return info_; }
  // False for a run opened for reading, and on every MPI rank but the first: such a run keeps
  // changes in memory only, and reports and exports of it must not be written.
  [[nodiscard]] bool is_writer() const { return lock_ != nullptr; }

  // Fixes the order of cells; keys already there keep their place, new ones follow.
  void declare(std::span<const std::string> keys);
  [[nodiscard]] bool done(std::string_view key) const;
  [[nodiscard]] RunStatus status() const;

  // Stores a cell. Doing it again with the same rows is fine; other rows are a RuntimeFailure.
  void commit(const std::string& key, const std::vector<Row>& rows, double seconds = 0,
              std::string_view engine = "");
  // All of them in one transaction.
  void commit(std::span<const FinishedCell> cells);

  // Rows of all finished cells in the declared order; of one cell (throws if it is not done).
  [[nodiscard]] std::vector<Row> rows() const;
  [[nodiscard]] std::vector<Row> rows(std::string_view key) const;
  // The same with the text as stored, one entry per finished cell.
  [[nodiscard]] std::vector<FinishedCell> cells() const;
  // Declared order of keys, finished or not.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::unordered_set<std::string> finished_keys() const;

  // Named JSON beside the rows, e.g. "report". Setting replaces.
  void set_document(std::string_view name, const Json& document);
  [[nodiscard]] std::optional<Json> document(std::string_view name) const;

  // {"verb","seed","created","schema","cells":{done,total,seconds},"sessions":[..]}: everything
  // that may differ between two runs with equal results. Never part of an export.
  [[nodiscard]] Json provenance() const;

  // The whole database, for other ranks.
  [[nodiscard]] std::string image() const;
  void replace(std::string_view image);

  // Moves everything committed so far from the write-ahead log into run.sqlite.
  void flush();
  // The same, and the lock is free; the object is not usable afterwards.
  void close();

 private:
  Run(std::filesystem::path directory, RunInfo info, std::unique_ptr<Database> database,
      std::unique_ptr<RunLock> lock);
  void check_writable() const;

  std::filesystem::path directory_;
  RunInfo info_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<Database> database_;
  std::int64_t session_ = 0;
  bool read_only_ = false;
};

// Throws ArgumentError unless the row is a flat object; returns the JSON text of the rows.
std::string rows_text(std::string_view key, const std::vector<Row>& rows);

}  // namespace esscher
