// SQLite with C++ lifetimes. Every failure becomes a FileError that names the file and says in
// plain words what happened (disk full, read-only, damaged, busy).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace esscher {

class Database;

// One prepared statement; bind from 1, read columns from 0, as SQLite counts.
class Statement {
 public:
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  // The text is copied.
  Statement& bind(int index, std::string_view value);

  // True while there is a row to read.
  bool step();
  // Runs a statement that returns no row and makes it ready for the next binding.
  void run();
  void reset();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(Database& database, sqlite3_stmt* statement)
      : database_(&database), handle_(statement) {}
  Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

class Database {
 public:
  enum class Mode { create, write, read };
  // `read` never changes the file, not even by moving a write-ahead log into it.
  Database(const std::filesystem::path& file, Mode mode);
  // A private database in memory, empty or from the bytes of image() or of a file without a
  // write-ahead log. Messages call it `name`.
  explicit Database(std::string_view image = {}, std::string name = "run in memory");

  Database(Database&&) = delete;  // statements point back here

  void execute(const std::string& sql);
  Statement prepare(std::string_view sql);
  [[nodiscard]] std::int64_t integer(const std::string& sql);
  [[nodiscard]] std::string text(const std::string& sql);

  // Runs body inside BEGIN IMMEDIATE .. COMMIT; an exception rolls back and is rethrown.
  void transaction(const std::function<void()>& body);

  // The whole content as bytes, for another process.
  [[nodiscard]] std::string image();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[noreturn]] void fail(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::string name_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace esscher
