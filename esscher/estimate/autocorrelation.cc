#include "esscher/estimate/autocorrelation.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr Index kFewest = 8;
constexpr double kWindowPerKappa = 5;

}  // namespace

Autocorrelation autocorrelation(const MatrixView& x) {
  const Index n = x.rows();
  if (n < kFewest) {
    throw_argument("autocorrelation", "rows", std::to_string(n), "at least 8 rows in their order");
  }
  check_finite("autocorrelation", "x", x);
  const Eigen::RowVectorXd mean = x.colwise().mean();
  const Matrix y = x.rowwise() - mean;
  const double total = y.squaredNorm();
  Autocorrelation out;
  out.std_error = std::sqrt(2.0 / static_cast<double>(n));
  if (!(total > 0)) return out;
  const Index longest = n / 4;
  Vector r(longest);
  for (Index j = 1; j <= longest; ++j) {
    r(j - 1) = y.topRows(n - j).cwiseProduct(y.bottomRows(n - j)).sum() / total;
    out.kappa += 2 * r(j - 1);
    if (static_cast<double>(j) < kWindowPerKappa * out.kappa && j < longest) continue;
    out.is_cut = static_cast<double>(j) < kWindowPerKappa * out.kappa;
    out.r = r.head(j);
    break;
  }
  out.std_error = std::abs(out.kappa) * std::sqrt(2 * (2 * static_cast<double>(out.window()) + 1) /
                                                  static_cast<double>(n));
  return out;
}

}  // namespace esscher
