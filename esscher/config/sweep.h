// [sweep]: the grid of a concentration study.
//
//   lengths     [10, 100, 1000], or { from = 10, to = 1e6, per_decade = 4 }, which is the default
//   metrics     ["output", "grad_v", "grad_u"]; also grad_k, grad_q when K and Q are given
//   engine      "auto" | "exact" | "sampled" | "direct"
//   queries     512, drawn from [query] where it has to be sampled
//   replicates  8, prompts per query where they have to be sampled
#pragma once

#include <cstdint>
#include <vector>

#include "esscher/concentration/study.h"
#include "esscher/config/table.h"

namespace esscher {

// A missing table means the defaults.
StudyOptions read_sweep(const Table& root, std::uint64_t seed);

// Reads [measure], [prompt], [attention] and [query]. Queries are N(0, I) where there is no [query].
Problem read_problem(const Table& root);

// "auto" unless given.
Engine read_engine(const Table& sweep);

// { from, to, per_decade } as length_grid() of base/length_grid.h, 10, 10^6 and 4 where not given: the
// one reader of such a table, for every verb that sweeps lengths.
std::vector<std::int64_t> read_length_grid(const Table& grid);

}  // namespace esscher
