#include "esscher/store/database.h"

#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr int kBusyMilliseconds = 10'000;

std::string_view reason(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return "the disk is full";
    case SQLITE_READONLY: return "the file or its directory is read-only";
    case SQLITE_CANTOPEN: return "cannot be opened";
    case SQLITE_CORRUPT: return "the file is damaged";
    case SQLITE_NOTADB: return "the file is not an SQLite database";
    case SQLITE_BUSY: return "another process keeps it locked";
    case SQLITE_PERM: return "permission denied";
    case SQLITE_IOERR: return "input/output error";
    default: return "SQLite error";
  }
}

// '?', '#' and '%' have a meaning in a URI file name.
std::string uri_of(const std::filesystem::path& file, std::string_view query) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '?')
      uri += "%3f";
    else if (c == '#')
      uri += "%23";
    else if (c == '%')
      uri += "%25";
    else
      uri += c;
  }
  return uri.append(query);
}

bool no_pending_log(const std::filesystem::path& file) {
  const auto wal = file.string() + "-wal";
  std::error_code ignored;
  return !std::filesystem::exists(wal, ignored) || std::filesystem::file_size(wal, ignored) == 0;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Statement& Statement::bind(int index, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(handle_.get(), index, value)) database_->fail(code);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  if (const int code = sqlite3_bind_double(handle_.get(), index, value)) database_->fail(code);
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  const int code = sqlite3_bind_text64(handle_.get(), index, value.empty() ? "" : value.data(),
                                       value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_->fail(code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  // The message must be taken before reset; the statement must not stay open.
  try {
    database_->fail(code);
  } catch (...) {
    sqlite3_reset(handle_.get());
    throw;
  }
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() { sqlite3_reset(handle_.get()); }

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(handle_.get(), column); }

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

Database::Database(const std::filesystem::path& file, Mode mode) : name_(file.string()) {
  const auto open = [&](const std::string& uri, int flags) {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open_v2(uri.c_str(), &raw, flags | SQLITE_OPEN_URI, nullptr);
    handle_.reset(raw);
    if (code != SQLITE_OK) fail(code);
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, kBusyMilliseconds);
  };
  if (mode == Mode::read) {
    open(uri_of(file, ""), SQLITE_OPEN_READONLY);
    // On a read-only medium SQLite cannot make the shared memory of WAL. Without a pending log the
    // file alone is the whole database and may be read as immutable.
    const int code = sqlite3_exec(handle_.get(), "SELECT count(*) FROM sqlite_schema", nullptr,
                                  nullptr, nullptr);
    const int kind = code & 0xff;
    if ((kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY) && no_pending_log(file)) {
      open(uri_of(file, "?immutable=1"), SQLITE_OPEN_READONLY);
    }
    return;
  }
  open(uri_of(file, ""), SQLITE_OPEN_READWRITE | (mode == Mode::create ? SQLITE_OPEN_CREATE : 0));
  // With NORMAL a commit survives the death of the process at once. After a power cut, commits
  // since the last checkpoint may be lost. The database is consistent in both cases.
  execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON");
}

Database::Database(std::string_view image, std::string name) : name_(std::move(name)) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(":memory:", &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  handle_.reset(raw);
  if (code != SQLITE_OK) fail(code);
  if (image.empty()) return;
  auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
  if (bytes == nullptr) fail(SQLITE_NOMEM);
  std::memcpy(bytes, image.data(), image.size());
  // Bytes 18 and 19 of the header say "WAL" (2), which memory databases cannot be.
  if (image.size() > 19) bytes[18] = bytes[19] = 1;
  const auto size = static_cast<sqlite3_int64>(image.size());
  const int loaded =
      sqlite3_deserialize(raw, "main", bytes, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
  if (loaded != SQLITE_OK) fail(loaded);
}

void Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

Statement Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) fail(code);
  return Statement(*this, statement);
}

std::int64_t Database::integer(const std::string& sql) {
  auto statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(const std::string& sql) {
  auto statement = prepare(sql);
  return statement.step() ? statement.text(0) : std::string();
}

void Database::transaction(const std::function<void()>& body) {
  execute("BEGIN IMMEDIATE");
  try {
    body();
    execute("COMMIT");
  } catch (...) {
    if (sqlite3_get_autocommit(handle_.get()) == 0) {
      sqlite3_exec(handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    throw;
  }
}

std::string Database::image() {
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle_.get(), "main", &size, 0);
  if (bytes == nullptr) fail(SQLITE_NOMEM);
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> owner(bytes, sqlite3_free);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

void Database::fail(int code) const {
  std::string text = name_ + ": " + std::string(reason(code));
  const char* detail = handle_ == nullptr ? nullptr : sqlite3_errmsg(handle_.get());
  text += " (" + std::string(detail == nullptr ? sqlite3_errstr(code) : detail) + ")";
  throw FileError(text);
}

}  // namespace esscher
