// rho^|i-j|  [rows,cols], rho in [-1, 1]: the matrix of Kac, Murdock and Szego where it is square.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

Matrix power_matrix(Index rows, Index cols, double rho);

}  // namespace esscher
