// From a run to one self-contained HTML page: no network, opens from disk. The page computes
// nothing; statements, verdicts and captions come from document "report" of the run:
//
//   {"title", "lead",
//    "sections": [{"id", "title", "statement", "hypotheses": [..],
//                  "verdict": {"status": "holds|holds-fitted|fails|info", "text"},
//                  "text", "formulas": [MathML], "rerun": "command",
//                  "figures": [{"id", "spec", "caption"}],      spec: Vega-Lite, data by name
//                  "tables": [{"title", "columns": [..], "rows": [[..] | {..}]}]}],
//    "datasets": {"name": [{..}, ..]}}
//
// All of it is optional. Text is plain: `code` in backticks, a blank line starts a paragraph;
// anything else is escaped. A run without the document gets a table and, where the columns
// allow it, a figure.
#pragma once

#include <filesystem>
#include <string>

#include "esscher/store/run.h"

namespace esscher {

// Writes `page` and, beside it, the figures as JSON for restyling (report.html -> report.json).
// Does nothing on MPI ranks other than the first. Throws FileError if it cannot write, and
// ArgumentError if the document is malformed.
void write_report(const Run& run, const std::filesystem::path& page);

std::string report_html(const Run& run);

// {"figures": [{"id", "section", "caption", "spec" with its data inside}]}
Json report_figures(const Run& run);

// Whether this build has the charts in it (npm was there).
bool report_has_charts();

}  // namespace esscher
