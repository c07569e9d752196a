// --dry-run: what a verb would compute, by which engine, in how many cells, and roughly how long and
// with how much memory. Nothing is written. Times are measured on a small piece of the work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/globals.h"
#include "esscher/base/cells.h"

namespace esscher::cli {

// One part of the work, where parts are told one by one.
struct DryRunPart {
  std::string name;
  std::int64_t count = 0;
  std::optional<double> cpu_seconds = {};
  std::optional<double> memory_bytes = {};
};

struct DryRun {
  std::string verb;
  std::string what;    // what would be computed, one sentence without its full stop
  std::string engine;  // how, and why so
  std::string unit = "cells";
  std::int64_t count = 0;                   // of these
  std::optional<double> cpu_seconds = {};   // of all of them; absent if nobody can tell before
  std::string basis = {};                   // what the estimate was made from, or why there is none
  std::optional<double> memory_bytes = {};  // instead of what the probe took
  std::vector<DryRunPart> parts = {};
};

// CPU seconds of this process, all threads, that `work` takes.
double cpu_seconds(const std::function<void()>& work);

// CPU seconds of all cells, by the one in the middle, after a first time that makes tables.
template <HasColumns Row>
double cells_seconds(const Cells<Row>& cells) {
  const std::size_t middle = cells.keys.size() / 2;
  if (cells.keys.empty()) return 0;
  (void)cells.compute(middle);
  return cpu_seconds([&] { (void)cells.compute(middle); }) * static_cast<double>(cells.keys.size());
}

// Text, or with --json the document {"dry_run": true, "verb", "what", "engine", UNIT, "done",
// "cpu_seconds", "seconds", "threads", "basis", "memory_bytes", "run"}, and "parts" if there are any.
// `done` counts what a run in --out has already.
void print_dry_run(const Globals& globals, const DryRun& plan);

}  // namespace esscher::cli
