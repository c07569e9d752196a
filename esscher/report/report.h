// From a run and its page to one self-contained HTML file: no network, opens from disk. The file
// computes nothing; statements, verdicts and captions come from the Page (report/page.h).
#pragma once

#include <filesystem>
#include <string>

#include "esscher/json/json.h"
#include "esscher/report/page.h"
#include "esscher/store/run.h"

namespace esscher {

// Stores the page in the run, where `esscher report` finds it.
void set_page(Run& run, const Page& page);

// The page that the run holds; a run without one gets a table and, where its columns allow it, a
// figure. Throws ArgumentError if the stored document is malformed.
Page page_of(const Run& run);

// Writes `file` and, beside it, the figures as JSON for restyling (report.html -> report.json).
// Throws FileError if it cannot write.
void write_report(const Run& run, const Page& page, const std::filesystem::path& file);
// Does the same with the page that the run holds.
void write_report(const Run& run, const std::filesystem::path& file);

std::string report_html(const Run& run, const Page& page);

// {"figures": [{"id", "section", "caption", "spec" with its data inside}]}
Json report_figures(const Page& page);

// Whether this build has the charts in it (npm was there).
bool report_has_charts();

}  // namespace esscher
