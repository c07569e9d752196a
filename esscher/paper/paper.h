// `esscher paper` as a library call: one run in the store, one report.
//
//   const Paper& which = paper("large-prompts");
//   Run run = Run::create_or_resume(dir, paper_run(which, {.size = Size::quick}));
//   PaperResult result = run_paper(run, which, {.size = Size::quick}, {}, {});
//   write_report(run, dir / "report.html");
#pragma once

#include <span>
#include <string>
#include <vector>

#include "esscher/json/json.h"
#include "esscher/paper/papers.h"
#include "esscher/paper/section.h"

namespace esscher {
class Run;
struct ExecOptions;
struct RunInfo;
}  // namespace esscher

namespace esscher::paper {

// What makes two runs the same: paper, size and seed, not the choice of sections, so a directory can
// be filled section by section.
RunInfo paper_run(const Paper& paper, const Options& options);

struct PaperResult {
  bool complete = true;                // false after one shard of several: there is no page then
  std::vector<Section> sections = {};  // those that were asked for
  std::vector<Json> claims = {};       // the same as claims for programs (claims.h)
};

// Computes the cells of the statements with these ids (all if empty) that are not done, then stores
// the page with every section of the run whose cells are complete. Throws ArgumentError on an
// unknown id. The cells of all statements have one list of columns: the union of theirs.
PaperResult run_paper(Run& run, const Paper& paper, const Options& options,
                      std::span<const std::string> ids, const ExecOptions& exec);

}  // namespace esscher::paper
