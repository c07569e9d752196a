#include "esscher/store/schema.h"

#include <array>
#include <fstream>
#include <string>

#include "esscher/base/error.h"
#include "esscher/io/file.h"
#include "esscher/store/detail/upgrade.h"
#include "esscher/store/lock.h"

namespace esscher {
namespace {

constexpr std::int64_t kApplicationId = 0x45535352;  // "ESSR"
constexpr std::string_view kMagic("SQLite format 3\0", 16);

constexpr const char* kSchema = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE layouts(id INTEGER PRIMARY KEY, columns TEXT NOT NULL UNIQUE);
CREATE TABLE cells(ordinal INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
                   layout INTEGER NOT NULL REFERENCES layouts);
CREATE TABLE results(ordinal INTEGER PRIMARY KEY REFERENCES cells, rows TEXT NOT NULL,
                     digest INTEGER NOT NULL);
CREATE TABLE provenance(ordinal INTEGER PRIMARY KEY REFERENCES cells,
                        session INTEGER NOT NULL REFERENCES sessions, seconds REAL NOT NULL,
                        engine TEXT NOT NULL);
CREATE TABLE sessions(id INTEGER PRIMARY KEY, started TEXT NOT NULL, version TEXT NOT NULL,
                      commit_id TEXT NOT NULL, target TEXT NOT NULL, host TEXT NOT NULL,
                      threads INTEGER NOT NULL, ranks INTEGER NOT NULL);
CREATE TABLE documents(name TEXT PRIMARY KEY, json TEXT NOT NULL, digest INTEGER NOT NULL)
  WITHOUT ROWID;
)sql";

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw FileError(file.string() + ": " + why + "; the file was left as it is");
}

bool has_pending_log(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file.string() + "-wal", error);
  return !error && size > 0;
}

// SQLite writes files of its own beside a database that it reads. A run that nobody writes is read
// into memory instead, so that its directory stays as it is.
std::unique_ptr<Database> open_for_reading(const std::filesystem::path& file) {
  if (!has_pending_log(file) && !lock_holder(file.parent_path())) {
    const std::string bytes = read_text(file);
    // Unless a writer has come meanwhile.
    if (!has_pending_log(file)) return std::make_unique<Database>(bytes, file.string());
  }
  return std::make_unique<Database>(file, Database::Mode::read);
}

void check_header(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    const std::filesystem::path folder = file.parent_path();
    throw FileError(folder.string() + ": " +
                    (std::filesystem::is_directory(folder, error)
                         ? "there is no " + file.filename().string() + " in it"
                         : std::string("there is no such directory")) +
                    ", expected a run directory made by esscher with --out");
  }
  std::array<char, 100> head{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), head.size());
  if (stream.gcount() == 0) refuse(file, "the file is empty or cannot be read");
  if (stream.gcount() != head.size() || !std::string_view(head.data(), 16).starts_with(kMagic)) {
    refuse(file, "the file is damaged or not an SQLite database");
  }
  const auto big_endian = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value = value << 8 | static_cast<unsigned char>(head[at + i]);
    }
    return value;
  };
  // SQLite forgives a missing last page if nothing needs it. With a pending log the file may
  // rightly be shorter than its header says: the rest is in the log.
  const auto expected = big_endian(16, 2) * big_endian(28, 4);
  if (!has_pending_log(file) && std::filesystem::file_size(file) < expected) {
    refuse(file, "the file is truncated");
  }
}

void check_results(Database& database) {
  auto all = database.prepare(
      "SELECT key, rows, digest, columns FROM results LEFT JOIN cells USING (ordinal)"
      " LEFT JOIN layouts ON layouts.id = cells.layout");
  while (all.step()) {
    if (digest({all.text(0), all.text(1), all.text(3)}) != all.integer(2)) {
      refuse(database.name(),
             "the file is damaged: cell \"" + all.text(0) + "\" does not match its digest");
    }
  }
  auto documents = database.prepare("SELECT name, json, digest FROM documents");
  while (documents.step()) {
    if (digest({documents.text(0), documents.text(1)}) != documents.integer(2)) {
      refuse(database.name(), "the file is damaged: document \"" + documents.text(0) +
                                  "\" does not match its digest");
    }
  }
}

void check_content(const std::filesystem::path& file, Database& database) {
  if (database.integer("PRAGMA application_id") != kApplicationId) {
    refuse(file, "an SQLite database, but not an esscher run");
  }
  const auto version = database.integer("PRAGMA user_version");
  if (version > kSchemaVersion) {
    refuse(file, "schema version " + std::to_string(version) + ", this program knows up to " +
                     std::to_string(kSchemaVersion) + "; use a newer esscher");
  }
  if (version < 1) refuse(file, "the file is damaged: schema version " + std::to_string(version));
  const std::string found = database.text("PRAGMA quick_check(1)");
  if (found != "ok") refuse(file, "the file is damaged: " + found);
}

}  // namespace

std::int64_t digest(std::initializer_list<std::string_view> parts) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto eat = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const auto part : parts) {
    for (const char c : part) eat(static_cast<unsigned char>(c));
    for (std::size_t n = part.size(), i = 0; i < 8; ++i, n >>= 8) eat(n & 0xff);
  }
  return static_cast<std::int64_t>(hash);
}

void create_schema(Database& database) {
  database.transaction([&] {
    database.execute(kSchema);
    database.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
                     "; PRAGMA user_version = " + std::to_string(kSchemaVersion));
  });
}

void upgrade_schema(Database& database) {
  const auto version = database.integer("PRAGMA user_version");
  if (version == kSchemaVersion) return;
  database.transaction([&] {
    if (version < 2) upgrade_1_to_2(database);
    if (version < 3) upgrade_2_to_3(database);
    database.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion));
  });
}

std::unique_ptr<Database> open_checked(const std::filesystem::path& file) {
  check_header(file);
  auto database = open_for_reading(file);
  try {
    check_content(file, *database);
    if (database->integer("PRAGMA user_version") < kSchemaVersion) {
      database = std::make_unique<Database>(database->image(), file.string());
      upgrade_schema(*database);
    }
    check_results(*database);
  } catch (const FileError& error) {
    const std::string text = error.what();
    if (text.ends_with("left as it is")) throw;
    throw FileError(text + "; the file was left as it is");
  }
  return database;
}

}  // namespace esscher
