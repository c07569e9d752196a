// Ways to keep a prompt in few numbers (heads/compress.h), compared at equal memory and on queries
// that none of them was fitted to. A budget of B means B (d_k + d_v) numbers, the memory of B pairs.
//
// Queries are split into blocks: calibration queries come first, then a gap that is left out, then
// test queries. Neighbouring queries are alike, and without the gap methods that are fitted to
// queries look better than they are. A head without a mask keeps one prompt, its first queries
// calibrate and its last ones test. Of a causal text up to kBudgetPrompts positions of the second
// half test, each with the keys up to its own and calibrated on the queries before its gap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/heads/compress.h"
#include "esscher/heads/head.h"

namespace esscher {

inline constexpr Index kBudgetKeys = 4096;        // at most; the first ones of a longer prompt
inline constexpr Index kBudgetPrompts = 16;       // of a causal head
inline constexpr Index kBudgetCalibration = 128;  // queries, at most
inline constexpr Index kBudgetTests = 64;         // queries of a head without a mask, at most

struct BudgetRow {
  Index budget = 0;
  Compression method = Compression::window;
  bool calibrated = false;
  Index numbers = 0;
  Index multiply_adds = 0;
  double lin = 0, lin_c = 0;   // medians over test queries
  double lin_c_std_error = 0;  // of the median, from order statistics
  bool best = false;           // smallest lin_c of this budget
  bool pareto = false;         // nothing that keeps fewer or as many numbers errs less

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("budget", row.budget, "tokens", "keys and values that fit in the same memory");
    column("method", row.method, "", "how the prompt is kept");
    column("calibrated", row.calibrated, "", "fitted to earlier queries");
    column("numbers", row.numbers, "numbers", "numbers to keep");
    column("multiply_adds", row.multiply_adds, "", "multiply-adds per query");
    column("lin", row.lin, "", "error relative to |T|, on unseen queries");
    column("lin_c", row.lin_c, "", "error relative to |T - mean V|, on unseen queries");
    column("lin_c_std_error", row.lin_c_std_error, "", "its standard error over queries");
    column("best", row.best, "", "the smallest error of this budget");
    column("pareto", row.pareto, "", "nothing that keeps as few numbers errs less");
  }
};

// Where queries are taken from: numbers of queries.
struct QuerySplit {
  std::vector<Index> calibration;
  std::vector<Index> test;
};

// One split for a head without a mask, one per test query of a causal head. gap < 0: an eighth of the
// queries, at most 64.
std::vector<QuerySplit> query_splits(const Head& head, Index gap);

// One row per budget and method that fits in it, budgets in the given order. None for a head with
// rules or with too few queries to split.
std::vector<BudgetRow> budget_rows(const Head& head, const std::vector<Index>& budgets, Index gap,
                                   Index sinks, const Stream& stream);

// The winner of each budget, and the cheapest row within the tolerance with its numbers and work
// beside those of softmax: full pairs of d_k + d_v.
std::string budget_verdict(const std::vector<BudgetRow>& rows, double tolerance,
                           Index full_numbers);

}  // namespace esscher
