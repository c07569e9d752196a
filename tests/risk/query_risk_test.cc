#include "esscher/risk/query_risk.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/estimate/interval.h"
#include "esscher/risk/closed_form.h"
#include "tests/risk/query_grid.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::expect_same_bits_for_any_threads;
using testing::general_task;
using testing::query_grid;
using testing::random_readout;

Readout blind(Readout at) {
  const Index d = at.dim() - 1;
  at.U.row(d).head(d).setZero();
  return at;
}

// U = b [[I,0],[0,0]], r = (0, b).
Readout identity_head(Index d, double b) {
  Readout at = Readout::zero(d + 1);
  at.U.topLeftCorner(d, d) = b * Matrix::Identity(d, d);
  at.r(d) = b;
  return at;
}

LinearRegressionTask noisy_task() {
  LinearRegressionTask task = LinearRegressionTask::with_covariance(power_covariance(3, 0.5));
  task.noise_variance = 0.1;
  return task;
}

// The tasks +- sqrt(d s2) e_i average polynomials in w of degree 3 exactly, so that nodes over
// (w, x) with these tasks are a slow twin of the average by hand, gradient in beta included.
TEST(QueryRisk, TasksByHandAreTasksByCubature) {
  for (const double scale : {0.01, 0.5, 2.0}) {
    const LinearRegressionTask task = general_task(3, Stream(1));
    const Readout at = blind(random_readout(4, scale, Stream(2)));
    const QueryNodes queries =
        query_nodes(task, query_normals(task, 8, Stream(3)), score_forms(task, at));
    const Index n = queries.count(), d = task.dim;
    RegressionNodes all{Matrix(2 * d * n, d), Matrix(2 * d * n, d), Vector(2 * d * n)};
    for (Index k = 0; k < 2 * d; ++k) {
      const double size = std::sqrt(static_cast<double>(d) * task.task_variance);
      const Vector w = (k % 2 == 0 ? size : -size) * Vector::Unit(d, k / 2);
      all.w.middleRows(k * n, n).rowwise() = w.transpose();
      all.x.middleRows(k * n, n) = queries.x;
      all.weight.segment(k * n, n) = queries.weight;
    }
    for (const std::optional<double> control : {std::optional<double>(), std::optional(0.0)}) {
      const NodeTables tables(200);
      const QueryRisk by_hand(task, tables, queries, control);
      const SoftmaxRisk twin(task, tables, all, control);
      Readout got, want;
      EXPECT_TRUE(close(by_hand(at, &got), twin(at, &want), 1e-12)) << scale;
      EXPECT_TRUE(close(got.U, want.U, 1e-11)) << scale;
      EXPECT_TRUE(close(Matrix(got.r), Matrix(want.r), 1e-11)) << scale;
      EXPECT_TRUE(close(by_hand.shares(at).excess.mean(), twin.shares(at).excess.mean(), 1e-12));
    }
  }
}

TEST(QueryRisk, SameBitsForAnyThreads) {
  const LinearRegressionTask task = general_task(3, Stream(4));
  const Readout at = blind(random_readout(4, 0.5, Stream(5)));
  const QueryRisk risk(
      task, NodeTables(100),
      query_nodes(task, query_normals(task, 11, Stream(6)), score_forms(task, at)));
  expect_same_bits_for_any_threads(risk, at);
}

// Rare queries carry the excess: lambda = 1.22, and at L = 1e9 they are four standard deviations
// out. The truth is a three-dimensional trapezoidal rule.
TEST(SoftmaxRisk, RareQueriesAreSeenAndErrorsCover) {
  const LinearRegressionTask task = noisy_task();
  const struct {
    double b;
    std::int64_t L;
    double excess;  // known from another program; 0 where it is not
  } cases[] = {{0.6, 1000000000, 2.20e-5}, {0.6, 1000000, 0}, {0.5, 1000000, 0}, {0.6, 100, 0}};
  int misses = 0, count = 0;
  for (const auto& c : cases) {
    const Readout at = identity_head(3, c.b);
    const QueryRisk grid(task, NodeTables(c.L), query_grid(task, 41, 9), 1.0);
    const double truth = grid(at), limit = limit_risk(task, at);
    if (c.excess > 0) {
      EXPECT_TRUE(close(truth - limit, c.excess, 3e-3));
    }
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Estimate got = softmax_risk(task, at, c.L, {10, 8}, Stream(seed));
      EXPECT_EQ(got.engine, Engine::quadrature);
      EXPECT_FALSE(got.heavy);
      EXPECT_LT(got.std_error, 0.05 * std::abs(truth - limit)) << c.b << " " << c.L;
      misses += !student_interval(got.value, got.std_error, 7).contains(truth);
      ++count;
    }
  }
  EXPECT_EQ(count, 48);
  EXPECT_LE(misses, 9);  // 2.4 are expected; more than 9 have probability 2e-4
}

// Where scores read labels, beta != 0, both tasks and queries are nodes. In one dimension the truth
// is a trapezoidal rule over (w, x).
TEST(SoftmaxRisk, ScoresThatReadLabels) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(1);
  task.noise_variance = 0.2;
  Readout at = Readout::zero(2);
  at.U << 0.8, 0, 0.3, 0;
  at.r << 0.2, 0.9;
  for (const std::int64_t L : {20, 1000000}) {
    const Index points = 181;
    const double reach = 9, h = 2 * reach / static_cast<double>(points - 1);
    RegressionNodes grid{Matrix(points * points, 1), Matrix(points * points, 1),
                         Vector(points * points)};
    for (Index i = 0; i < points * points; ++i) {
      const double w = -reach + h * static_cast<double>(i / points);
      const double x = -reach + h * static_cast<double>(i % points);
      grid.w(i, 0) = w;
      grid.x(i, 0) = x;
      grid.weight(i) = static_cast<double>(points * points) * h * h / (2 * std::numbers::pi) *
                       std::exp(-0.5 * (w * w + x * x));
    }
    const double truth = SoftmaxRisk(task, L, grid, 0.0)(at);
    int misses = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const Estimate got = softmax_risk(task, at, L, {9, 8}, Stream(100 + seed));
      misses += !student_interval(got.value, got.std_error, 7).contains(truth);
    }
    EXPECT_LE(misses, 4) << L;  // more have probability 2e-4
  }
}

// In many dimensions one direction may be so sharp that no net of this size sees what carries the
// risk: the answer says so.
TEST(SoftmaxRisk, FewNodesAreFlagged) {
  const LinearRegressionTask task = noisy_task();
  const Readout at = identity_head(3, 0.6);
  EXPECT_TRUE(softmax_risk(task, at, 1000000000, {5, 8}, Stream(1)).heavy);
  EXPECT_FALSE(softmax_risk(task, at, 1000000000, {12, 8}, Stream(1)).heavy);
}

}  // namespace
}  // namespace esscher
