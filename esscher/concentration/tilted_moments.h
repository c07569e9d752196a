// Moments of Assumption 3.3 ([BB26] of docs/references.md): with x drawn from the tokens tilted by
// a = U z, and z from the law of queries,
//
//   E |x|^p |z|^q,  p, q in {0, 4, 8},   and   E |T[mu](z)|^4
//
// For Gaussian tokens and queries (x, z) is Gaussian and all of them are exact: with N = s A + t B,
//
//   log E e^{y'Ny} = sum_k tr((2 N S)^k) / 2k + mean' N (2 S N)^{k-1} mean,   y ~ N(mean, S)
//
// is expanded in s and t. Otherwise queries are given or drawn, E|x|^p at a query is exact for
// Gaussian tokens, and else estimated from weighted tokens of its own.
#pragma once

#include <cstdint>
#include <string>

#include "esscher/concentration/problem.h"

namespace esscher {

// E (y'Ay)^i (y'By)^j [i+1 <= rows, j+1 <= cols] for y ~ N(mean, S); A, B, S [n,n] symmetric.
Matrix form_moments(const VectorView& mean, const MatrixView& S, const MatrixView& A,
                    const MatrixView& B, Index rows, Index cols);

struct TiltedMoments {
  Matrix value;              // [3,3]: row p/4, column q/4
  Matrix std_error;          // [3,3]; 0 where nothing was sampled
  double output4 = 0;        // E |T[mu](z)|^4
  double output4_error = 0;  // its standard error
  bool finite = true;        // false: Lambda(Uz) is infinite at some queries
  std::string how = {};      // how they were found, or why they are infinite
};

// `queries` are drawn from problem.nu, or taken from its points.
TiltedMoments tilted_moments(const Problem& problem, Index queries, std::uint64_t seed);

}  // namespace esscher
