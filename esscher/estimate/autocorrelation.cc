#include "esscher/estimate/autocorrelation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr Index kFewest = 8;
constexpr double kWindowPerKappa = 5;
constexpr double kWindowPerSlowest =
    2;  // one coordinate is noisier than all, so less is asked of it

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
  out.dof = static_cast<double>(n);
  out.std_error = std::sqrt(2 / out.dof);
  if (!(total > 0)) return out;
  const Index longest = n / 4;
  const Eigen::RowVectorXd squares = y.colwise().squaredNorm();
  Eigen::RowVectorXd sums = squares;  // of one coordinate: squares times its kappa
  Vector r(longest);
  for (Index j = 1; j <= longest; ++j) {
    const Eigen::RowVectorXd products =
        y.topRows(n - j).cwiseProduct(y.bottomRows(n - j)).colwise().sum();
    r(j - 1) = products.sum() / total;
    out.kappa += 2 * r(j - 1);
    sums += 2 * products;
    const auto window = static_cast<double>(j);
    if (window < kWindowPerKappa * out.kappa && j < longest) continue;
    const bool slow = (kWindowPerSlowest * sums.array() > window * squares.array()).any();
    out.is_cut = slow || window < kWindowPerKappa * out.kappa;
    out.r = r.head(j);
    break;
  }
  const double size = std::abs(out.kappa);
  const double span = 2 * static_cast<double>(out.window()) + 1;
  const double repelled = std::pow(std::min(1.0, size), 2);
  out.dof = repelled * static_cast<double>(n) / std::max(1.0, span - size);
  out.std_error = out.dof > 0 ? size * std::sqrt(2 / out.dof) : std::sqrt(2.0);
  out.bias = size * span / static_cast<double>(n);
  return out;
}

}  // namespace esscher
