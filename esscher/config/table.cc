#include "esscher/config/table.h"

#include <algorithm>
#include <cmath>

#include "esscher/base/error.h"

namespace esscher {

namespace {

using Words = std::vector<std::string>;

std::string quote_list(const Words& words) {
  std::string out = "one of";
  for (const std::string& word : words) {
    out.append(out.size() > 6 ? ", \"" : " \"").append(word).append("\"");
  }
  return out;
}

void mark_used(ConfigValue& value) {
  value.used = true;
  if (auto* map = value.map()) {
    for (auto& [key, item] : *map) mark_used(item);
  }
  if (auto* array = value.array()) {
    for (ConfigValue& item : *array) mark_used(item);
  }
}

std::optional<double> to_number(const ConfigValue& value) {
  if (const auto* x = std::get_if<double>(&value.data)) return *x;
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<std::int64_t> to_integer(const ConfigValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) return *i;
  if (const auto* x = std::get_if<double>(&value.data)) {
    if (std::abs(*x) <= 9007199254740992.0 && std::trunc(*x) == *x) {
      return static_cast<std::int64_t>(*x);
    }
  }
  return std::nullopt;
}

std::optional<Length> to_length(const ConfigValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) {
    if (*text == "inf") return Length::infinity();
    return std::nullopt;
  }
  if (const auto* x = std::get_if<double>(&value.data); x && std::isinf(*x) && *x > 0) {
    return Length::infinity();
  }
  const auto n = to_integer(value);
  if (n && *n > 0) return Length(*n);
  return std::nullopt;
}

[[noreturn]] void fail_value(const std::string& path, const ConfigValue& value,
                             std::string_view expected) {
  throw ConfigError(value.where() + ": " + path + " is " + value.text() + ", expected " +
                    std::string(expected));
}

double checked_number(const std::string& path, const ConfigValue& value, Range range) {
  const auto x = to_number(value);
  if (!x || !std::isfinite(*x) || !range.contains(*x)) {
    fail_value(path, value, "a number" + range.text());
  }
  return *x;
}

std::int64_t checked_integer(const std::string& path, const ConfigValue& value, Range range) {
  const auto n = to_integer(value);
  if (!n || !range.contains(static_cast<double>(*n))) {
    fail_value(path, value, "an integer" + range.text());
  }
  return *n;
}

std::string item_path(const std::string& path, std::size_t i) {
  return path + "[" + std::to_string(i) + "]";
}

// Applies read(path of item, item) to every item of an array.
template <class Read>
auto read_array(const std::string& path, const ConfigValue& value, std::string_view expected,
                Read read) {
  const ConfigValue::Array* array = value.array();
  if (array == nullptr) fail_value(path, value, expected);
  std::vector<decltype(read(path, value))> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    out.push_back(read(item_path(path, i), (*array)[i]));
  }
  return out;
}

// [[x, ..], ..] with rows of one length.
Matrix read_rows(const std::string& path, const ConfigValue& value) {
  const auto rows = read_array(
      path, value, "an array of rows", [](const std::string& at, const ConfigValue& row) {
        return read_array(at, row, "a row of numbers",
                          [](const std::string& place, const ConfigValue& item) {
                            return checked_number(place, item, {});
                          });
      });
  const std::size_t cols = rows.empty() ? 0 : rows.front().size();
  Matrix out(static_cast<Index>(rows.size()), static_cast<Index>(cols));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != cols) {
      fail_value(item_path(path, i), (*value.array())[i],
                 std::to_string(cols) + " numbers as in the first row");
    }
    for (std::size_t j = 0; j < cols; ++j) {
      out(static_cast<Index>(i), static_cast<Index>(j)) = rows[i][j];
    }
  }
  return out;
}

}  // namespace

bool Range::contains(double x) const {
  return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
}

std::string Range::text() const {
  const bool below = std::isfinite(low);
  const bool above = std::isfinite(high);
  if (below && above) {
    return std::string(" in ") + (low_open ? "(" : "[") + to_text(low) + ", " + to_text(high) +
           (high_open ? ")" : "]");
  }
  if (below) return (low_open ? " > " : " >= ") + to_text(low);
  if (above) return (high_open ? " < " : " <= ") + to_text(high);
  return "";
}

Table::Table(std::shared_ptr<ConfigTree> tree, ConfigValue* node, std::string path)
    : tree_(std::move(tree)), node_(node), path_(std::move(path)) {}

std::string Table::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

ConfigValue* Table::find(std::string_view key) const {
  ConfigValue::Map& map = *node_->map();
  const auto found = map.find(std::string(key));
  if (found == map.end() || found->second.is_default) return nullptr;
  return &found->second;
}

bool Table::has(std::string_view key) const { return find(key) != nullptr; }

std::vector<std::string> Table::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : *node_->map()) {
    if (!value.is_default) out.push_back(key);
  }
  return out;
}

ConfigValue& Table::get(std::string_view key) const {
  ConfigValue* value = find(key);
  if (value == nullptr) {
    const std::string where = node_->source ? node_->where() + ": " : "configuration: ";
    throw ConfigError(where + path(key) + " is missing");
  }
  value->used = true;
  return *value;
}

void Table::keep_default(std::string_view key, decltype(ConfigValue::data) data) const {
  ConfigValue value;
  value.data = std::move(data);
  value.used = value.is_default = true;
  node_->map()->insert_or_assign(std::string(key), std::move(value));
}

double Table::number(std::string_view key, Range range) const {
  return checked_number(path(key), get(key), range);
}

double Table::number_or(std::string_view key, double fallback, Range range) const {
  if (has(key)) return number(key, range);
  keep_default(key, fallback);
  return fallback;
}

std::int64_t Table::integer(std::string_view key, Range range) const {
  return checked_integer(path(key), get(key), range);
}

std::int64_t Table::integer_or(std::string_view key, std::int64_t fallback, Range range) const {
  if (has(key)) return integer(key, range);
  keep_default(key, fallback);
  return fallback;
}

bool Table::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) {
    keep_default(key, fallback);
    return fallback;
  }
  const ConfigValue& value = get(key);
  if (const bool* x = std::get_if<bool>(&value.data)) return *x;
  fail_value(path(key), value, "true or false");
}

std::string Table::text(std::string_view key) const {
  const ConfigValue& value = get(key);
  if (const auto* x = std::get_if<std::string>(&value.data)) return *x;
  fail_value(path(key), value, "a string");
}

std::string Table::text_or(std::string_view key, std::string_view fallback) const {
  if (has(key)) return text(key);
  keep_default(key, std::string(fallback));
  return std::string(fallback);
}

std::string Table::word(std::string_view key, const Words& allowed) const {
  const ConfigValue& value = get(key);
  const auto* x = std::get_if<std::string>(&value.data);
  if (x != nullptr && std::find(allowed.begin(), allowed.end(), *x) != allowed.end()) return *x;
  fail_value(path(key), value, quote_list(allowed));
}

std::string Table::word_or(std::string_view key, const Words& allowed,
                           std::string_view fallback) const {
  if (has(key)) return word(key, allowed);
  keep_default(key, std::string(fallback));
  return std::string(fallback);
}

std::string Table::choice(std::string_view key,
                          std::initializer_list<std::string_view> allowed) const {
  return word(key, Words(allowed.begin(), allowed.end()));
}

std::string Table::choice_or(std::string_view key, std::initializer_list<std::string_view> allowed,
                             std::string_view fallback) const {
  return word_or(key, Words(allowed.begin(), allowed.end()), fallback);
}

void Table::allow(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (ConfigValue* value = find(key)) mark_used(*value);
  }
}

void Table::allow_all() const { mark_used(*node_); }

Length Table::length(std::string_view key) const {
  const ConfigValue& value = get(key);
  const auto length = to_length(value);
  if (!length) fail_value(path(key), value, "a positive integer or \"inf\"");
  return *length;
}

Length Table::length_or(std::string_view key, Length fallback) const {
  if (has(key)) return length(key);
  if (fallback.is_infinite()) {
    keep_default(key, std::string("inf"));
  } else {
    keep_default(key, fallback.count());
  }
  return fallback;
}

std::vector<Length> Table::lengths(std::string_view key) const {
  return read_array(path(key), get(key), "an array of positive integers or \"inf\"",
                    [](const std::string& at, const ConfigValue& item) {
                      const auto length = to_length(item);
                      if (!length) fail_value(at, item, "a positive integer or \"inf\"");
                      return *length;
                    });
}

std::vector<double> Table::numbers(std::string_view key, Range range) const {
  return read_array(path(key), get(key), "an array of numbers",
                    [&](const std::string& at, const ConfigValue& item) {
                      return checked_number(at, item, range);
                    });
}

std::vector<double> Table::log_weights(std::string_view key) const {
  return read_array(path(key), get(key), "an array of numbers",
                    [](const std::string& at, const ConfigValue& item) {
                      const auto x = to_number(item);
                      if (!x || std::isnan(*x) || *x == std::numeric_limits<double>::infinity()) {
                        fail_value(at, item, "a number or -inf");
                      }
                      return *x;
                    });
}

std::vector<std::int64_t> Table::integers(std::string_view key, Range range) const {
  return read_array(path(key), get(key), "an array of integers",
                    [&](const std::string& at, const ConfigValue& item) {
                      return checked_integer(at, item, range);
                    });
}

std::vector<std::string> Table::texts(std::string_view key) const {
  return read_array(path(key), get(key), "an array of strings in quotes, [\"one\", \"two\"]",
                    [](const std::string& at, const ConfigValue& item) {
                      const auto* x = std::get_if<std::string>(&item.data);
                      if (x == nullptr) fail_value(at, item, "a string");
                      return *x;
                    });
}

Vector Table::vector(std::string_view key) const {
  const std::vector<double> values = numbers(key);
  return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size()));
}

Matrix Table::matrix(std::string_view key) const { return read_rows(path(key), get(key)); }

bool Table::is_matrix_list(std::string_view key) const {
  const ConfigValue* value = find(key);
  const ConfigValue::Array* list = value == nullptr ? nullptr : value->array();
  if (list == nullptr || list->empty()) return false;
  const ConfigValue::Array* first = list->front().array();
  return first != nullptr && !first->empty() && first->front().array() != nullptr;
}

std::vector<Matrix> Table::matrices(std::string_view key) const {
  return read_array(path(key), get(key), "an array of matrices", read_rows);
}

std::filesystem::path Table::file(std::string_view key) const {
  const std::filesystem::path name = text(key);
  if (name.empty()) fail(key, "a file name");
  // A name given by --set is relative to where the user stands.
  return get(key).source == tree_->file_source ? tree_->folder / name : name;
}

Table Table::table(std::string_view key) const {
  ConfigValue& value = get(key);
  if (!value.map()) fail_value(path(key), value, "a table");
  return {tree_, &value, path(key)};
}

std::optional<Table> Table::find_table(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return table(key);
}

Table Table::table_or_empty(std::string_view key) const {
  if (has(key)) return table(key);
  keep_default(key, ConfigValue::Map{});
  return {tree_, &node_->map()->at(std::string(key)), path(key)};
}

std::vector<Table> Table::tables(std::string_view key) const {
  ConfigValue& value = get(key);
  ConfigValue::Array* array = value.array();
  if (array == nullptr || array->empty()) fail_value(path(key), value, "an array of tables");
  std::vector<Table> out;
  for (std::size_t i = 0; i < array->size(); ++i) {
    ConfigValue& item = (*array)[i];
    if (!item.map()) fail_value(item_path(path(key), i), item, "a table");
    item.used = true;
    out.push_back({tree_, &item, item_path(path(key), i)});
  }
  return out;
}

const ConfigValue& Table::value(std::string_view key) const { return get(key); }

void Table::fail(std::string_view key, std::string_view expected) const {
  fail_value(path(key), get(key), expected);
}

void Table::fail_because(std::string_view key, std::string_view problem) const {
  const ConfigValue* value = find(key);
  const ConfigValue& place = value != nullptr ? *value : *node_;
  const std::string where = place.source ? place.where() + ": " : "";
  throw ConfigError(where + path(key) + ": " + std::string(problem));
}

void Table::fail_table(std::string_view problem) const {
  const std::string where = node_->source ? node_->where() + ": " : "";
  throw ConfigError(where + (path_.empty() ? "configuration" : path_) + ": " +
                    std::string(problem));
}

}  // namespace esscher
