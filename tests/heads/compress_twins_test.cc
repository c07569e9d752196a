// Whole ways to keep a prompt in few numbers against loops that do the same the long way.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "esscher/heads/compress.h"
#include "esscher/heads/detail/compress_parts.h"
#include "esscher/heads/tail.h"
#include "esscher/universal/free_energy.h"
#include "tests/heads/compress_input.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

// The softmax over the first key, the last w - 1 and a tail, from sums over single keys.
Vector slow_window(Compression method, const CompressInput& x, Index w, const Vector& a) {
  const Index n = x.keys.rows();
  std::vector<Index> exact, rest;
  for (Index l = 0; l < n; ++l) (l == 0 || l > n - w ? exact : rest).push_back(l);
  const auto count = static_cast<double>(rest.size());
  Vector mk = Vector::Zero(kDk), mv = Vector::Zero(kDv), cross = Vector::Zero(kDv);
  for (const Index l : rest) {
    mk += x.keys.row(l).transpose() / count;
    mv += x.values.row(l).transpose() / count;
  }
  double tau2 = 0;
  for (const Index l : rest) {
    const double s = a.dot(x.keys.row(l).transpose() - mk);
    tau2 += s * s / count;
    cross += s * (x.values.row(l).transpose() - mv) / count;
  }
  double log_mass = std::log(count) + a.dot(mk);
  Vector value = mv;
  if (method == Compression::window_first || method == Compression::window_gaussian) value += cross;
  if (method == Compression::window_gaussian) log_mass += tau2 / 2;
  if (method == Compression::window_finite) {
    const FreeEnergy energy = free_energy(count, std::sqrt(tau2));
    log_mass = a.dot(mk) + energy.F;
    value += energy.shrink * cross;
  }
  double mass = method == Compression::window ? 0 : std::exp(log_mass);
  Vector T = mass * value;
  for (const Index l : exact) {
    const double weight = std::exp(a.dot(x.keys.row(l)));
    mass += weight;
    T += weight * x.values.row(l).transpose();
  }
  return T / mass;
}

TEST(Compress, WindowsAreTheirSlowTwins) {
  const CompressInput x = some_input(120);
  using Pair = std::pair<Compression, Tail>;
  for (const auto& [method, tail] :
       {Pair{Compression::window, Tail::none}, Pair{Compression::window_mean, Tail::mean},
        Pair{Compression::window_first, Tail::first},
        Pair{Compression::window_gaussian, Tail::gaussian},
        Pair{Compression::window_finite, Tail::finite}}) {
    const Index state = tail_state(tail, kDk, kDv);
    for (const Index w : {Index{2}, Index{9}, Index{40}}) {
      const auto got = compress(method, x, state + w * kPair + kPair - 1, Stream(1));
      ASSERT_TRUE(got) << name(method);
      EXPECT_EQ(got->numbers, state + w * kPair) << name(method);
      EXPECT_TRUE(
          testing::close(got->output(some_query()), slow_window(method, x, w, some_query()), 1e-7))
          << name(method) << " " << w;
    }
  }
}

// Cells of plain keys or of keys in the metric, their means and counts as one softmax, and what values do
// within cells.
TEST(Compress, ClustersAreTheirSlowTwins) {
  const CompressInput x = some_input(90);
  const Vector a = some_query();
  for (const Compression method :
       {Compression::centroids, Compression::metric_centroids, Compression::shared_covariance}) {
    const bool shared = method == Compression::shared_covariance;
    const Index k = 7, numbers = k * (kPair + 1) + (shared ? kDk * kDv : 0);
    const Matrix rows = method == Compression::metric_centroids
                            ? Matrix(x.keys * query_metric(x.calibration))
                            : x.keys;
    const std::vector<Index> cells = kmeans_cells(rows, k, Stream(3));
    double mass = 0;
    Vector want = Vector::Zero(kDv), within = want;
    for (Index c = 0; c < k; ++c) {
      double count = 0;
      Vector mk = Vector::Zero(kDk), mv = Vector::Zero(kDv);
      for (std::size_t l = 0; l < cells.size(); ++l) {
        if (cells[l] != c) continue;
        count += 1;
        mk += x.keys.row(static_cast<Index>(l)).transpose();
        mv += x.values.row(static_cast<Index>(l)).transpose();
      }
      ASSERT_GT(count, 0);
      const double weight = count * std::exp(a.dot(mk) / count);
      mass += weight;
      want += weight * mv / count;
      for (std::size_t l = 0; l < cells.size(); ++l) {
        if (cells[l] != c) continue;
        const auto at = static_cast<Index>(l);
        within += a.dot(x.keys.row(at).transpose() - mk / count) *
                  (x.values.row(at).transpose() - mv / count) / 90;
      }
    }
    want /= mass;
    if (shared) want += within;
    const auto got = compress(method, x, numbers, Stream(3));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->numbers, numbers) << name(method);
    EXPECT_TRUE(testing::close(got->output(a), want, 1e-11)) << name(method);
  }
}

// Matching keeps the keys of the largest weights over the calibration queries; uniform keeps each key
// equally often, and the softmax is over those that stay.
TEST(Compress, MatchedAndRandomKeysAreTheirSlowTwins) {
  const CompressInput x = some_input(40);
  Vector past = Vector::Zero(40);
  for (Index i = 0; i < x.calibration.rows(); ++i) {
    const Vector w = (x.keys * x.calibration.row(i).transpose()).array().exp();
    past += w / w.sum();
  }
  std::vector<Index> top;
  for (Index l = 0; l < 40; ++l) {
    Index above = 0;
    for (Index j = 0; j < 40; ++j) above += past(j) > past(l) ? 1 : 0;
    if (above < 6) top.push_back(l);
  }
  const auto matched = compress(Compression::matching, x, 6 * (kPair + 1), Stream(1));
  EXPECT_TRUE(
      testing::close(matched->output(some_query()), matched_cache(x, top)(some_query()), 1e-12));

  CompressInput marked = x;  // values that name their key, so that the output tells which ones stay
  marked.values = Matrix::Identity(40, 40);
  marked.keys.setZero();
  Vector kept = Vector::Zero(40);
  constexpr int kDraws = 4000;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto got = compress(Compression::uniform, marked, 10 * (kDk + 40), Stream(seed));
    const Vector T = got->output(Vector::Zero(kDk));
    EXPECT_NEAR(T.sum(), 1, 1e-12);
    EXPECT_TRUE(((T.array() - 0.1).abs() < 1e-12 || T.array() == 0).all());
    kept += T;
  }
  const double error = std::sqrt(0.25 * 0.75 / kDraws);
  EXPECT_LT((kept.array() * 10 / kDraws - 0.25).abs().maxCoeff(), 6 * error);
}

// The features are unbiased for e^{<a,k>}; with many of them the output is that of softmax, and the
// error falls like 1 / sqrt(M).
TEST(Compress, RandomFeaturesTendToSoftmax) {
  CompressInput x = some_input(60);
  x.keys *= 0.4;  // features of large scores have heavy tails
  x.calibration *= 0.4;
  const Vector a = 0.4 * some_query();
  const Vector T = softmax_output(x, a);
  const auto error = [&](Index M, std::uint64_t seed) {
    const Index numbers = M * (kDv + 1) + kDk + 1;
    const auto got = compress(Compression::features, x, numbers, Stream(seed));
    EXPECT_EQ(got->numbers, numbers);
    return (got->output(a) - T).squaredNorm();
  };
  double few = 0, many = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    few += error(40, seed) / 40;
    many += error(4000, seed) / 40;
  }
  EXPECT_LT(std::sqrt(many), 0.02 * T.norm());
  EXPECT_NEAR(std::log(few / many) / std::log(100.0), 1.0, 0.25);
}

}  // namespace
}  // namespace esscher
