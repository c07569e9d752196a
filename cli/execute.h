// Cells of a verb, computed here or into the run of --out. This is the one place where --out,
// --shard, --quiet, MPI ranks and signals meet the library.
#pragma once

#include <string>
#include <vector>

#include "cli/globals.h"
#include "esscher/store/exec.h"

namespace esscher::cli {

// The run in `directory`, made or resumed, shared by the MPI ranks of this program.
Run open_run(const std::string& directory, const RunInfo& info);

// --shard, --quiet and signals as options of run_cells (cli/process/process.h).
ExecOptions exec_options(const Globals& globals);

// Thrown when the cells of --shard are done and others are not: main ends with exit code 0.
struct ShardEnd {};

// Says that the shard is done: for people on stderr, and with --json as the document
//   {"shard": "1/2", "run": DIR, "cells": {"done", "total"}}.
[[noreturn]] void end_shard(const Globals& globals, Run& run);

// Rows of all cells, in the order of the keys, from the run or computed here if it is null. Does not
// return if --shard leaves cells to others.
template <HasColumns Row>
std::vector<Row> rows_of_cells(const Globals& globals, Run* run, const Cells<Row>& cells) {
  CellRows<Row> all = run_cells(run, cells, exec_options(globals));
  if (!all.complete) end_shard(globals, *run);
  return std::move(all.rows);
}

}  // namespace esscher::cli
