// The tables of a run, one per question: what a reader would plot or tabulate, tidy, one row per
// observation. Every run has "cells", the rows as they are stored.
//
//   concentration   curve (D(L) with its interval), exponents, queries
//   icl train       loss, checkpoints
//   heads           heads
//   all             one table per dataset of the figures of its page
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/store/run.h"

namespace esscher {

struct RunTable {
  std::string name;
  std::string meaning;  // one phrase
  RecordTable table;
};

// In the order of `esscher export --list`.
std::vector<RunTable> run_tables(const Run& run);

// The table of that name; ArgumentError naming the nearest one if there is none.
RunTable run_table(const Run& run, std::string_view name);

}  // namespace esscher
