#include "esscher/task/power_matrix.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"

namespace esscher {

Matrix power_matrix(Index rows, Index cols, double rho) {
  if (!(std::abs(rho) <= 1)) {
    throw_argument("power_matrix", "rho", to_text(rho), "a number in [-1, 1]");
  }
  Matrix out(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) out(i, j) = std::pow(rho, std::abs(i - j));
  }
  return out;
}

}  // namespace esscher
