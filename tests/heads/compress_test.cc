// Every way to keep a prompt in few numbers against loops that do the same the long way, or against
// the conditions that its optimum must meet.
#include "esscher/heads/compress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "esscher/heads/budget.h"
#include "esscher/heads/detail/compress_parts.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/heads/surrogate.h"
#include "esscher/heads/tail.h"
#include "esscher/universal/free_energy.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

constexpr Index kDk = 4, kDv = 3, kPair = kDk + kDv;

CompressInput some_input(Index n) {
  return {.keys = random_matrix(Stream(71, 1), n, kDk).array() + 0.2,
          .values = random_matrix(Stream(71, 2), n, kDv).array() + 0.5,
          .calibration = random_matrix(Stream(71, 3), 30, kDk, 0.8),
          .sinks = 1};
}

const Vector& some_query() {
  static const Vector a = random_matrix(Stream(71, 4), kDk, 1, 0.8);
  return a;
}

Vector softmax_output(const CompressInput& x, const Vector& a) {
  double mass = 0;
  Vector T = Vector::Zero(kDv);
  for (Index l = 0; l < x.keys.rows(); ++l) {
    const double w = std::exp(x.keys.row(l).dot(a));
    mass += w;
    T += w * x.values.row(l).transpose();
  }
  return T / mass;
}

TEST(Compress, EveryMethodKeepsNoMoreThanItIsGiven) {
  const CompressInput x = some_input(200);
  for (const auto& [method, word] : enum_names(Compression{}).table) {
    int made = 0;
    for (const Index pairs : {1, 4, 9, 30, 150}) {
      const auto got = compress(method, x, pairs * kPair, Stream(1));
      if (!got) continue;
      ++made;
      EXPECT_LE(got->numbers, pairs * kPair) << word;
      EXPECT_GT(got->numbers, 0) << word;
      EXPECT_GT(got->multiply_adds, 0) << word;
      const Vector T = got->output(some_query());
      EXPECT_EQ(T.size(), kDv) << word;
      EXPECT_TRUE(T.allFinite()) << word;
      EXPECT_EQ(compress(method, x, pairs * kPair, Stream(1))->output(some_query()), T) << word;
    }
    EXPECT_GT(made, 0) << word;
    EXPECT_FALSE(compress(method, x, 1, Stream(1)).has_value()) << word;
  }
}

TEST(Compress, TheWholePromptIsExact) {
  const CompressInput x = some_input(50);
  const Vector T = softmax_output(x, some_query());
  for (const Compression method :
       {Compression::window, Compression::window_finite, Compression::centroids,
        Compression::metric_centroids, Compression::expected, Compression::past,
        Compression::uniform}) {
    const auto got = compress(method, x, 60 * (kPair + 1), Stream(1));
    EXPECT_TRUE(testing::close(got->output(some_query()), T, 1e-12)) << name(method);
  }
}

TEST(Compress, ACacheIsASoftmaxWithBiases) {
  const CompactCache cache{.keys = random_matrix(Stream(72, 1), 5, kDk),
                           .bias = random_matrix(Stream(72, 2), 5, 1),
                           .values = random_matrix(Stream(72, 3), 5, kDv),
                           .linear = random_matrix(Stream(72, 4), kDv, kDk)};
  double mass = 0;
  Vector want = Vector::Zero(kDv);
  for (Index j = 0; j < 5; ++j) {
    const double w = std::exp(cache.keys.row(j).dot(some_query()) + cache.bias(j));
    mass += w;
    want += w * cache.values.row(j).transpose();
  }
  want /= mass;
  for (Index r = 0; r < kDv; ++r) want(r) += cache.linear.row(r).dot(some_query());
  EXPECT_TRUE(testing::close(cache(some_query()), want, 1e-13));
}

// Three far clusters; each Lloyd fixed point is the partition into them, and every row is nearest to
// the mean of its own cell.
TEST(Compress, CellsAreNearestToTheirMeans) {
  Matrix rows = random_matrix(Stream(73, 1), 90, 3, 0.3);
  for (Index l = 0; l < 90; ++l) rows.row(l).array() += 10.0 * static_cast<double>(l % 3);
  const std::vector<Index> cells = kmeans_cells(rows, 3, Stream(5));
  EXPECT_EQ(std::set<Index>(cells.begin(), cells.end()).size(), 3u);
  std::vector<Vector> mean(3, Vector::Zero(3));
  std::vector<double> count(3, 0.0);
  for (Index l = 0; l < 90; ++l) {
    const auto c = static_cast<std::size_t>(cells[static_cast<std::size_t>(l)]);
    EXPECT_EQ(cells[static_cast<std::size_t>(l)], cells[static_cast<std::size_t>(l % 3)]);
    mean[c] += rows.row(l).transpose();
    count[c] += 1;
  }
  for (Index l = 0; l < 90; ++l) {
    const auto own = static_cast<std::size_t>(cells[static_cast<std::size_t>(l)]);
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_LE((rows.row(l).transpose() - mean[own] / count[own]).norm(),
                (rows.row(l).transpose() - mean[c] / count[c]).norm() + 1e-12);
    }
  }
}

TEST(Compress, CentroidsAreMeansAndCountsOfCells) {
  const CompressInput x = some_input(40);
  std::vector<Index> cells;
  for (Index l = 0; l < 40; ++l) cells.push_back(l % 3 == 0 ? 0 : 2);  // cell 1 is empty
  const CompactCache got = centroid_cache(x.keys, x.values, cells, 3, true);
  ASSERT_EQ(got.keys.rows(), 2);
  Matrix linear = Matrix::Zero(kDv, kDk);
  for (const Index c : {Index{0}, Index{2}}) {
    double count = 0;
    Vector mk = Vector::Zero(kDk), mv = Vector::Zero(kDv);
    for (Index l = 0; l < 40; ++l) {
      if (cells[static_cast<std::size_t>(l)] != c) continue;
      count += 1;
      mk += x.keys.row(l).transpose();
      mv += x.values.row(l).transpose();
    }
    const Index row = c == 0 ? 0 : 1;
    EXPECT_TRUE(testing::close(got.keys.row(row).transpose(), mk / count, 1e-13));
    EXPECT_TRUE(testing::close(got.values.row(row).transpose(), mv / count, 1e-13));
    EXPECT_TRUE(testing::close(got.bias(row), std::log(count), 1e-14));
    for (Index l = 0; l < 40; ++l) {
      if (cells[static_cast<std::size_t>(l)] != c) continue;
      linear += (x.values.row(l).transpose() - mv / count) *
                (x.keys.row(l).transpose() - mk / count).transpose() / 40;
    }
  }
  EXPECT_TRUE(testing::close(got.linear, linear, 1e-12));
}

TEST(Compress, TheMetricIsTheSecondMomentOfQueries) {
  const CompressInput x = some_input(10);
  Matrix second = Matrix::Zero(kDk, kDk);
  for (Index i = 0; i < x.calibration.rows(); ++i) {
    second += x.calibration.row(i).transpose() * x.calibration.row(i) / 30.0;
  }
  const Matrix R = query_metric(x.calibration);
  EXPECT_TRUE(testing::close(R * R.transpose(), second, 1e-12));
}

TEST(Compress, TheLimitAndMixturesAreTheirFormulas) {
  const CompressInput x = some_input(300);
  const Vector a = some_query();
  const Vector mean = x.values.colwise().mean();
  const Vector mean_k = x.keys.colwise().mean();
  Vector want = mean;
  for (Index l = 0; l < 300; ++l) {
    want +=
        (x.keys.row(l).transpose() - mean_k).dot(a) * (x.values.row(l).transpose() - mean) / 300;
  }
  EXPECT_TRUE(
      testing::close(compress(Compression::limit, x, 1000, Stream(1))->output(a), want, 1e-12));
  const Index one = 1 + kDk + kDk * (kDk + 1) / 2 + kDv * (kDk + 1);
  const auto mixture = compress(Compression::mixture, x, 3 * one, Stream(1));
  EXPECT_EQ(mixture->numbers, 3 * one);
  const Matrix moved = x.keys.rowwise() - mean_k.transpose();
  const MixtureFit fit = fit_mixture(moved, 3, Stream(1), {.restarts = 1});
  const Matrix r = responsibilities(fit, moved);
  Vector T = Vector::Zero(kDv);
  double mass = 0;
  for (Index c = 0; c < 3; ++c) {
    const double w = r.col(c).sum();
    Vector mk = Vector::Zero(kDk), mv = Vector::Zero(kDv);
    for (Index l = 0; l < 300; ++l) {
      mk += r(l, c) / w * x.keys.row(l).transpose();
      mv += r(l, c) / w * x.values.row(l).transpose();
    }
    double tau2 = fit.floor * a.squaredNorm();
    Vector cross = Vector::Zero(kDv);
    for (Index l = 0; l < 300; ++l) {
      const double s = (x.keys.row(l).transpose() - mk).dot(a);
      tau2 += r(l, c) / w * s * s;
      cross += r(l, c) / w * s * (x.values.row(l).transpose() - mv);
    }
    const double weight = w * std::exp(mk.dot(a) + tau2 / 2);
    mass += weight;
    T += weight * (mv + cross);
  }
  EXPECT_TRUE(testing::close(mixture->output(a), T / mass, 1e-6));
}

// The map read off the output at unit vectors, and the normal equations of its ridge regression.
TEST(Compress, TheAffineMapIsTheRidgeRegressionAndItsBestLowRank) {
  const CompressInput x = some_input(60);
  const Index m = x.calibration.rows();
  Matrix T(m, kDv);
  for (Index i = 0; i < m; ++i) T.row(i) = softmax_output(x, x.calibration.row(i)).transpose();
  const Vector mean_a = x.calibration.colwise().mean();
  const Vector mean_t = T.colwise().mean();
  const Matrix A = x.calibration.rowwise() - mean_a.transpose();
  const Matrix Y = T.rowwise() - mean_t.transpose();
  const auto map_of = [&](const Compressed& one) {
    Matrix B(kDk, kDv);
    const Vector zero = one.output(Vector::Zero(kDk));
    for (Index j = 0; j < kDk; ++j) {
      B.row(j) = (one.output(Vector::Unit(kDk, j)) - zero).transpose();
    }
    EXPECT_TRUE(testing::close(one.output(mean_a), mean_t, 1e-10));
    return B;
  };
  const auto full = compress(Compression::affine, x, 1000, Stream(1));
  EXPECT_EQ(full->numbers, kDv + kDk * kDv);
  const Matrix B = map_of(*full);
  const double ridge = 1e-3 * A.squaredNorm() / kDk;
  const Matrix slope = A.transpose() * (A * B - Y) + ridge * B;
  EXPECT_LT(slope.norm(), 1e-9 * (A.transpose() * Y).norm());
  const auto low = compress(Compression::affine, x, kDv + kPair, Stream(1));
  EXPECT_EQ(low->numbers, kDv + kPair);
  const Matrix B1 = map_of(*low);
  // The best approximation of rank one of the fitted values leaves what a power iteration leaves.
  const Matrix fitted = A * B;
  Vector v = Vector::Ones(kDv);
  for (int i = 0; i < 500; ++i) v = (fitted.transpose() * (fitted * v)).normalized();
  EXPECT_TRUE(
      testing::close((fitted - A * B1).norm(), (fitted - fitted * v * v.transpose()).norm(), 1e-9));
}

// The conditions of Karush, Kuhn and Tucker are necessary and sufficient.
TEST(Compress, NonnegativeLeastSquaresMeetsItsConditions) {
  const Matrix A = random_matrix(Stream(74, 1), 30, 8);
  const Vector b = random_matrix(Stream(74, 2), 30, 1);
  const Vector w = nonnegative_least_squares(A, b, 0.1);
  const Vector slope = A.transpose() * (A * w - b) + 0.1 * w;
  int zero = 0;
  for (Index j = 0; j < 8; ++j) {
    EXPECT_GE(w(j), 0);
    EXPECT_GE(slope(j), -1e-9);
    EXPECT_NEAR(w(j) * slope(j), 0, 1e-9);
    zero += w(j) == 0 ? 1 : 0;
  }
  EXPECT_GT(zero, 0);
  EXPECT_LT(zero, 8);
}

TEST(Compress, MatchedKeysReproduceTheCalibration) {
  const CompressInput x = some_input(60);
  const std::vector<Index> keys = {3, 8, 20, 41, 55};
  const CompactCache got = matched_cache(x, keys);
  const Index m = x.calibration.rows();
  Matrix A(m, 5), P(m, 5), T(m, kDv);
  for (Index i = 0; i < m; ++i) {
    double mass = 0, kept = 0;
    const Vector a = x.calibration.row(i);
    for (Index l = 0; l < 60; ++l) mass += std::exp(x.keys.row(l).dot(a));
    for (Index j = 0; j < 5; ++j) {
      A(i, j) = std::exp(x.keys.row(keys[static_cast<std::size_t>(j)]).dot(a)) / mass;
      P(i, j) = A(i, j) * std::exp(got.bias(j));
      kept += P(i, j);
    }
    P.row(i) /= kept;
    T.row(i) = softmax_output(x, a).transpose();
  }
  const Vector w = got.bias.array().exp();
  const double small = 1e-6 * A.squaredNorm() / 5;
  const Vector slope = A.transpose() * (A * w - Vector::Ones(m)) + small * w;
  EXPECT_LT((slope.array() * w.array()).abs().maxCoeff(), 1e-8);
  Matrix chosen(5, kDv);
  for (Index j = 0; j < 5; ++j) chosen.row(j) = x.values.row(keys[static_cast<std::size_t>(j)]);
  const double ridge = 1e-2 * P.squaredNorm() / 5;
  const Matrix gradient = P.transpose() * (P * got.values - T) + ridge * (got.values - chosen);
  EXPECT_LT(gradient.norm(), 1e-9 * (P.transpose() * T).norm());
}

TEST(Compress, EvictionKeepsTheKeysOfTheLargestScore) {
  const CompressInput x = some_input(40);
  const Index m = x.calibration.rows();
  const Vector mu = x.calibration.colwise().mean();
  Matrix C = Matrix::Zero(kDk, kDk);
  for (Index i = 0; i < m; ++i) {
    const Vector d = x.calibration.row(i).transpose() - mu;
    C += d * d.transpose() / static_cast<double>(m);
  }
  Vector expected(40), past = Vector::Zero(40);
  for (Index l = 0; l < 40; ++l) {
    const Vector k = x.keys.row(l);
    expected(l) = k.dot(mu) + 0.5 * k.dot(C * k) + std::log(x.values.row(l).norm());
  }
  for (Index i = 0; i < m; ++i) {
    double mass = 0;
    for (Index l = 0; l < 40; ++l) mass += std::exp(x.keys.row(l).dot(x.calibration.row(i)));
    for (Index l = 0; l < 40; ++l) {
      past(l) += std::exp(x.keys.row(l).dot(x.calibration.row(i))) / mass;
    }
  }
  const auto want = [&](const Vector& score) {  // the softmax over the seven largest, by scanning
    Vector T = Vector::Zero(kDv);
    double mass = 0;
    for (Index l = 0; l < 40; ++l) {
      Index above = 0;
      for (Index j = 0; j < 40; ++j) above += score(j) > score(l) ? 1 : 0;
      if (above >= 7) continue;
      const double w = std::exp(x.keys.row(l).dot(some_query()));
      mass += w;
      T += w * x.values.row(l).transpose();
    }
    return Vector(T / mass);
  };
  const auto got = [&](Compression method) {
    return compress(method, x, 7 * kPair, Stream(1))->output(some_query());
  };
  EXPECT_TRUE(testing::close(got(Compression::expected), want(expected), 1e-12));
  EXPECT_TRUE(testing::close(got(Compression::past), want(past), 1e-12));
}

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

// Queries and keys are the phases of their positions: a query looks at the keys beside it.
Head local_head(Index n) {
  Matrix Q(n, 12);
  for (Index l = 0; l < n; ++l) {
    for (Index j = 0; j < 6; ++j) {
      const double angle = (0.31 + 0.23 * static_cast<double>(j)) * static_cast<double>(l);
      Q(l, 2 * j) = std::cos(angle);
      Q(l, 2 * j + 1) = std::sin(angle);
    }
  }
  return make_head("local", Q, Q, random_matrix(Stream(75, 3), n, 5), 3.0, true);
}

TEST(Budget, SplitsHaveAGapAndTestQueriesAreUnseen) {
  const Head causal = local_head(200);
  for (const QuerySplit& split : query_splits(causal, 20)) {
    EXPECT_LE(split.calibration.back() + 20, split.test.front());
    EXPECT_EQ(split.test.size(), 1u);
  }
  EXPECT_EQ(query_splits(causal, 20).size(), 16u);
  const Head whole =
      make_head("w", random_matrix(Stream(76, 1), 100, 3), random_matrix(Stream(76, 2), 50, 3),
                random_matrix(Stream(76, 3), 50, 3), 1.0, false);
  const auto splits = query_splits(whole, -1);
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_GE(splits[0].test.front() - splits[0].calibration.back(), 12);
  EXPECT_TRUE(query_splits(whole, 95).empty());
}

TEST(Budget, ALocalHeadIsWonByWindowsAndClustersByCentroids) {
  const std::vector<BudgetRow> local = budget_rows(local_head(200), {4, 16}, 16, 0, Stream(1));
  for (const BudgetRow& row : local) {
    if (!row.best) continue;
    EXPECT_THAT(std::string(name(row.method)), ::testing::StartsWith("window")) << row.budget;
  }
  Matrix keys = random_matrix(Stream(77, 1), 400, 6, 0.02);
  Matrix values = random_matrix(Stream(77, 2), 400, 5, 0.02);
  const Matrix centres = random_matrix(Stream(77, 3), 6, 6, 2.0);
  const Matrix marks = random_matrix(Stream(77, 4), 6, 5);
  for (Index l = 0; l < 400; ++l) {
    keys.row(l) += centres.row(l * 5 % 6);
    values.row(l) += marks.row(l * 5 % 6);
  }
  const Head head =
      make_head("clusters", random_matrix(Stream(77, 5), 200, 6), keys, values, 0.7, false);
  const std::vector<BudgetRow> rows = budget_rows(head, {8}, -1, 1, Stream(1));
  for (const BudgetRow& row : rows) {
    if (row.best) {
      EXPECT_THAT(std::string(name(row.method)), ::testing::HasSubstr("centroids"));
      EXPECT_LT(row.lin_c, 0.1);
      EXPECT_TRUE(row.pareto);
    }
  }
  EXPECT_THAT(budget_verdict(rows, 0.1, 400 * 11),
              ::testing::AllOf(::testing::HasSubstr("8: "), ::testing::HasSubstr("centroids"),
                               ::testing::HasSubstr("multiply-adds instead of 4400 each")));
  EXPECT_EQ(budget_rows(head, {8}, -1, 1, Stream(1)).front().lin_c, rows.front().lin_c);
}

// What is fitted to queries wins on its own queries and loses on others: the reversal that the split
// is made to show. The last queries live in other directions than the first.
TEST(Budget, CalibratedMethodsLoseWhereQueriesChange) {
  Matrix Q = Matrix::Zero(200, 6);
  Q.topLeftCorner(100, 3) = random_matrix(Stream(78, 1), 100, 3, 1.2);
  Q.bottomRightCorner(100, 3) = random_matrix(Stream(78, 2), 100, 3, 1.2);
  const Matrix keys = random_matrix(Stream(78, 3), 300, 6);
  const Matrix values = keys * random_matrix(Stream(78, 4), 6, 4);
  const Head head = make_head("drift", Q, keys, values, 1.0, false);
  double affine = 0, limit = 0;
  for (const BudgetRow& row : budget_rows(head, {16}, 0, 1, Stream(1))) {
    if (row.method == Compression::affine) affine = row.lin_c;
    if (row.method == Compression::limit) limit = row.lin_c;
  }
  EXPECT_GT(affine, 0.9);
  EXPECT_LT(limit, 0.7);
}

}  // namespace
}  // namespace esscher
