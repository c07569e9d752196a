// A run is a directory: config.toml (the resolved configuration), run.sqlite (cells, columns,
// results, provenance, documents) and run.lock. A study is a list of cells; each cell yields rows of
// a declared row type (base/columns.h) and is committed atomically when it ends. A directory appears
// complete or not at all, and the same command started again resumes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/json/json.h"
#include "esscher/json/rows.h"

namespace esscher {

class Database;
class Ranks;
class RunLock;

// What makes two runs the same study.
struct RunInfo {
  std::string verb;         // "concentration"
  std::string config_toml;  // resolved configuration, as saved in config.toml
  std::uint64_t seed = 0;
};

// A cell as it comes from a worker: rows as text (rows_text of json/rows.h), written verbatim.
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
  // process works on it; FileError if it is damaged, from a newer program or cannot be written. With
  // several `ranks` every one of them calls it, and rank 0 opens the directory.
  static Run create_or_resume(const std::filesystem::path& directory, const RunInfo& info,
                              Ranks* ranks = nullptr);
  // For reading only; works while another process writes, and on read-only media. Nothing is written
  // into the directory unless another process is writing there.
  static Run open(const std::filesystem::path& directory);

  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] const RunInfo& info() const { return info_; }
  // False for a run opened for reading, and on every rank but the first: such a run keeps changes in
  // memory only, and reports and exports of it must not be written.
  [[nodiscard]] bool is_writer() const { return lock_ != nullptr; }
  // The processes that work on it; null when alone.
  [[nodiscard]] Ranks* ranks() const { return ranks_; }

  // Fixes the order of cells and the columns of their rows. Keys already there keep their place, and
  // their columns if they are done; new ones follow. Throws ArgumentError if a column is called
  // "cell", or has another type than a column of the same name in other cells.
  void declare(std::span<const std::string> keys, std::span<const Column> columns);
  [[nodiscard]] bool done(std::string_view key) const;
  [[nodiscard]] RunStatus status() const;

  // Stores a cell. Doing it again with the same rows is fine; other rows are a RuntimeFailure.
  template <HasColumns Row>
  void commit(const std::string& key, const std::vector<Row>& rows, double seconds = 0,
              std::string_view engine = "");
  // Declared cells, all of them in one transaction.
  void commit(std::span<const FinishedCell> cells);

  // Rows of these cells, in this order. Throws ArgumentError if a cell is not done, FileError naming
  // cell and column if what was stored does not fit the row type.
  template <HasColumns Row>
  [[nodiscard]] std::vector<Row> rows(std::span<const std::string> keys) const;
  // Rows of all finished cells in the declared order under the union of their columns: a column that
  // a cell does not have is absent in its rows. keyed_table() has the column "cell" in front.
  [[nodiscard]] RecordTable table() const;
  [[nodiscard]] RecordTable keyed_table() const;
  // The union of the columns of all cells, finished or not.
  [[nodiscard]] std::vector<Column> columns() const;

  // The same as stored, one entry per finished cell.
  [[nodiscard]] std::vector<FinishedCell> cells() const;
  // Declared order of keys, finished or not.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::unordered_set<std::string> finished_keys() const;
  // What was declared: cells with the same columns, in the order of the first.
  struct Layout {
    std::vector<Column> columns;
    std::vector<std::string> keys;
  };
  [[nodiscard]] std::vector<Layout> layouts() const;

  // Named JSON beside the rows, e.g. "report". Setting replaces.
  void set_document(std::string_view name, const Json& document);
  [[nodiscard]] std::optional<Json> document(std::string_view name) const;

  // {"verb","seed","created","schema","cells":{done,total,seconds},"sessions":[..]}: everything
  // that may differ between two runs with equal results. Never part of an export.
  [[nodiscard]] Json provenance() const;

  // The whole database, for other ranks.
  [[nodiscard]] std::string image() const;
  void replace(std::string_view image);

  // Gives a chain that goes on its longer configuration, in the database and in config.toml.
  void extend(const std::string& config_toml);

  // Moves everything committed so far from the write-ahead log into run.sqlite.
  void flush();
  // The same, and the lock is free; the object is not usable afterwards.
  void close();

 private:
  Run(std::filesystem::path directory, RunInfo info, std::unique_ptr<Database> database,
      std::unique_ptr<RunLock> lock);
  void check_writable() const;
  [[nodiscard]] RecordTable cell_table(std::string_view key) const;
  [[nodiscard]] std::string place_of(std::string_view key) const;  // "DIR: cell \"KEY\""

  std::filesystem::path directory_;
  RunInfo info_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<Database> database_;
  Ranks* ranks_ = nullptr;
  std::int64_t session_ = 0;
  bool read_only_ = false;
};

template <HasColumns Row>
void Run::commit(const std::string& key, const std::vector<Row>& rows, double seconds,
                 std::string_view engine) {
  declare(std::span(&key, 1), columns_of<Row>());
  const FinishedCell cell{key, rows_text(table_of(std::span<const Row>(rows))), seconds,
                          std::string(engine)};
  commit(std::span(&cell, 1));
}

template <HasColumns Row>
std::vector<Row> Run::rows(std::span<const std::string> keys) const {
  std::vector<Row> out;
  for (const std::string& key : keys) {
    std::vector<Row> part = rows_of<Row>(place_of(key), cell_table(key));
    std::move(part.begin(), part.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace esscher
