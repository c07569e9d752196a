// Configuration as verbs see it: a Config is a TOML file with --set overrides, a Table is one of
// its tables with typed getters. A getter marks its key as used; a wrong type or value is a
// ConfigError
//
//   exp.toml:12: measure.scale is -1.0, expected a number > 0
//
// and after reading, check_all_used() makes every key nobody asked for an error. A getter with a
// default writes that default into the tree, so that resolved_toml() tells the whole configuration.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/config/value.h"

namespace esscher {

// The interval is closed unless an end is said to be open. It also words the message "expected a
// number in [0, 1)".
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;

  static constexpr Range positive() { return {.low = 0, .low_open = true}; }
  static constexpr Range at_least(double low) { return {.low = low}; }
  static constexpr Range between(double low, double high) { return {.low = low, .high = high}; }
  [[nodiscard]] bool contains(double x) const;
  [[nodiscard]] std::string text() const;  // " > 0", " in [0, 1)", or nothing
};

// A Table is a view of one table. It is cheap to copy and keeps the tree of its Config alive.
class Table {
 public:
  [[nodiscard]] const std::string& path() const { return path_; }  // "measure.parts[0]"
  [[nodiscard]] std::string path(std::string_view key) const;      // "measure.parts[0].dim"

  // This is true if the user wrote the key.
  [[nodiscard]] bool has(std::string_view key) const;
  // These are the keys of the table that the user wrote, sorted.
  [[nodiscard]] std::vector<std::string> keys() const;

  // Only finite numbers are accepted; an integer is a number too.
  [[nodiscard]] double number(std::string_view key, Range range = {}) const;
  [[nodiscard]] double number_or(std::string_view key, double fallback, Range range = {}) const;
  // Integral floats such as 1e6 count as integers.
  [[nodiscard]] std::int64_t integer(std::string_view key, Range range = {}) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t fallback,
                                        Range range = {}) const;
  [[nodiscard]] bool boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view fallback) const;
  // The value must be one of `allowed`; the message lists them.
  [[nodiscard]] std::string choice(std::string_view key,
                                   std::initializer_list<std::string_view> allowed) const;
  [[nodiscard]] std::string choice_or(std::string_view key,
                                      std::initializer_list<std::string_view> allowed,
                                      std::string_view fallback) const;
  // The value must be the name of an enumerator; the message lists the names there are.
  template <NamedEnum E>
  [[nodiscard]] E enumerator_or(std::string_view key, E fallback) const {
    return parse_enum<E>(word_or(key, enum_words<E>(), name(fallback)));
  }
  // The value must be a positive integer or "inf".
  [[nodiscard]] Length length(std::string_view key) const;
  [[nodiscard]] Length length_or(std::string_view key, Length fallback) const;
  [[nodiscard]] std::vector<Length> lengths(std::string_view key) const;

  [[nodiscard]] std::vector<double> numbers(std::string_view key, Range range = {}) const;
  // Log-weights: numbers, or -inf for a weight of 0.
  [[nodiscard]] std::vector<double> log_weights(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key, Range range = {}) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  [[nodiscard]] Vector vector(std::string_view key) const;  // [x, ..]
  [[nodiscard]] Matrix matrix(std::string_view key) const;  // [[x, ..], ..], rows of one length
  // Whether the value is a list of such matrices, [[[x, ..], ..], ..], and the list.
  [[nodiscard]] bool is_matrix_list(std::string_view key) const;
  [[nodiscard]] std::vector<Matrix> matrices(std::string_view key) const;

  // A file name is relative to the folder of the configuration file that mentions it.
  [[nodiscard]] std::filesystem::path file(std::string_view key) const;

  // Both give a nested table; `table` fails if it is missing, `find_table` does not.
  [[nodiscard]] Table table(std::string_view key) const;
  [[nodiscard]] std::optional<Table> find_table(std::string_view key) const;
  // A missing table counts as an empty one, so that every getter below it gives its default.
  [[nodiscard]] Table table_or_empty(std::string_view key) const;
  // [[key]] must be an array of at least one table.
  [[nodiscard]] std::vector<Table> tables(std::string_view key) const;

  // Keys that another verb reads, so that one file serves several: they are not unknown, whatever
  // they hold. allow_all() is for the whole table.
  void allow(std::initializer_list<std::string_view> keys) const;
  void allow_all() const;

  // This is the raw value. A missing key is an error.
  [[nodiscard]] const ConfigValue& value(std::string_view key) const;

  // throw ConfigError("file:line: path.key is VALUE, expected ...").
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;
  // throw ConfigError("file:line: path.key: problem"), for what is wrong beyond one value.
  [[noreturn]] void fail_because(std::string_view key, std::string_view problem) const;
  // throw ConfigError("file:line: path: problem"), for a table that is wrong as a whole.
  [[noreturn]] void fail_table(std::string_view problem) const;

 private:
  friend class Config;
  Table(std::shared_ptr<ConfigTree> tree, ConfigValue* node, std::string path);

  [[nodiscard]] ConfigValue* find(std::string_view key) const;  // user's value or nullptr
  [[nodiscard]] ConfigValue& get(std::string_view key) const;   // marks used, or fails
  [[nodiscard]] std::string word(std::string_view key,
                                 const std::vector<std::string>& allowed) const;
  [[nodiscard]] std::string word_or(std::string_view key, const std::vector<std::string>& allowed,
                                    std::string_view fallback) const;
  void keep_default(std::string_view key, decltype(ConfigValue::data) data) const;

  std::shared_ptr<ConfigTree> tree_;
  ConfigValue* node_;
  std::string path_;
};

class Config {
 public:
  Config();  // no file: only what set() gives
  static Config load(const std::filesystem::path& file);
  // `folder` is where relative file names start.
  static Config parse(std::string_view text, const std::string& name,
                      const std::filesystem::path& folder = {});

  // "key.path=value"; the value is TOML, or a bare word taken as a string. A number in the path is
  // an index into an array: measure.parts.0.dim=3 or measure.parts[0].dim=3. File names in values are
  // relative to the working directory. `door` is the option as the user wrote it, "--set .." unless
  // given. A key that was set before by another option is a ConfigError that names both.
  void set(std::string_view assignment, std::string_view door = {});

  [[nodiscard]] Table root() const;

  // ConfigError naming the first key that no verb knows, with the key it was probably meant to be
  // (config/keys.h). Call it before reading, so that a slip is named before its consequences.
  void check_known() const;

  // ConfigError naming the first key nobody read. The tables that verbs share (measure,
  // attention, query, reference, prompt, sweep, task, model, train, flow) may stay unread as a whole, so
  // that one file serves several verbs.
  void check_all_used() const;

  // The text holds everything in force, overrides and defaults included. Call it after reading.
  [[nodiscard]] std::string resolved_toml() const;

 private:
  std::shared_ptr<ConfigTree> tree_;
};

}  // namespace esscher
