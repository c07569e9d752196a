// Eigenvalues and eigenvectors of a symmetric matrix: A = vectors diag(values) vectors'.
//
// This is a function because every file that compiles Eigen's solver itself pays six seconds for
// it.
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

struct Eigensystem {
  Vector values;   // [d], ascending
  Matrix vectors;  // [d,d], one per column
};
Eigensystem eigensystem(const MatrixView& symmetric);

}  // namespace esscher
