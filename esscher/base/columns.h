// Rows of results. A row type declares its columns once: name, field, unit and meaning. The store,
// CSV, JSON, npz, Python and docs/reference/columns.md read that one declaration.
//
//   struct PointRow {
//     std::int64_t L = 0;
//     Metric metric = Metric::output;
//     double value = 0;
//
//     template <class Row, class Column>
//     static void columns(Row& row, Column&& column) {
//       column("L", row.L, "tokens", "length of the prompt");
//       column("metric", row.metric, "", "what is compared with its limit");
//       column("value", row.value, "", "mean-square error D(L)");
//     }
//   };
//
// A field is a bool, an integer, a double (infinity and NaN included), a Length, a text, an enum
// with names (base/enum_names.h), an array of doubles (std::vector, Vector, Matrix), a list of rows
// of another row type, or an optional of these, which may be absent.
//
// Code that does not know the row type sees a Record: the values in the order of the columns.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/length.h"
#include "esscher/base/linalg.h"

namespace esscher {

enum class ColumnType { boolean, integer, real, text, length, array, table };

constexpr auto enum_names(ColumnType) {
  return EnumNames<ColumnType, 7>{"column type",
                                  {{{ColumnType::boolean, "boolean"},
                                    {ColumnType::integer, "integer"},
                                    {ColumnType::real, "real"},
                                    {ColumnType::text, "text"},
                                    {ColumnType::length, "length"},
                                    {ColumnType::array, "array"},
                                    {ColumnType::table, "table"}}}};
}

struct Column {
  std::string name;
  ColumnType type = ColumnType::real;
  std::string unit;     // "" for a pure number or a word
  std::string meaning;  // one phrase
  bool optional = false;
  std::vector<Column> parts;  // columns of a table

  friend bool operator==(const Column&, const Column&) = default;
};

// Doubles with a shape: [n] or [rows,cols], row by row.
struct NumberArray {
  std::vector<Index> shape;
  std::vector<double> values;
  friend bool operator==(const NumberArray&, const NumberArray&) = default;
};

struct RecordTable;

// The value of one column in one row; monostate where it is absent.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Length,
                           NumberArray, RecordTable>;
using Record = std::vector<Value>;

// Rows of a row type as records.
struct RecordTable {
  std::vector<Column> columns;
  std::vector<Record> rows;
  friend bool operator==(const RecordTable&, const RecordTable&) = default;
};

// A row type with a declaration of its columns.
template <class Row>
concept HasColumns = requires(Row& row) {
  Row::columns(row, [](const char*, auto&, const char*, const char*) {});
};

template <HasColumns Row>
std::vector<Column> columns_of();
template <HasColumns Row>
Record record_of(const Row& row);
template <HasColumns Row>
RecordTable table_of(std::span<const Row> rows);

// Inverse of record_of. Throws FileError naming `where` and the column if a value is missing or has
// another type. `columns` names the values of the record, in any order; columns that the row type
// does not have are passed over.
template <HasColumns Row>
Row row_of(std::string_view where, std::span<const Column> columns, const Record& record);
template <HasColumns Row>
std::vector<Row> rows_of(std::string_view where, const RecordTable& table);

namespace columns_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct IsRows : std::false_type {};
template <HasColumns Row>
struct IsRows<std::vector<Row>> : std::true_type {};

// The columns of the rows in a field; none if it holds no rows.
template <class T>
std::vector<Column> parts_of() {
  if constexpr (IsOptional<T>::value) {
    return parts_of<typename T::value_type>();
  } else if constexpr (IsRows<T>::value) {
    return columns_of<typename T::value_type>();
  } else {
    return {};
  }
}

template <class T>
concept IsArray =
    std::same_as<T, std::vector<double>> || std::same_as<T, Vector> || std::same_as<T, Matrix>;

template <class T>
constexpr ColumnType type_of() {
  if constexpr (IsOptional<T>::value) {
    return type_of<typename T::value_type>();
  } else if constexpr (std::same_as<T, bool>) {
    return ColumnType::boolean;
  } else if constexpr (std::integral<T>) {
    return ColumnType::integer;
  } else if constexpr (std::same_as<T, double>) {
    return ColumnType::real;
  } else if constexpr (std::same_as<T, std::string> || NamedEnum<T>) {
    return ColumnType::text;
  } else if constexpr (std::same_as<T, Length>) {
    return ColumnType::length;
  } else if constexpr (IsArray<T>) {
    return ColumnType::array;
  } else {
    static_assert(IsRows<T>::value, "a field must have one of the types of base/columns.h");
    return ColumnType::table;
  }
}

NumberArray array_value(const std::vector<double>& x);
NumberArray array_value(const Vector& x);
NumberArray array_value(const Matrix& x);
// False if the shape has another rank.
bool read_array(const NumberArray& from, std::vector<double>& to);
bool read_array(const NumberArray& from, Vector& to);
bool read_array(const NumberArray& from, Matrix& to);

template <class T>
Value value_of(const T& field) {
  if constexpr (IsOptional<T>::value) {
    return field ? value_of(*field) : Value();
  } else if constexpr (std::same_as<T, bool> || std::same_as<T, double> ||
                       std::same_as<T, std::string> || std::same_as<T, Length>) {
    return field;
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(field);
  } else if constexpr (NamedEnum<T>) {
    return std::string(name(field));
  } else if constexpr (IsArray<T>) {
    return array_value(field);
  } else {
    return table_of(std::span(std::as_const(field)));
  }
}

// Throws FileError: `where`: column "name" holds .., expected ..
[[noreturn]] void throw_column(std::string_view where, std::string_view column,
                               const std::string& problem);

template <class T>
void read_value(std::string_view where, const char* column, const Value* value, T& field) {
  if constexpr (IsOptional<T>::value) {
    if (value == nullptr || std::holds_alternative<std::monostate>(*value)) {
      field.reset();
    } else {
      if constexpr (std::same_as<typename T::value_type, Length>) {
        read_value(where, column, value, field.emplace(Length::infinity()));
      } else {
        read_value(where, column, value, field.emplace());
      }
    }
    return;
  } else {
    const auto fail = [&](const char* problem) { throw_column(where, column, problem); };
    if (value == nullptr || std::holds_alternative<std::monostate>(*value)) fail("is missing");
    constexpr bool kDirect = std::same_as<T, bool> || std::same_as<T, double> ||
                             std::same_as<T, std::string> || std::same_as<T, Length>;
    if constexpr (kDirect) {
      const T* x = std::get_if<T>(value);
      if (x == nullptr) fail("has another type than its declaration");
      field = *x;
    } else if constexpr (std::integral<T>) {
      const std::int64_t* x = std::get_if<std::int64_t>(value);
      if (x == nullptr || !std::in_range<T>(*x)) fail("is not an integer of its type");
      field = static_cast<T>(*x);
    } else if constexpr (NamedEnum<T>) {
      const std::string* x = std::get_if<std::string>(value);
      if (x == nullptr) fail("is not a word");
      try {
        field = parse_enum<T>(*x);
      } catch (const ArgumentError& error) {
        throw_column(where, column, error.what());
      }
    } else if constexpr (IsArray<T>) {
      const NumberArray* x = std::get_if<NumberArray>(value);
      if (x == nullptr || !read_array(*x, field)) fail("is not an array of its rank");
    } else {
      const RecordTable* x = std::get_if<RecordTable>(value);
      if (x == nullptr) fail("is not a list of rows");
      field = rows_of<typename T::value_type>(std::string(where) + ", " + column, *x);
    }
  }
}

}  // namespace columns_detail

template <HasColumns Row>
std::vector<Column> columns_of() {
  std::vector<Column> out;
  Row row{};
  Row::columns(row, [&](const char* name, auto& field, const char* unit, const char* meaning) {
    using Field = std::remove_cvref_t<decltype(field)>;
    out.push_back({name, columns_detail::type_of<Field>(), unit, meaning,
                   columns_detail::IsOptional<Field>::value, columns_detail::parts_of<Field>()});
  });
  return out;
}

template <HasColumns Row>
Record record_of(const Row& row) {
  Record out;
  Row::columns(row, [&](const char*, const auto& field, const char*, const char*) {
    out.push_back(columns_detail::value_of(field));
  });
  return out;
}

template <HasColumns Row>
RecordTable table_of(std::span<const Row> rows) {
  RecordTable out{columns_of<Row>(), {}};
  for (const Row& row : rows) out.rows.push_back(record_of(row));
  return out;
}

template <HasColumns Row>
Row row_of(std::string_view where, std::span<const Column> columns, const Record& record) {
  Row row{};
  Row::columns(row, [&](const char* name, auto& field, const char*, const char*) {
    const Value* found = nullptr;
    for (std::size_t i = 0; i < columns.size() && i < record.size(); ++i) {
      if (columns[i].name == name) found = &record[i];
    }
    columns_detail::read_value(where, name, found, field);
  });
  return row;
}

template <HasColumns Row>
std::vector<Row> rows_of(std::string_view where, const RecordTable& table) {
  std::vector<Row> out;
  out.reserve(table.rows.size());
  for (const Record& record : table.rows) out.push_back(row_of<Row>(where, table.columns, record));
  return out;
}

}  // namespace esscher
