// Equal memory on unseen queries: how queries are split, and which method wins where it must.
#include "esscher/heads/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

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
              ::testing::AllOf(::testing::HasSubstr("in the memory of 8 keys "),
                               ::testing::HasSubstr("centroids (error "),
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
