// Several heads on one white Gaussian prompt xi_l ~ N(0, I_k), exact in law. Head h tilts by
// tilts.col(h) and reads the functional functionals.col(h). Only the coordinates in the span of
// these 2H directions are drawn, min(2H, k) normals per token. Given them, the rest of the answer
// is Gaussian, jointly over the heads. Tokens N(m, F F') are z = m + F xi; for them tilts = F'A,
// functionals = F'R, and the answers are m + F means and F products.
#pragma once

#include <cstdint>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

struct HeadsDraw {
  Matrix means;     // [k,H] column h: sum omega_h xi
  Matrix products;  // [k,H] column h: sum omega_h (xi - mean_h)(xi - mean_h)' r_h
};

// tilts, functionals [k,H], L >= 1.
HeadsDraw draw_heads(const MatrixView& tilts, const MatrixView& functionals, std::int64_t L,
                     const Stream& stream);

}  // namespace esscher
