#include "rows.h"

#include <algorithm>
#include <limits>
#include <string>
#include <variant>

namespace esscher::python {
namespace {

namespace py = pybind11;

struct ValueOut {
  py::object operator()(std::monostate) const { return py::none(); }
  py::object operator()(bool x) const { return py::bool_(x); }
  py::object operator()(std::int64_t x) const { return py::int_(x); }
  py::object operator()(double x) const { return py::float_(x); }
  py::object operator()(const std::string& x) const { return py::str(x); }
  py::object operator()(const Length& x) const {
    if (x.is_infinite()) return py::float_(std::numeric_limits<double>::infinity());
    return py::int_(x.count());
  }
  py::object operator()(const NumberArray& x) const {
    const std::vector<py::ssize_t> shape(x.shape.begin(), x.shape.end());
    py::array_t<double> array(shape);
    std::copy(x.values.begin(), x.values.end(), array.mutable_data());
    return array;
  }
  py::object operator()(const RecordTable& x) const { return list_of(x); }
};

// True where NumPy has a type for the whole column.
bool is_plain(const RecordTable& table, std::size_t column) {
  const Column& c = table.columns[column];
  if (c.type != ColumnType::boolean && c.type != ColumnType::integer && c.type != ColumnType::real)
    return false;
  return std::none_of(table.rows.begin(), table.rows.end(), [&](const Record& row) {
    return std::holds_alternative<std::monostate>(row[column]);
  });
}

}  // namespace

py::object value_out(const Value& value) { return std::visit(ValueOut{}, value); }

py::dict dict_of(std::span<const Column> columns, const Record& record) {
  py::dict dict;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    dict[py::str(columns[i].name)] = value_out(record[i]);
  }
  return dict;
}

py::list list_of(const RecordTable& table) {
  py::list list;
  for (const Record& row : table.rows) list.append(dict_of(table.columns, row));
  return list;
}

py::dict arrays_of(const RecordTable& table) {
  py::dict dict;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    py::list list;
    for (const Record& row : table.rows) list.append(value_out(row[i]));
    dict[py::str(table.columns[i].name)] = is_plain(table, i) ? py::array(list) : py::object(list);
  }
  return dict;
}

}  // namespace esscher::python
