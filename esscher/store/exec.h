// The cells of a study on threads and MPI ranks. Each cell is committed as soon as it ends, rows
// come back in the order of the keys whatever the order of completion, and a cell that is done is
// never computed again. Results must depend on the cell only (seed and key), then a run is the same
// bytes for any number of threads and ranks, interrupted or not.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "esscher/store/run.h"

namespace esscher {

struct ExecOptions {
  bool quiet = false;  // no progress on stderr
};

// compute(i) yields the rows of keys[i]; it is called at most once per missing cell, from several
// threads at a time. An exception of compute stops the run after the running cells have ended and
// been committed, and is rethrown. SIGINT and SIGTERM commit what is finished, say how to resume
// and end the process with exit code 130. Column "engine" of the first row goes to provenance.
void run_cells(Run& run, std::span<const std::string> keys,
               const std::function<std::vector<Row>(std::size_t index)>& compute,
               const ExecOptions& options = {});

// This process does only cells with position % count == index (`--shard index/count`, index from
// 1), for machines that share nothing; run_cells then ends the process with exit code 0 when its
// share is done, and `esscher runs merge` puts the shares together. "" means everything.
void set_shard(const std::string& shard);

}  // namespace esscher
