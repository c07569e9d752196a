#include "esscher/base/linalg.h"

#include <cmath>
#include <string>

#include "esscher/base/eigensystem.h"
#include "esscher/base/error.h"
#include "esscher/base/number_text.h"

namespace esscher {
namespace {

Eigensystem checked_psd(std::string_view where, std::string_view argument, const MatrixView& G) {
  check_dimension(where, std::string(argument) + " (columns)", G.cols(), G.rows());
  check_finite(where, argument, G);
  const double largest = G.size() == 0 ? 0.0 : G.cwiseAbs().maxCoeff();
  const double asymmetry = G.size() == 0 ? 0.0 : (G - G.transpose()).cwiseAbs().maxCoeff();
  if (asymmetry > 1e-10 * largest) {
    throw_argument(where, argument, "asymmetric by " + to_text(asymmetry), "a symmetric matrix");
  }
  const Matrix symmetric = 0.5 * (G + G.transpose());
  Eigensystem system = eigensystem(symmetric);
  if (G.size() > 0) {
    const double low = system.values(0);
    const double high = system.values(G.rows() - 1);
    if (low < -1e-10 * std::max(high, 0.0) || high < 0) {
      throw_argument(where, argument, "not a covariance: its smallest eigenvalue is " + brief(low),
                     "a positive semidefinite matrix");
    }
  }
  return system;
}

// Eigenvalues below this share of the largest one are rounding errors and do not count for the
// rank.
constexpr double kRankTolerance = 1e-14;

}  // namespace

void check_finite(std::string_view where, std::string_view argument, const MatrixView& values) {
  // x - x is 0 for every finite x and NaN otherwise, so that one sum in SIMD lanes clears most
  // matrices.
  if ((values.array() - values.array()).sum() == 0) return;
  for (Index i = 0; i < values.rows(); ++i) {
    for (Index j = 0; j < values.cols(); ++j) {
      if (std::isfinite(values(i, j))) continue;
      const std::string place =
          std::string(argument) + "[" + std::to_string(i) + "," + std::to_string(j) + "]";
      throw_argument(where, place, to_text(values(i, j)), "a finite number");
    }
  }
}

Matrix psd_factor(std::string_view where, std::string_view argument, const MatrixView& G) {
  const Eigensystem system = checked_psd(where, argument, G);
  const Index d = G.rows();
  if (d == 0) return Matrix(0, 0);
  const Vector& eigenvalues = system.values;
  const double floor = kRankTolerance * static_cast<double>(d) * eigenvalues(d - 1);
  const Index rank = (eigenvalues.array() > floor).count();
  const Vector scale = eigenvalues.tail(rank).cwiseSqrt();
  return system.vectors.rightCols(rank) * scale.asDiagonal();
}

Matrix psd_sqrt(std::string_view where, std::string_view argument, const MatrixView& G) {
  const Eigensystem system = checked_psd(where, argument, G);
  const Vector scale = system.values.cwiseMax(0.0).cwiseSqrt();
  return system.vectors * scale.asDiagonal() * system.vectors.transpose();
}

double max_eigenvalue(const MatrixView& symmetric) {
  if (symmetric.size() == 0) return 0.0;
  return eigensystem(symmetric).values(symmetric.rows() - 1);
}

}  // namespace esscher
