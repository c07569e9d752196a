// `esscher paper` as a library call: one run in the store, one report.
//
//   Run run = Run::create_or_resume(dir, paper_run({.size = Size::quick}));
//   Json summary = *run_paper(run, {.size = Size::quick}, {}, {});
//   write_report(run, dir / "report.html");
#pragma once

#include <optional>
#include <span>
#include <string>

#include "esscher/paper/section.h"
#include "esscher/store/exec.h"

namespace esscher::paper {

// What makes two runs the same: size and seed (and the plant of a test), not the choice of
// sections, so a directory can be filled section by section.
RunInfo paper_run(const Options& options);

// Computes the cells of these sections (all if empty) that are not done, then stores document
// "report" with every section of the run whose cells are complete. Returns
//   {"size","seed","sections":[{"id","title","status","verdict","hypotheses","tables"}]}
// or nothing after one shard of several.
std::optional<Json> run_paper(Run& run, const Options& options, std::span<const std::string> ids,
                              const ExecOptions& exec);

}  // namespace esscher::paper
