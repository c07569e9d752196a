// Parts of the ways to keep a prompt in few numbers against the conditions that their optimum must
// meet, and what they keep against what they are given.
#include "esscher/heads/compress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "esscher/heads/detail/compress_parts.h"
#include "esscher/heads/mixture_fit.h"
#include "esscher/heads/surrogate.h"
#include "tests/heads/compress_input.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

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

}  // namespace
}  // namespace esscher
