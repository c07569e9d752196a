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

// Degrees of freedom of one coordinate of n rows.
double freedoms(const Vector& r, double kappa, double n) {
  const Index window = r.size();
  const double span = 2 * static_cast<double>(window) + 1;
  if (!(kappa < 1)) return n / std::max(1.0, span - kappa);
  const auto at = [&](Index m) {
    return m == 0 ? 1.0 : std::abs(m) <= window ? r(std::abs(m) - 1) : 0.0;
  };
  double sum = 0;
  for (Index m = -2 * window; m <= 2 * window; ++m) {
    double b = 0;
    for (Index j = std::max(-window, m - window); j <= std::min(window, m + window); ++j)
      b += at(j);
    sum += std::pow(b - kappa * at(m), 2);
  }
  return n * std::min(1.0, kappa * kappa / sum);
}

// How many coordinates of the centred rows y vary as if independent, over this window.
double effective_coordinates(const Matrix& y, Index window, double dof) {
  const Index n = y.rows();
  Matrix around(n, y.cols());  // the sum of the rows within the window
  Eigen::RowVectorXd sum = y.topRows(std::min(n, window)).colwise().sum();
  for (Index l = 0; l < n; ++l) {
    if (l + window < n) sum += y.row(l + window);
    if (l > window) sum -= y.row(l - window - 1);
    around.row(l) = sum;
  }
  const Matrix S = y.transpose() * around;
  const double trace = S.trace(), squares = (0.5 * (S + S.transpose())).squaredNorm();
  const double signal = dof * dof / ((dof - 1) * (dof + 2)) * (squares - trace * trace / dof);
  const auto k = static_cast<double>(y.cols());
  if (!(dof > 1) || !(trace > 0)) return 1;
  return signal > 0 ? std::clamp(trace * trace / signal, 1.0, k) : k;
}

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
    if (window < kWindowPerKappa * std::max(1.0, out.kappa) && j < longest) continue;
    const bool slow = (kWindowPerSlowest * sums.array() > window * squares.array()).any();
    out.is_cut = slow || window < kWindowPerKappa * out.kappa;
    out.r = r.head(j);
    break;
  }
  const double size = std::abs(out.kappa), rows = static_cast<double>(n);
  out.dof = freedoms(out.r, out.kappa, rows);
  out.coordinates = effective_coordinates(y, out.window(), out.dof);
  out.std_error = size * std::sqrt(2 / (out.dof * out.coordinates));
  out.bias = size * (2 * static_cast<double>(out.window()) + 1) / rows;
  return out;
}

}  // namespace esscher
