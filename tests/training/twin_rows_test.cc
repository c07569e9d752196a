#include "esscher/training/twin_rows.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "esscher/training/start.h"

namespace esscher {
namespace {

CompareProblem small_problem() {
  CompareProblem problem;
  TwinSetup& setup = problem.setup;
  setup.task = LinearRegressionTask::isotropic(1);
  setup.space = {ParameterSpace::block, 2};
  setup.theta0 = parameters_of(setup.space, balanced_start(1, 0.4));
  setup.flow.t_end = 2;
  setup.risk.log2_nodes = 5;
  setup.points = 4;
  problem.lengths = {Length(10), Length(100)};
  return problem;
}

// Defect 10. A risk on fixed draws draws them when it is made: counting draws counts risks. The
// reference needs one, a twin two (its flow, its end) and for the gap of gradients one at L and one
// at infinity in each of 8 batches, which have two draws at least.
TEST(TwinCells, ReferenceFlowIsIntegratedOnce) {
  CompareProblem problem = small_problem();
  const Task inner = regression_task(LinearRegressionTask::isotropic(1));
  const auto draws = std::make_shared<std::atomic<int>>(0);
  Task counted = inner;
  counted.draw = [inner, draws](const Stream& stream) {
    ++*draws;
    return inner.draw(stream);
  };
  problem.setup.task = counted;
  problem.setup.risk.draws = 10;
  const Cells<TwinRow> cells = twin_cells(problem);
  ASSERT_EQ(cells.keys.size(), 5U);
  EXPECT_EQ(draws->load(), 10);
  compute_here(cells);
  EXPECT_EQ(draws->load(), 10 + 5 * (2 * 10 + 8 * 2 * 2));
}

TEST(TwinCells, RowsAreAssembledByKind) {
  CompareProblem problem = small_problem();
  problem.eps = {0.5};
  const Cells<TwinRow> cells = twin_cells(problem);
  EXPECT_EQ(cells.keys[0], "reference");
  EXPECT_EQ(cells.keys[1], "softmax L=10");
  EXPECT_EQ(cells.keys.back(), "linear eps=0.5");
  const CompareResult result = assemble_twins(compute_here(cells));
  ASSERT_EQ(result.twins.size(), 5U);
  EXPECT_EQ(result.twins[0].model, "infinity");
  EXPECT_TRUE(result.twins[0].L->is_infinite());
  EXPECT_EQ(result.lengths.size(), 2U);
  EXPECT_EQ(result.path.size() % 5, 0U);
  // Through the declaration of the columns, as the store keeps them.
  const RecordTable table = table_of(std::span<const TwinRow>(result.twins));
  EXPECT_EQ(table_of(std::span<const TwinRow>(rows_of<TwinRow>("test", table))), table);
}

}  // namespace
}  // namespace esscher
