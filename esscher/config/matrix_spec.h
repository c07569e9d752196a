// Matrices in configuration files.
//
//   0.5                                         0.5 I
//   [[1, 2], [3, 4]]                            these rows
//   { kind = "identity" }                       I (rectangular where the place needs it)
//   { kind = "diagonal", values = [1, 2] }
//   { kind = "kcm", rho = 0.5 }                 rho^|i-j|
//   { kind = "dense", rows = [[1, 2], [3, 4]] }
//   { kind = "random", seed = 1 }               iid N(0,1); as a covariance G G'/d of such a G
//   { kind = "file", path = "U.npy" }           .npy .csv .npz#name .safetensors#tensor
//
// Every kind also takes `scale` (a factor), `operator_norm` (rescales so that the largest singular
// value is this) and, where the place does not fix it, `shape = [rows, cols]`.
#pragma once

#include <string_view>

#include "esscher/base/linalg.h"
#include "esscher/config/table.h"

namespace esscher {

inline constexpr Index kAnySize = -1;

// table.key as a matrix [rows,cols]; kAnySize accepts what the spec says. ConfigError otherwise.
Matrix read_matrix_spec(const Table& table, std::string_view key, Index rows = kAnySize,
                        Index cols = kAnySize);

// table.key as a covariance [dim,dim]: symmetric and positive semidefinite.
Matrix read_cov_spec(const Table& table, std::string_view key, Index dim = kAnySize);

}  // namespace esscher
