// esscher report: the page of a run.
#include "esscher/report/report.h"

#include "cli/verbs.h"

namespace esscher::cli {

void add_report(const Command& app, Globals& globals) {
  const Command verb = app.add("report", "Write the report of a run as one HTML page");
  verb.footer(
      "Writes RUN/report.html and RUN/report.json (the figures, for restyling).\n"
      "Examples:\n  esscher report results/rate\n  esscher report results/rate --page rate.html");
  auto run = std::make_shared<std::string>();
  auto page = std::make_shared<std::string>();
  verb.option("run", *run, "run directory").required().type_name("RUN");
  verb.option("--page", *page, "where to write it").type_name("FILE.html");
  verb.flag("--json", globals.json, "print one JSON document instead of text");
  verb.run([&globals, run, page] {
    const std::filesystem::path target =
        page->empty() ? std::filesystem::path(*run) / "report.html" : std::filesystem::path(*page);
    write_report(Run::open(*run), target);
    print_result(globals, "report", {{"report", target.string()}, {"charts", report_has_charts()}},
                 target.string() + "\n");
  });
}

}  // namespace esscher::cli
