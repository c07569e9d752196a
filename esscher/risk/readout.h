// What a prediction reads of one attention head.
//
//   a = U (x, 0),   prediction = r' zbar,   r = last row of V,
//   zbar = mean of the prompt tilted by a
//
// Nothing else of V acts, so a risk is a function of (U, r). Several heads add their predictions.
#pragma once

#include <cmath>

#include "esscher/base/linalg.h"

namespace esscher {

struct Readout {
  Matrix U;  // [D,D], D = d + 1
  Vector r;  // [D]

  static Readout zero(Index D) { return {Matrix::Zero(D, D), Vector::Zero(D)}; }
  [[nodiscard]] Index dim() const { return r.size(); }
  [[nodiscard]] double norm() const { return std::sqrt(U.squaredNorm() + r.squaredNorm()); }

  Readout& operator+=(const Readout& other) {
    U += other.U;
    r += other.r;
    return *this;
  }
  Readout& operator*=(double factor) {
    U *= factor;
    r *= factor;
    return *this;
  }
};

}  // namespace esscher
