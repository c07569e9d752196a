// A prompt of n keys and values in fewer numbers: fifteen ways that are in use, each as a function of
// the query a = scale * q. pair = d_k + d_v.
//
//   window, window_mean, window_first, window_gaussian, window_finite
//                      the first and the last keys exactly, a tail for the others (heads/window.h)
//   limit              mV + Cov(V,K) a                                            d_v (d_k + 1)
//   mixture            Gaussian components with full covariance (heads/surrogate.h)
//   centroids          k-means cells of the keys, their means and counts n_c:     k (pair + 1)
//                        T = sum_c r_c mV_c,  r = softmax_c(log n_c + <a, mK_c>)
//   metric_centroids   the same with cells in the metric E[aa'] of the calibration queries
//   shared_covariance  centroids, and one linear term Cov_w(V,K) a of what is     and d_k d_v
//                      within cells
//   affine             the best affine map of the calibration queries, of low     d_v + r pair
//                      rank r (reduced-rank regression, ridge 1e-3)
//   matching           the keys of most past attention, biases by non-negative    k (pair + 1)
//                      least squares on the mass, values by least squares on the
//                      outputs of the calibration queries (attention matching)
//   features           positive random features, orthogonal, centred, balanced    M (d_v + 1) + d_k + 1
//   expected           the keys of largest log E e^{<a,k>} + log |v|, a Gaussian  k pair
//   past               the keys of largest mean weight over calibration queries   k pair
//   uniform            k random keys                                              k pair
//
// Directions of random features come from a seed and are not counted. A method that cannot be had
// for so few numbers gives none.
#pragma once

#include <functional>
#include <optional>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

enum class Compression {
  window,
  window_mean,
  window_first,
  window_gaussian,
  window_finite,
  limit,
  mixture,
  centroids,
  metric_centroids,
  shared_covariance,
  affine,
  matching,
  features,
  expected,
  past,
  uniform
};

constexpr auto enum_names(Compression) {
  return EnumNames<Compression, 16>{"compression",
                                    {{{Compression::window, "window"},
                                      {Compression::window_mean, "window_mean"},
                                      {Compression::window_first, "window_first"},
                                      {Compression::window_gaussian, "window_gaussian"},
                                      {Compression::window_finite, "window_finite"},
                                      {Compression::limit, "limit"},
                                      {Compression::mixture, "mixture"},
                                      {Compression::centroids, "centroids"},
                                      {Compression::metric_centroids, "metric_centroids"},
                                      {Compression::shared_covariance, "shared_covariance"},
                                      {Compression::affine, "affine"},
                                      {Compression::matching, "matching"},
                                      {Compression::features, "features"},
                                      {Compression::expected, "expected"},
                                      {Compression::past, "past"},
                                      {Compression::uniform, "uniform"}}}};
}

// Its name with blanks, for people: "window mean".
std::string words_of(Compression method);

// True if the method is fitted to calibration queries.
bool is_calibrated(Compression method);

struct CompressInput {
  Matrix keys;         // [n,dk]
  Matrix values;       // [n,dv]
  Matrix calibration;  // [m,dk], scale * q
  Index sinks = 1;     // first keys that windows keep
};

struct Compressed {
  Index numbers = 0;        // kept
  Index multiply_adds = 0;  // per query
  std::function<Vector(const VectorView& a)> output;
};

// The method in at most so many numbers; none if it needs more.
std::optional<Compressed> compress(Compression method, const CompressInput& input, Index numbers,
                                   const Stream& stream);

// Keys with biases and values, and a linear term: T(a) = sum_j p_j values_j + linear a with
// p = softmax(keys a + bias). `linear` [dv,dk] may be empty.
struct CompactCache {
  Matrix keys;
  Vector bias;
  Matrix values;
  Matrix linear = {};

  [[nodiscard]] Vector operator()(const VectorView& a) const;
};

// The parts of the methods, for tests.

// The cell of each row [n] after k-means: seeds by k-means++, at most 10 Lloyd steps.
std::vector<Index> kmeans_cells(const MatrixView& rows, Index k, const Stream& stream);

// Means and counts of cells, as a cache with bias log n_c; cells without keys are left out. With
// `shared`, the linear term is the covariance of values and keys within cells.
CompactCache centroid_cache(const MatrixView& keys, const MatrixView& values,
                            const std::vector<Index>& cells, Index k, bool shared);

// Weights w >= 0 that minimise |A w - b|^2 + ridge |w|^2, by cyclic coordinate descent.
Vector nonnegative_least_squares(const MatrixView& A, const VectorView& b, double ridge);

// softmax weights of each calibration query over all keys [m,n].
Matrix attention_weights(const CompressInput& input);

// The `count` largest entries, in ascending order of place.
std::vector<Index> largest(const VectorView& score, Index count);

CompactCache matched_cache(const CompressInput& input, const std::vector<Index>& keys);

}  // namespace esscher
