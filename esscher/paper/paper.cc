#include "esscher/paper/paper.h"

#include <algorithm>

#include "esscher/base/error.h"

namespace esscher::paper {
namespace {

constexpr const char* kLead =
    "What Boursier and Boyer prove about softmax attention on long prompts (arXiv 2512.11784), "
    "measured. Attention over a prompt is an operator on the law of its tokens; a prompt of L "
    "tokens is a sample of that law. When L grows, softmax attention tends to a limit operator, "
    "which for Gaussian tokens is linear. Each section states one result in our words, checks its "
    "hypotheses with numbers, and gives a verdict computed from what was measured.";

struct Job {
  const Section* section;
  std::size_t cell;
};

std::string size_text(const Options& options) {
  switch (options.size) {
    case Size::tiny: return "This is the tiny size, for tests: expect rough numbers.";
    case Size::quick:
      return "This is the quick size; `esscher paper --full` runs the complete experiment.";
    case Size::full: return "This is the full size.";
  }
  return "";
}

std::string rerun(const Options& options, std::string_view id) {
  std::string text = "esscher paper --section " + std::string(id);
  if (options.size != Size::quick) text += " --size " + std::string(name(options.size));
  if (options.seed != 0) text += " --seed " + std::to_string(options.seed);
  return text + " --out runs/" + std::string(id);
}

std::vector<Row> rows_of(const Run& run, const std::vector<std::string>& keys) {
  std::vector<Row> rows;
  for (const std::string& key : keys) {
    for (Row& row : run.rows(key)) rows.push_back(std::move(row));
  }
  return rows;
}

Json summary_of(const Json& section) {
  return {{"id", section["id"]},
          {"title", section["title"]},
          {"status", section["verdict"]["status"]},
          {"verdict", section["verdict"]["text"]},
          {"hypotheses", section["hypotheses"]},
          {"tables", section["tables"]}};
}

}  // namespace

RunInfo paper_run(const Options& options) {
  std::string toml = "[paper]\nsize = \"" + std::string(name(options.size)) + "\"\n";
  if (!options.plant.empty()) toml += "plant = \"" + options.plant + "\"\n";
  return {"paper", toml, options.seed};
}

std::optional<Json> run_paper(Run& run, const Options& options, std::span<const std::string> ids,
                              const ExecOptions& exec) {
  if (!options.plant.empty()) (void)section(options.plant);
  for (const std::string& id : ids) (void)section(id);
  const auto wanted = [&](const Section& s) {
    return ids.empty() || std::find(ids.begin(), ids.end(), s.id) != ids.end();
  };
  std::vector<std::string> keys;
  std::vector<Job> jobs;
  for (const Section& s : sections()) {
    if (!wanted(s)) continue;
    const std::vector<std::string> cells = s.keys(options);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      keys.push_back(cells[i]);
      jobs.push_back({&s, i});
    }
  }
  const auto compute = [&](std::size_t i) {
    return jobs[i].section->compute(options, jobs[i].cell);
  };
  if (!run_cells(run, keys, compute, exec)) return std::nullopt;

  Json page = {{"title", "Softmax attention in the large-prompt regime, checked"},
               {"lead", std::string(kLead) + " " + size_text(options)},
               {"sections", Json::array()},
               {"datasets", Json::object()}};
  Json summary = {
      {"size", name(options.size)}, {"seed", options.seed}, {"sections", Json::array()}};
  for (const Section& s : sections()) {
    const std::vector<std::string> cells = s.keys(options);
    const auto done = [&](const std::string& key) { return run.done(key); };
    if (!std::all_of(cells.begin(), cells.end(), done)) continue;
    SectionReport part = s.report(options, rows_of(run, cells));
    Json document = {{"id", s.id}, {"title", s.title}};
    document.update(part.section);
    document["rerun"] = rerun(options, s.id);
    for (auto& [key, data] : part.datasets) page["datasets"][key] = std::move(data);
    if (wanted(s)) summary["sections"].push_back(summary_of(document));
    page["sections"].push_back(std::move(document));
  }
  run.set_document("report", page);
  return summary;
}

}  // namespace esscher::paper
