// Runs made in pieces on machines that share nothing, and the runs of a directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "esscher/store/run.h"

namespace esscher {

// Makes `out` from shards of one study: same verb, seed and configuration (else ConfigError), cells
// disjoint or equal (else RuntimeFailure naming the cell). `out` appears complete or not at all.
void merge_runs(const std::vector<std::filesystem::path>& shards, const std::filesystem::path& out);

struct RunSummary {
  std::filesystem::path directory;
  std::string verb;
  RunStatus status;
  std::string state;  // "complete", "running (process ..)", "interrupted", "damaged: .."
  double age = 0;     // seconds since the last change
};

// Runs in `directory` itself and up to two levels below, by name.
std::vector<RunSummary> list_runs(const std::filesystem::path& directory);

}  // namespace esscher
