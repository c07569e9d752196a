#include "esscher/heads/rotary.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {
namespace {

Index dims_of(const Rotary& rotary, Index dk) { return rotary.dims == 0 ? dk : rotary.dims; }

void turn(const Rotary& rotary, double position, Eigen::Ref<Eigen::RowVectorXd> row) {
  const Index dims = dims_of(rotary, row.size());
  for (Index j = 0; j < dims / 2; ++j) {
    const double power = -2.0 * static_cast<double>(j) / static_cast<double>(dims);
    const double angle = position * std::pow(rotary.base, power);
    const bool halves = rotary.pairs == RotaryPairs::halves;
    const Index x = halves ? j : 2 * j;
    const Index y = halves ? j + dims / 2 : 2 * j + 1;
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const double old = row(x);
    row(x) = c * old - s * row(y);
    row(y) = s * old + c * row(y);
  }
}

}  // namespace

void check_rotary(std::string_view where, const Rotary& rotary, Index dk) {
  if (!(rotary.base > 0 && std::isfinite(rotary.base))) {
    throw_argument(where, "rotary base", to_text(rotary.base), "a positive number");
  }
  const Index dims = dims_of(rotary, dk);
  if (dims < 2 || dims % 2 != 0 || dims > dk) {
    throw_argument(where, "rotary dims", std::to_string(dims),
                   "an even number from 2 to the width of the keys, " + std::to_string(dk));
  }
}

Matrix rotated(const Rotary& rotary, const MatrixView& rows, Index first_key, bool backwards) {
  Matrix out = rows;
  for (Index i = 0; i < out.rows(); ++i) {
    const auto position = static_cast<double>(rotary.first + first_key + i);
    turn(rotary, backwards ? -position : position, out.row(i));
  }
  return out;
}

Matrix turned_back(const Rotary& rotary, const VectorView& a, const std::vector<Index>& keys) {
  Matrix out(static_cast<Index>(keys.size()), a.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto row = static_cast<Index>(i);
    out.row(row) = a.transpose();
    turn(rotary, -static_cast<double>(rotary.first + keys[i]), out.row(row));
  }
  return out;
}

}  // namespace esscher
