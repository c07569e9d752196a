// Cells of keys: k-means, means and counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "esscher/heads/compress.h"
#include "esscher/heads/detail/compress_parts.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

constexpr int kLloydSteps = 10;

// Squared distances of rows to one centre.
Vector distances(const MatrixView& rows, const VectorView& centre) {
  return (rows.rowwise() - centre.transpose()).rowwise().squaredNorm();
}

// The first place where the running sum of weights exceeds share * total.
Index drawn_place(const Vector& weights, double share) {
  double left = share * weights.sum();
  for (Index l = 0; l < weights.size(); ++l) {
    left -= weights(l);
    if (left < 0) return l;
  }
  return weights.size() - 1;
}

// k-means++: each centre is drawn with the squared distance to those before it.
Matrix seeds(const MatrixView& rows, Index k, const Stream& stream) {
  Matrix centres(k, rows.cols());
  Vector nearest = Vector::Ones(rows.rows());
  for (Index c = 0; c < k; ++c) {
    const Index at = drawn_place(nearest, stream.uniform(static_cast<std::uint64_t>(c)));
    centres.row(c) = rows.row(at);
    const Vector d = distances(rows, centres.row(c).transpose());
    nearest = c == 0 ? d : Vector(nearest.cwiseMin(d));
  }
  return centres;
}

std::vector<Index> nearest_centres(const MatrixView& rows, const Matrix& centres) {
  Matrix product = Matrix::Zero(rows.rows(), centres.rows());
  add_product(rows, Matrix(centres.transpose()), product);
  const Vector half = 0.5 * centres.rowwise().squaredNorm();
  std::vector<Index> cells(static_cast<std::size_t>(rows.rows()));
  for (Index l = 0; l < rows.rows(); ++l) {
    (product.row(l).transpose() - half).maxCoeff(&cells[static_cast<std::size_t>(l)]);
  }
  return cells;
}

}  // namespace

std::vector<Index> kmeans_cells(const MatrixView& rows, Index k, const Stream& stream) {
  const Vector mean = rows.colwise().mean();
  const Matrix centred = rows.rowwise() - mean.transpose();
  Matrix centres = seeds(centred, k, stream);
  std::vector<Index> cells = nearest_centres(centred, centres);
  for (int step = 0; step < kLloydSteps; ++step) {
    Matrix sums = Matrix::Zero(k, rows.cols());
    Vector counts = Vector::Zero(k);
    for (Index l = 0; l < rows.rows(); ++l) {
      const Index c = cells[static_cast<std::size_t>(l)];
      sums.row(c) += centred.row(l);
      counts(c) += 1;
    }
    for (Index c = 0; c < k; ++c) {
      if (counts(c) > 0) centres.row(c) = sums.row(c) / counts(c);
    }
    std::vector<Index> next = nearest_centres(centred, centres);
    if (next == cells) break;
    cells = std::move(next);
  }
  return cells;
}

CompactCache centroid_cache(const MatrixView& keys, const MatrixView& values,
                            const std::vector<Index>& cells, Index k, bool shared) {
  Vector counts = Vector::Zero(k);
  Matrix mean_k = Matrix::Zero(k, keys.cols());
  Matrix mean_v = Matrix::Zero(k, values.cols());
  for (Index l = 0; l < keys.rows(); ++l) {
    const Index c = cells[static_cast<std::size_t>(l)];
    counts(c) += 1;
    mean_k.row(c) += keys.row(l);
    mean_v.row(c) += values.row(l);
  }
  Index used = 0;
  CompactCache out{
      .keys = Matrix(k, keys.cols()), .bias = Vector(k), .values = Matrix(k, values.cols())};
  for (Index c = 0; c < k; ++c) {
    if (counts(c) == 0) continue;
    mean_k.row(c) /= counts(c);
    mean_v.row(c) /= counts(c);
    out.keys.row(used) = mean_k.row(c);
    out.values.row(used) = mean_v.row(c);
    out.bias(used++) = std::log(counts(c));
  }
  out.keys.conservativeResize(used, Eigen::NoChange);
  out.values.conservativeResize(used, Eigen::NoChange);
  out.bias.conservativeResize(used);
  if (!shared) return out;
  out.linear = Matrix::Zero(values.cols(), keys.cols());
  for (Index l = 0; l < keys.rows(); ++l) {
    const Index c = cells[static_cast<std::size_t>(l)];
    out.linear += (values.row(l) - mean_v.row(c)).transpose() * (keys.row(l) - mean_k.row(c));
  }
  out.linear /= static_cast<double>(keys.rows());
  return out;
}

Matrix query_metric(const MatrixView& calibration) {
  const Matrix second =
      calibration.transpose() * calibration / static_cast<double>(calibration.rows());
  return psd_sqrt("query metric", "E[aa']", second);
}

}  // namespace esscher
