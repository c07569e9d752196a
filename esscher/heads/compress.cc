#include "esscher/heads/compress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "esscher/heads/detail/compress_parts.h"
#include "esscher/heads/surrogate.h"
#include "esscher/heads/window.h"

namespace esscher {
namespace {

Index pair_of(const CompressInput& input) { return input.keys.cols() + input.values.cols(); }

Tail tail_of(Compression method) {
  switch (method) {
    case Compression::window_mean: return Tail::mean;
    case Compression::window_first: return Tail::first;
    case Compression::window_gaussian: return Tail::gaussian;
    case Compression::window_finite: return Tail::finite;
    default: return Tail::none;
  }
}

std::optional<Compressed> windowed(Compression method, const CompressInput& input, Index numbers) {
  const Index dk = input.keys.cols();
  const Index dv = input.values.cols();
  const Index n = input.keys.rows();
  const Tail tail = tail_of(method);
  const Index w = std::min(n, (numbers - tail_state(tail, dk, dv)) / pair_of(input));
  if (numbers < tail_state(tail, dk, dv) || w < 1) return std::nullopt;
  const auto head = std::make_shared<WindowedHead>(
      dk, dv, WindowOptions{.window = w, .sinks = std::min(input.sinks, w), .tail = tail});
  head->push(input.keys, input.values);
  return Compressed{.numbers = w * pair_of(input) + tail_state(tail, dk, dv),
                    .multiply_adds = w * pair_of(input) + tail_multiply_adds(tail, dk, dv),
                    .output = [head](const VectorView& a) { return (*head)(a); }};
}

Compressed cached(CompactCache cache, Index numbers) {
  const Index work = cache.keys.size() + cache.values.size() + cache.linear.size();
  return {.numbers = numbers,
          .multiply_adds = work,
          .output = [cache = std::move(cache)](const VectorView& a) { return cache(a); }};
}

std::optional<Compressed> clustered(Compression method, const CompressInput& input, Index numbers,
                                    const Stream& stream) {
  const bool shared = method == Compression::shared_covariance;
  const Index linear = shared ? input.keys.cols() * input.values.cols() : 0;
  const Index slot = pair_of(input) + 1;
  const Index k = std::min(input.keys.rows(), (numbers - linear) / slot);
  if (numbers < linear || k < 1) return std::nullopt;
  const Matrix rows = method == Compression::metric_centroids
                          ? Matrix(input.keys * query_metric(input.calibration))
                          : input.keys;
  CompactCache cache =
      centroid_cache(input.keys, input.values, kmeans_cells(rows, k, stream), k, shared);
  const Index kept = cache.keys.rows() * slot + linear;
  return cached(std::move(cache), kept);
}

std::optional<Compressed> mixed(const CompressInput& input, Index numbers, const Stream& stream) {
  const Index dk = input.keys.cols();
  const Index dv = input.values.cols();
  const Index one = 1 + dk + dk * (dk + 1) / 2 + dv * (dk + 1);
  const Index k = std::min(numbers / one, input.keys.rows() / 4);
  if (k < 2) return std::nullopt;
  const Vector origin_k = input.keys.colwise().mean();
  const Vector origin_v = input.values.colwise().mean();
  const Matrix keys = input.keys.rowwise() - origin_k.transpose();
  const MixtureFit fit = fit_mixture(keys, k, stream, {.restarts = 1});
  PromptMoments moments(k, origin_k, origin_v);
  moments.add(keys, input.values.rowwise() - origin_v.transpose(), responsibilities(fit, keys));
  return Compressed{
      .numbers = k * one,
      .multiply_adds = k * (one - 1),
      .output = [s = moments.surrogate(fit.floor)](const VectorView& a) { return s(a); }};
}

std::optional<Compressed> gaussian_limit(const CompressInput& input, Index numbers) {
  const Index dk = input.keys.cols();
  const Index dv = input.values.cols();
  if (numbers < dv * (dk + 1)) return std::nullopt;
  const Vector mean = input.values.colwise().mean();
  const Vector mean_k = input.keys.colwise().mean();
  const Matrix cross = (input.values.rowwise() - mean.transpose()).transpose() *
                       (input.keys.rowwise() - mean_k.transpose()) /
                       static_cast<double>(input.keys.rows());
  return Compressed{
      .numbers = dv * (dk + 1),
      .multiply_adds = dv * dk,
      .output = [mean, cross](const VectorView& a) { return Vector(mean + cross * a); }};
}

// Keys that stay, with their own values.
Compressed kept(const CompressInput& input, const std::vector<Index>& keys) {
  CompactCache cache{.keys = Matrix(static_cast<Index>(keys.size()), input.keys.cols()),
                     .bias = Vector::Zero(static_cast<Index>(keys.size())),
                     .values = Matrix(static_cast<Index>(keys.size()), input.values.cols())};
  for (std::size_t j = 0; j < keys.size(); ++j) {
    cache.keys.row(static_cast<Index>(j)) = input.keys.row(keys[j]);
    cache.values.row(static_cast<Index>(j)) = input.values.row(keys[j]);
  }
  return cached(std::move(cache), static_cast<Index>(keys.size()) * pair_of(input));
}

// log E e^{<a,k>} + log |v| for Gaussian a with the moments of the calibration queries.
Vector expected_attention(const CompressInput& input) {
  const Vector mean = input.calibration.colwise().mean();
  const Matrix moved = input.calibration.rowwise() - mean.transpose();
  const Matrix spread =
      input.keys * moved.transpose() / std::sqrt(static_cast<double>(moved.rows()));
  const Vector size = input.values.rowwise().norm().cwiseMax(1e-300);
  return input.keys * mean + 0.5 * spread.rowwise().squaredNorm() + size.array().log().matrix();
}

Vector random_order(Index n, const Stream& stream) {
  Vector out(n);
  for (Index l = 0; l < n; ++l) out(l) = stream.uniform(static_cast<std::uint64_t>(l));
  return out;
}

std::optional<Compressed> evicted(Compression method, const CompressInput& input, Index numbers,
                                  const Stream& stream) {
  const Index k = std::min(input.keys.rows(), numbers / pair_of(input));
  if (k < 1) return std::nullopt;
  const Vector score = method == Compression::expected ? expected_attention(input)
                       : method == Compression::past
                           ? Vector(attention_weights(input).colwise().sum().transpose())
                           : random_order(input.keys.rows(), stream);
  return kept(input, largest(score, k));
}

std::optional<Compressed> matched(const CompressInput& input, Index numbers) {
  const Index slot = pair_of(input) + 1;
  const Index k = std::min(input.keys.rows(), numbers / slot);
  if (k < 1) return std::nullopt;
  const Vector past = attention_weights(input).colwise().sum().transpose();
  CompactCache cache = matched_cache(input, largest(past, k));
  const Index used = cache.keys.rows() * slot;
  return cached(std::move(cache), used);
}

}  // namespace

std::string words_of(Compression method) {
  std::string words(name(method));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

bool is_calibrated(Compression method) {
  switch (method) {
    case Compression::metric_centroids:
    case Compression::affine:
    case Compression::matching:
    case Compression::features:
    case Compression::expected:
    case Compression::past: return true;
    default: return false;
  }
}

std::optional<Compressed> compress(Compression method, const CompressInput& input, Index numbers,
                                   const Stream& stream) {
  if (is_calibrated(method) && input.calibration.rows() < 2) return std::nullopt;
  switch (method) {
    case Compression::window:
    case Compression::window_mean:
    case Compression::window_first:
    case Compression::window_gaussian:
    case Compression::window_finite: return windowed(method, input, numbers);
    case Compression::limit: return gaussian_limit(input, numbers);
    case Compression::mixture: return mixed(input, numbers, stream);
    case Compression::centroids:
    case Compression::metric_centroids:
    case Compression::shared_covariance: return clustered(method, input, numbers, stream);
    case Compression::affine: return affine_map(input, numbers);
    case Compression::matching: return matched(input, numbers);
    case Compression::features: return random_features(input, numbers, stream);
    default: return evicted(method, input, numbers, stream);
  }
}

Vector CompactCache::operator()(const VectorView& a) const {
  const Vector s = keys * a + bias;
  const Vector w = (s.array() - s.maxCoeff()).exp();
  Vector out = values.transpose() * w / w.sum();
  if (linear.size() > 0) out += linear * a;
  return out;
}

std::vector<Index> largest(const VectorView& score, Index count) {
  std::vector<Index> order(static_cast<std::size_t>(score.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index x, Index y) { return score(x) > score(y); });
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

Matrix attention_weights(const CompressInput& input) {
  Matrix out = input.calibration * input.keys.transpose();
  for (Index i = 0; i < out.rows(); ++i) {
    out.row(i) = (out.row(i).array() - out.row(i).maxCoeff()).exp();
    out.row(i) /= out.row(i).sum();
  }
  return out;
}

}  // namespace esscher
