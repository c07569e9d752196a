// Rows of results (base/columns.h) as Python sees them. Numbers stay numbers: infinity is inf, NaN is
// nan, what is absent is None, an array of doubles is a NumPy array.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <span>
#include <vector>

#include "esscher/base/columns.h"

namespace esscher::python {

pybind11::object value_out(const Value& value);
// One row as {column: value}, and all of them as a list of such dictionaries.
pybind11::dict dict_of(std::span<const Column> columns, const Record& record);
pybind11::list list_of(const RecordTable& table);
// All rows as {column: NumPy array}, where every value of the column is a number or a truth, and
// {column: list} otherwise.
pybind11::dict arrays_of(const RecordTable& table);

template <HasColumns Row>
pybind11::dict dict_of(const Row& row) {
  return dict_of(columns_of<Row>(), record_of(row));
}
template <HasColumns Row>
pybind11::list list_of(const std::vector<Row>& rows) {
  return list_of(table_of(std::span<const Row>(rows)));
}
template <HasColumns Row>
pybind11::dict arrays_of(const std::vector<Row>& rows) {
  return arrays_of(table_of(std::span<const Row>(rows)));
}

}  // namespace esscher::python
