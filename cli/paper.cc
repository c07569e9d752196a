// esscher paper: a paper, statement by statement, in one run and one report.
#include "esscher/paper/paper.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/dry_run.h"
#include "cli/execute.h"
#include "cli/style.h"
#include "cli/verbs.h"
#include "esscher/paper/cost.h"
#include "esscher/report/page_json.h"
#include "esscher/report/report.h"

namespace esscher::cli {
namespace {

struct PaperOptions {
  std::string which = std::string(paper::papers().front().id);
  bool full = false;
  std::string size = "quick";
  std::vector<std::string> sections;
};

paper::Options paper_options(const Globals& globals, const PaperOptions& given) {
  return {.size = given.full ? paper::Size::full : parse_enum<paper::Size>(given.size),
          .seed = globals.seed};
}

Json section_summary(const Section& section) {
  const Json whole = section_json(section);
  return {{"id", section.id},
          {"title", section.title},
          {"status", name(section.verdict->status)},
          {"verdict", section.verdict->text},
          {"hypotheses", whole.at("hypotheses")},
          {"tables", whole.at("tables")}};
}

Json summary_json(const paper::Paper& paper, const paper::Options& options,
                  const paper::PaperResult& result) {
  Json summary = {{"which", paper.id},
                  {"size", name(options.size)},
                  {"seed", options.seed},
                  {"sections", Json::array()}};
  for (const Section& section : result.sections) {
    summary["sections"].push_back(section_summary(section));
  }
  summary["claims"] = result.claims;
  return summary;
}

std::string summary_text(const std::vector<Section>& sections, const std::string& page) {
  std::string text;
  for (const Section& section : sections) {
    const VerdictStatus status = section.verdict->status;
    const std::string word = fmt::format("{:<13}", name(status));
    const std::string shown = status == VerdictStatus::fails  ? bad(word)
                              : status == VerdictStatus::info ? strong(word)
                                                              : good(word);
    text += fmt::format("{} {}\n              {}\n", shown, section.title, section.verdict->text);
  }
  return text + fmt::format("report: {}\n", page);
}

DryRun estimate(const paper::Paper& paper, const paper::Options& options,
                const std::vector<std::string>& ids) {
  DryRun plan{.verb = "paper",
              .what = fmt::format("the paper {} at size {}", paper.id, name(options.size)),
              .engine = "exact where there is a formula, sampled and trained elsewhere"};
  plan.cpu_seconds = 0;
  for (const paper::Statement& s : paper.statements) {
    if (!ids.empty() && std::find(ids.begin(), ids.end(), s.id) == ids.end()) continue;
    DryRunPart part{.name = std::string(s.id),
                    .count = static_cast<std::int64_t>(s.cells(options).keys.size())};
    if (const auto cost = paper::cost_of(s.id, options.size)) {
      part.cpu_seconds = cost->cpu_seconds;
      part.memory_bytes = 1e6 * cost->megabytes;
      plan.memory_bytes = std::max(plan.memory_bytes.value_or(0), *part.memory_bytes);
    }
    plan.cpu_seconds = plan.cpu_seconds && part.cpu_seconds
                           ? std::optional(*plan.cpu_seconds + *part.cpu_seconds)
                           : std::nullopt;
    plan.count += part.count;
    plan.parts.push_back(std::move(part));
  }
  const std::size_t sections = plan.parts.size();
  plan.what += fmt::format(", {} section{}", sections, sections == 1 ? "" : "s");
  plan.basis = plan.cpu_seconds ? "what its sections took on two cores with AVX-512"
                                : "some sections take hours at this size and were not measured";
  return plan;
}

std::string default_directory(const paper::Paper& paper, const paper::Options& options) {
  std::string directory = "runs/paper";
  if (paper.id != paper::papers().front().id) directory += fmt::format("-{}", paper.id);
  if (options.size != paper::Size::quick) directory += fmt::format("-{}", name(options.size));
  return directory;
}

void run_verb(const Globals& globals, const PaperOptions& given) {
  const paper::Paper& paper = paper::paper(given.which);
  const paper::Options options = paper_options(globals, given);
  for (const std::string& id : given.sections) (void)paper::statement(paper, id);
  const std::string directory =
      globals.out.empty() ? default_directory(paper, options) : globals.out;
  if (globals.dry_run) {
    Globals at = globals;
    at.out = directory;
    print_dry_run(at, estimate(paper, options, given.sections));
    return;
  }
  Run run = open_run(directory, paper::paper_run(paper, options));
  const paper::PaperResult result =
      paper::run_paper(run, paper, options, given.sections, exec_options(globals));
  if (!result.complete) end_shard(globals, run);
  const std::filesystem::path page = run.directory() / "report.html";
  if (run.is_writer()) write_report(run, page);
  Json summary = summary_json(paper, options, result);
  summary["run"] = directory;
  summary["report"] = page.string();
  run.flush();
  if (!run.is_writer()) return;
  Globals print = globals;
  print.out.clear();  // the run is what --out holds
  print_result(print, "paper", summary, summary_text(result.sections, page.string()));
}

// Papers and their sections, for the help.
std::string papers_text() {
  std::string text;
  for (const paper::Paper& paper : paper::papers()) {
    text += fmt::format("--which {}: {}\n", paper.id, paper.about);
    std::size_t width = 0;
    for (const paper::Statement& s : paper.statements) width = std::max(width, s.id.size());
    for (const paper::Statement& s : paper.statements) {
      text += fmt::format("  {:<{}}  {}\n", s.id, width, s.title);
    }
  }
  return text;
}

}  // namespace

void add_paper(const Command& app, Globals& globals) {
  const Command verb =
      add_verb(app, globals, "paper", "A paper, statement by statement: measured, judged, drawn",
               "Writes a run and its report.html to runs/paper (or --out DIR); the same command "
               "resumes it.\n" +
                   papers_text() +
                   "Examples:\n"
                   "  esscher paper\n"
                   "  esscher paper --section lemma-2.1 --out runs/lemma\n"
                   "  esscher paper --full --out runs/paper-full",
               {.config = false, .shard = true, .dry_run = true});
  const auto options = std::make_shared<PaperOptions>();
  verb.option("--which", options->which, "the paper; large-prompts if not given").type_name("ID");
  verb.option("--size", options->size, "tiny (seconds), quick (minutes) or full").type_name("SIZE");
  verb.flag("--full", options->full, "the authors' complete training experiment (long; resumes)");
  verb.option("--section", options->sections, "only this section; may be repeated").type_name("ID");
  verb.run([&globals, options] { run_verb(globals, *options); });
}

}  // namespace esscher::cli
