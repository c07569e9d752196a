#include "esscher/task/means_law.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {

Matrix MixtureMeans::at(const VectorView& normals) const {
  if (is_fixed()) return fixed;
  check_dimension("means", "normals", normals.size(), this->normals());
  Matrix out = scale * Eigen::Map<const Matrix>(normals.data(), count, dim);
  if (law == MeansLaw::sphere) {
    for (Index k = 0; k < count; ++k) out.row(k) *= scale / out.row(k).norm();
  }
  return out;
}

Matrix MixtureMeans::side_by_side(const MatrixView& normals) const {
  if (is_fixed()) return fixed.reshaped<Eigen::RowMajor>().replicate(1, normals.cols());
  check_dimension("means", "normals", normals.rows(), this->normals());
  Matrix out = scale * normals;
  if (law == MeansLaw::sphere) {
    Eigen::RowVectorXd factor(out.cols());
    for (Index k = 0; k < count; ++k) {
      factor.setZero();
      for (Index i = k * dim; i < (k + 1) * dim; ++i) factor.array() += out.row(i).array().square();
      factor = scale / factor.array().sqrt();
      for (Index i = k * dim; i < (k + 1) * dim; ++i) out.row(i).array() *= factor.array();
    }
  }
  return out;
}

double MixtureMeans::variance() const {
  return scale * scale / (law == MeansLaw::sphere ? static_cast<double>(dim) : 1.0);
}

void MixtureMeans::check() const {
  if (is_fixed()) {
    if (fixed.size() == 0) throw_argument("task", "means", "empty", "at least one mean");
    check_finite("task", "means", fixed);
    return;
  }
  if (count < 1) throw_argument("task", "components", std::to_string(count), "an integer >= 1");
  if (dim < 1) throw_argument("task", "dim", std::to_string(dim), "an integer >= 1");
  if (!(scale > 0)) throw_argument("task", "mean_scale", to_text(scale), "a number > 0");
}

}  // namespace esscher
