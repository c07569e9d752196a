#include "esscher/store/run.h"

#include <algorithm>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/base/version.h"
#include "esscher/io/file.h"
#include "esscher/simd/targets.h"
#include "esscher/store/database.h"
#include "esscher/store/detail/layouts.h"
#include "esscher/store/files.h"
#include "esscher/store/lock.h"
#include "esscher/store/ranks.h"
#include "esscher/store/schema.h"

namespace esscher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDatabase = "run.sqlite";
constexpr const char* kConfig = "config.toml";

std::string meta(Database& database, std::string_view name) {
  auto statement = database.prepare("SELECT value FROM meta WHERE name = ?1");
  statement.bind(1, name);
  if (!statement.step()) {
    throw FileError(database.name() + ": the file is damaged: \"" + std::string(name) +
                    "\" is missing");
  }
  return statement.text(0);
}

std::string meta_digest(const RunInfo& info) {
  return std::to_string(digest({info.verb, info.config_toml, std::to_string(info.seed)}));
}

RunInfo read_info(Database& database) {
  RunInfo info{meta(database, "verb"), meta(database, "config"), 0};
  info.seed = std::strtoull(meta(database, "seed").c_str(), nullptr, 10);
  if (meta(database, "check") != meta_digest(info)) {
    throw FileError(database.name() +
                    ": the file is damaged: the configuration does not match its digest");
  }
  return info;
}

void write_info(Database& database, const RunInfo& info) {
  auto insert = database.prepare("INSERT INTO meta VALUES(?1, ?2)");
  const auto put = [&](std::string_view name, std::string_view value) {
    insert.bind(1, name).bind(2, value).run();
  };
  put("verb", info.verb);
  put("seed", std::to_string(info.seed));
  put("config", info.config_toml);
  put("created", utc_now());
  put("check", meta_digest(info));
}

// Verb and seed in front, so that one comparison shows every kind of difference.
std::string identity(const RunInfo& info) {
  return "verb = " + info.verb + "\nseed = " + std::to_string(info.seed) + "\n" + info.config_toml;
}

void check_same_study(const fs::path& directory, const RunInfo& stored, const RunInfo& given) {
  if (identity(stored) == identity(given)) return;
  throw ConfigError(
      directory.string() +
      ": holds a run with another configuration; choose another directory, or make these "
      "equal (- stored, + given):\n" +
      line_difference(identity(stored), identity(given)));
}

std::int64_t begin_session(Database& database, int ranks) {
  database
      .prepare(
          "INSERT INTO sessions(started, version, commit_id, target, host, threads, ranks)"
          " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")
      .bind(1, utc_now())
      .bind(2, kVersion)
      .bind(3, build_commit())
      .bind(4, simd::active_target())
      .bind(5, host_name())
      .bind(6, std::int64_t{thread_count()})
      .bind(7, std::int64_t{ranks})
      .run();
  return database.integer("SELECT max(id) FROM sessions");
}

bool is_absent_or_empty(const fs::path& directory) {
  std::error_code error;
  const auto kind = fs::status(directory, error).type();
  if (kind == fs::file_type::not_found) return true;
  if (kind != fs::file_type::directory) {
    throw FileError(directory.string() + ": exists and is not a directory");
  }
  const bool empty = fs::is_empty(directory, error);
  if (error) throw FileError(directory.string() + ": cannot be read (" + error.message() + ")");
  return empty;
}

// The lock taken on the temporary directory moves with the rename.
std::unique_ptr<RunLock> create(const fs::path& directory, const RunInfo& info) {
  std::unique_ptr<RunLock> lock;
  const bool made = create_directory_atomically(directory, [&](const fs::path& temporary) {
    lock = std::make_unique<RunLock>(temporary);
    write_text(temporary / kConfig, info.config_toml);
    Database database(temporary / kDatabase, Database::Mode::create);
    create_schema(database);
    database.transaction([&] { write_info(database, info); });
  });
  if (!made) lock.reset();
  return lock;
}

}  // namespace

Run::Run(fs::path directory, RunInfo info, std::unique_ptr<Database> database,
         std::unique_ptr<RunLock> lock)
    : directory_(std::move(directory)),
      info_(std::move(info)),
      lock_(std::move(lock)),
      database_(std::move(database)) {}

Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

Run Run::create_or_resume(const fs::path& directory, const RunInfo& info, Ranks* ranks) {
  if (ranks != nullptr && ranks->rank() != 0) {
    auto database = std::make_unique<Database>(ranks->broadcast({}));
    Run copy(directory, info, std::move(database), nullptr);
    copy.ranks_ = ranks;
    return copy;
  }
  remove_remains(directory);
  std::unique_ptr<RunLock> lock;
  if (is_absent_or_empty(directory)) lock = create(directory, info);
  const fs::path file = directory / kDatabase;
  if (!lock) {
    if (!fs::exists(file)) {
      throw FileError(directory.string() +
                      ": exists and is not a run (no run.sqlite in it); choose another directory");
    }
    lock = std::make_unique<RunLock>(directory);
    check_same_study(directory, read_info(*open_checked(file)), info);
  }
  auto database = std::make_unique<Database>(file, Database::Mode::write);
  upgrade_schema(*database);
  Run run(directory, info, std::move(database), std::move(lock));
  run.ranks_ = ranks;
  run.session_ = begin_session(*run.database_, ranks == nullptr ? 1 : ranks->count());
  if (ranks != nullptr) ranks->broadcast(run.image());
  return run;
}

Run Run::open(const fs::path& directory) {
  auto database = open_checked(directory / kDatabase);
  auto info = read_info(*database);
  Run run(directory, std::move(info), std::move(database), nullptr);
  run.read_only_ = true;
  return run;
}

void Run::check_writable() const {
  if (read_only_) {
    throw FileError(directory_.string() + ": the run was opened for reading only");
  }
}

void Run::declare(std::span<const std::string> keys, std::span<const Column> columns) {
  check_writable();
  database_->transaction([&] { declare_cells(*database_, keys, columns); });
}

bool Run::done(std::string_view key) const {
  auto statement =
      database_->prepare("SELECT 1 FROM cells JOIN results USING (ordinal) WHERE key = ?1");
  return statement.bind(1, key).step();
}

RunStatus Run::status() const {
  return {database_->integer("SELECT count(*) FROM results"),
          database_->integer("SELECT count(*) FROM cells")};
}

void Run::commit(std::span<const FinishedCell> cells) {
  check_writable();
  database_->transaction([&] {
    auto find = database_->prepare(
        "SELECT ordinal, rows, columns FROM cells LEFT JOIN results USING (ordinal)"
        " LEFT JOIN layouts ON layouts.id = cells.layout WHERE key = ?1");
    auto result = database_->prepare("INSERT INTO results VALUES(?1, ?2, ?3)");
    auto origin = database_->prepare("INSERT INTO provenance VALUES(?1, ?2, ?3, ?4)");
    for (const auto& cell : cells) {
      if (!find.bind(1, cell.key).step()) {
        throw_argument("Run::commit", "key", "\"" + cell.key + "\"", "a declared cell");
      }
      const auto ordinal = find.integer(0);
      const bool known = !find.is_null(1);
      const bool equal = known && find.text(1) == cell.rows;
      const std::int64_t check = digest({cell.key, cell.rows, find.text(2)});
      find.reset();
      if (known && !equal) {
        throw RuntimeFailure(place_of(cell.key) + " is already stored with other rows");
      }
      if (known) continue;
      result.bind(1, ordinal).bind(2, cell.rows).bind(3, check).run();
      origin.bind(1, ordinal).bind(2, session_).bind(3, cell.seconds).bind(4, cell.engine).run();
    }
  });
}

std::string Run::place_of(std::string_view key) const {
  return directory_.string() + ": cell \"" + std::string(key) + "\"";
}

RecordTable Run::cell_table(std::string_view key) const {
  auto statement = database_->prepare(
      "SELECT rows, columns FROM cells JOIN results USING (ordinal)"
      " LEFT JOIN layouts ON layouts.id = cells.layout WHERE key = ?1");
  if (!statement.bind(1, key).step()) {
    throw_argument("Run::rows", "key", "\"" + std::string(key) + "\"", "a finished cell");
  }
  const std::string where = place_of(key);
  return parse_rows(where, columns_from_text(where, statement.text(1)), statement.text(0));
}

std::vector<Run::Layout> Run::layouts() const {
  std::vector<Layout> out;
  for (StoredLayout& layout : read_layouts(*database_)) {
    out.push_back({std::move(layout.columns), std::move(layout.keys)});
  }
  return out;
}

std::vector<Column> Run::columns() const { return union_of(read_layouts(*database_)); }

RecordTable Run::table() const { return table_of_cells(*database_, directory_.string(), false); }
RecordTable Run::keyed_table() const {
  return table_of_cells(*database_, directory_.string(), true);
}

std::vector<FinishedCell> Run::cells() const {
  auto statement = database_->prepare(
      "SELECT key, rows, seconds, engine FROM results JOIN cells USING (ordinal)"
      " JOIN provenance USING (ordinal) ORDER BY ordinal");
  std::vector<FinishedCell> out;
  while (statement.step()) {
    out.push_back({statement.text(0), statement.text(1), statement.real(2), statement.text(3)});
  }
  return out;
}

std::vector<std::string> Run::keys() const {
  auto statement = database_->prepare("SELECT key FROM cells ORDER BY ordinal");
  std::vector<std::string> out;
  while (statement.step()) out.push_back(statement.text(0));
  return out;
}

std::unordered_set<std::string> Run::finished_keys() const {
  auto statement = database_->prepare("SELECT key FROM cells JOIN results USING (ordinal)");
  std::unordered_set<std::string> out;
  while (statement.step()) out.insert(statement.text(0));
  return out;
}

void Run::set_document(std::string_view name, const Json& document) {
  check_writable();
  const std::string text = dump(document);
  database_->prepare("INSERT OR REPLACE INTO documents VALUES(?1, ?2, ?3)")
      .bind(1, name)
      .bind(2, text)
      .bind(3, digest({name, text}))
      .run();
}

std::optional<Json> Run::document(std::string_view name) const {
  auto statement = database_->prepare("SELECT json FROM documents WHERE name = ?1");
  if (!statement.bind(1, name).step()) return std::nullopt;
  return Json::parse(statement.text(0));
}

Json Run::provenance() const {
  const auto [done, total] = status();
  Json sessions = Json::array();
  auto statement = database_->prepare(
      "SELECT started, version, commit_id, target, host, threads, ranks,"
      " (SELECT count(*) FROM provenance WHERE session = id),"
      " (SELECT total(seconds) FROM provenance WHERE session = id) FROM sessions ORDER BY id");
  while (statement.step()) {
    sessions.push_back({{"started", statement.text(0)},
                        {"version", statement.text(1)},
                        {"commit", statement.text(2)},
                        {"target", statement.text(3)},
                        {"host", statement.text(4)},
                        {"threads", statement.integer(5)},
                        {"ranks", statement.integer(6)},
                        {"cells", statement.integer(7)},
                        {"seconds", number(statement.real(8))}});
  }
  Json engines = Json::array();
  auto used = database_->prepare("SELECT DISTINCT engine FROM provenance WHERE engine <> ''");
  while (used.step()) engines.push_back(used.text(0));
  return {{"verb", info_.verb},
          {"seed", info_.seed},
          {"created", meta(*database_, "created")},
          {"schema", kSchemaVersion},
          {"cells", {{"done", done}, {"total", total}}},
          {"engines", engines},
          {"sessions", sessions}};
}

void Run::extend(const std::string& config_toml) {
  check_writable();
  info_.config_toml = config_toml;
  database_->transaction([&] {
    auto update = database_->prepare("UPDATE meta SET value = ?2 WHERE name = ?1");
    update.bind(1, "config").bind(2, info_.config_toml).run();
    update.bind(1, "check").bind(2, meta_digest(info_)).run();
  });
  write_text(directory_ / kConfig, info_.config_toml);
}

std::string Run::image() const { return database_->image(); }

void Run::replace(std::string_view image) { database_ = std::make_unique<Database>(image); }

void Run::flush() { database_->execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

void Run::close() {
  database_.reset();
  lock_.reset();
}

}  // namespace esscher
