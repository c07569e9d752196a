#include "esscher/base/columns.h"

namespace esscher::columns_detail {

NumberArray array_value(const std::vector<double>& x) {
  return {{static_cast<Index>(x.size())}, x};
}

NumberArray array_value(const Vector& x) {
  return {{x.size()}, std::vector<double>(x.begin(), x.end())};
}

NumberArray array_value(const Matrix& x) {
  return {{x.rows(), x.cols()}, std::vector<double>(x.data(), x.data() + x.size())};
}

bool read_array(const NumberArray& from, std::vector<double>& to) {
  to = from.values;
  return from.shape.size() == 1;
}

bool read_array(const NumberArray& from, Vector& to) {
  if (from.shape.size() != 1) return false;
  to = Vector::Map(from.values.data(), from.shape[0]);
  return true;
}

bool read_array(const NumberArray& from, Matrix& to) {
  // An empty list of rows does not show how wide its rows are.
  if (from.values.empty()) return to.resize(from.shape.empty() ? 0 : from.shape[0], 0), true;
  if (from.shape.size() != 2) return false;
  to = Matrix::Map(from.values.data(), from.shape[0], from.shape[1]);
  return true;
}

void throw_column(std::string_view where, std::string_view column, const std::string& problem) {
  throw FileError(std::string(where) + ": column \"" + std::string(column) + "\" " + problem);
}

}  // namespace esscher::columns_detail
