// A grid of cells: the one shape of every study. A cell has a key, and its rows are a pure function
// of its index. A result is assembled from the rows of all cells in the order of the keys. The same
// cells give the same rows here, or in a run on disk, or over MPI ranks (store/exec.h).
//
//   const Cells<PointRow> cells = study.cells();
//   const StudyResult result = study.assemble(compute_here(cells));
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/base/parallel.h"

namespace esscher {

template <HasColumns Row>
struct Cells {
  std::vector<std::string> keys;  // all different
  // Rows of cell i; called at most once per cell, from several threads at a time.
  std::function<std::vector<Row>(std::size_t i)> compute;
};

// Rows of all cells in the order of the keys, on the threads of this process.
template <HasColumns Row>
std::vector<Row> compute_here(const Cells<Row>& cells) {
  std::vector<std::vector<Row>> parts(cells.keys.size());
  parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    parts[at] = cells.compute(at);
  });
  std::vector<Row> rows;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(rows));
  return rows;
}

}  // namespace esscher
