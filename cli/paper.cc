// esscher paper: the paper, statement by statement, in one run and one report.
#include "esscher/paper/paper.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/execute.h"
#include "cli/verbs.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

struct PaperOptions {
  bool full = false;
  std::string size = "quick";
  std::vector<std::string> sections;
};

paper::Options paper_options(const Globals& globals, const PaperOptions& given) {
  paper::Options options;
  options.size = given.full ? paper::Size::full : paper::parse_size(given.size);
  options.seed = globals.seed;
  const char* plant = std::getenv("ESSCHER_PLANT");  // for tests, see paper::Options
  if (plant != nullptr) options.plant = plant;
  return options;
}

std::string summary_text(const Json& summary, const std::string& page) {
  std::string text;
  for (const Json& section : summary["sections"]) {
    text += fmt::format("{:<13} {}\n              {}\n", section["status"].get<std::string>(),
                        section["title"].get<std::string>(), section["verdict"].get<std::string>());
  }
  return text + fmt::format("report: {}\n", page);
}

void run_verb(const Globals& globals, const PaperOptions& given) {
  const paper::Options options = paper_options(globals, given);
  for (const std::string& id : given.sections) (void)paper::section(id);
  std::string directory = globals.out;
  if (directory.empty()) {
    directory = options.size == paper::Size::quick
                    ? "runs/paper"
                    : fmt::format("runs/paper-{}", name(options.size));
  }
  Run run = open_run(directory, paper::paper_run(options));
  const std::optional<Json> done =
      paper::run_paper(run, options, given.sections, exec_options(globals));
  if (!done) end_shard(globals, run);
  Json summary = *done;
  const std::filesystem::path page = run.directory() / "report.html";
  if (run.is_writer()) write_report(run, page);
  summary["run"] = directory;
  summary["report"] = page.string();
  run.flush();
  if (!run.is_writer()) return;
  Globals print = globals;
  print.out.clear();  // the run is what --out holds
  print_result(print, "paper", summary, summary_text(summary, page.string()));
}

}  // namespace

void add_paper(CLI::App& app, Globals& globals) {
  std::string ids;
  for (const paper::Section& s : paper::sections()) {
    ids += fmt::format("  {:<13} {}\n", s.id, s.title);
  }
  CLI::App* verb =
      add_verb(app, globals, "paper", "The paper, statement by statement: measured, judged, drawn",
               "Writes a run and its report.html to runs/paper (or --out DIR); the same command "
               "resumes it.\n"
               "Sections:\n" +
                   ids +
                   "Examples:\n"
                   "  esscher paper\n"
                   "  esscher paper --section lemma-2.1 --out runs/lemma\n"
                   "  esscher paper --full --out runs/paper-full");
  const auto options = std::make_shared<PaperOptions>();
  verb->add_option("--size", options->size, "tiny (seconds), quick (minutes) or full")
      ->type_name("SIZE");
  verb->add_flag("--full", options->full,
                 "the authors' complete training experiment (long; resumes)");
  verb->add_option("--section", options->sections, "only this section; may be repeated")
      ->type_name("ID");
  verb->callback([&globals, options] { run_verb(globals, *options); });
}

}  // namespace esscher::cli
