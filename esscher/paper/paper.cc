#include "esscher/paper/paper.h"

#include <algorithm>
#include <map>

#include "esscher/base/error.h"
#include "esscher/json/rows.h"
#include "esscher/paper/claims.h"
#include "esscher/paper/statements.h"
#include "esscher/report/report.h"
#include "esscher/store/exec.h"

namespace esscher::paper {
namespace {

constexpr const char* kTitle = "Softmax attention in the large-prompt regime, checked";
constexpr const char* kLead =
    "What Boursier and Boyer prove about softmax attention on long prompts (arXiv 2512.11784), "
    "measured. Attention over a prompt is an operator on the law of its tokens; a prompt of L "
    "tokens is a sample of that law. When L grows, softmax attention tends to a limit operator, "
    "which for Gaussian tokens is linear. Each section states one result in our words, checks its "
    "hypotheses with numbers, and gives a verdict computed from what was measured.";

std::string size_text(Size size) {
  switch (size) {
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

// A statement with its cells for one set of options.
struct Part {
  const Statement* statement = nullptr;
  bool wanted = false;
  RecordCells cells = {};
};

std::vector<Part> parts_of(const Options& options, std::span<const std::string> ids) {
  for (const std::string& id : ids) (void)statement(id);
  std::vector<Part> parts;
  for (const Statement& s : statements()) {
    const bool wanted = ids.empty() || std::find(ids.begin(), ids.end(), s.id) != ids.end();
    parts.push_back({.statement = &s, .wanted = wanted, .cells = s.cells(options)});
  }
  return parts;
}

// The cells of the wanted parts as one grid.
TextCells text_cells_of(std::span<const Part> parts) {
  TextCells all{.keys = {}, .columns = paper_columns(), .compute = {}};
  std::vector<std::pair<const Part*, std::size_t>> places;
  for (const Part& part : parts) {
    for (std::size_t i = 0; part.wanted && i < part.cells.keys.size(); ++i) {
      all.keys.push_back(part.cells.keys[i]);
      places.emplace_back(&part, i);
    }
  }
  all.compute = [places = std::move(places)](std::size_t i) {
    const auto& [part, cell] = places.at(i);
    const RecordTable rows = part->cells.compute(cell);
    return TextCells::Rows{.text = rows_text(rows), .engine = engine_of(rows)};
  };
  return all;
}

// The rows of a statement from the finished cells of a run; nothing if a cell is missing.
std::optional<RecordTable> stored_rows(const std::map<std::string, std::string>& finished,
                                       const std::string& where, const Part& part) {
  RecordTable rows{.columns = part.statement->columns, .rows = {}};
  for (const std::string& key : part.cells.keys) {
    const auto found = finished.find(key);
    if (found == finished.end()) return std::nullopt;
    RecordTable cell =
        parse_rows(where + ": cell \"" + key + "\"", part.statement->columns, found->second);
    std::move(cell.rows.begin(), cell.rows.end(), std::back_inserter(rows.rows));
  }
  return rows;
}

}  // namespace

RunInfo paper_run(const Options& options) {
  return {.verb = "paper",
          .config_toml = "[paper]\nsize = \"" + std::string(name(options.size)) + "\"\n",
          .seed = options.seed};
}

std::vector<Column> paper_columns() {
  std::vector<Column> all;
  std::map<std::string, std::size_t> uses;
  for (const Statement& s : statements()) {
    for (const Column& column : s.columns) {
      if (!column.optional) ++uses[column.name];
      const auto same = [&](const Column& known) { return known.name == column.name; };
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(column);
    }
  }
  for (Column& column : all) column.optional = uses[column.name] < statements().size();
  return all;
}

PaperResult run_paper(Run& run, const Options& options, std::span<const std::string> ids,
                      const ExecOptions& exec) {
  const std::vector<Part> parts = parts_of(options, ids);
  if (!run_text_cells(run, text_cells_of(parts), exec)) return {.complete = false};
  std::map<std::string, std::string> finished;
  for (FinishedCell& cell : run.cells()) finished[cell.key] = std::move(cell.rows);

  PaperResult result;
  Page page{.title = kTitle, .lead = kLead};
  page.lead.append(" ").append(size_text(options.size));
  const std::string where = run.directory().string();
  for (const Part& part : parts) {
    const std::optional<RecordTable> rows = stored_rows(finished, where, part);
    if (!rows) continue;
    SectionReport made = part.statement->report(options, where, *rows);
    made.section.rerun = rerun(options, part.statement->id);
    page.datasets.merge(made.datasets);
    if (part.wanted) {
      result.claims.push_back(claim_json(made));
      result.sections.push_back(made.section);
    }
    page.sections.push_back(std::move(made.section));
  }
  set_page(run, page);
  return result;
}

}  // namespace esscher::paper
