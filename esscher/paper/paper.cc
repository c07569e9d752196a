#include "esscher/paper/paper.h"

#include <algorithm>
#include <map>

#include "esscher/json/rows.h"
#include "esscher/paper/claims.h"
#include "esscher/report/reading.h"
#include "esscher/report/report.h"
#include "esscher/store/exec.h"

namespace esscher::paper {
namespace {

bool is_default(const Paper& paper) { return paper.id == papers().front().id; }

// "esscher paper", with the choice if it is one.
std::string command(const Paper& paper) {
  return is_default(paper) ? "esscher paper" : "esscher paper --which " + std::string(paper.id);
}

std::string size_text(const Paper& paper, Size size) {
  switch (size) {
    case Size::tiny: return "This is the tiny size, for tests: expect rough numbers.";
    case Size::quick:
      return "This is the quick size; `" + command(paper) +
             " --full` runs the complete experiment.";
    case Size::full: return "This is the full size.";
  }
  return "";
}

std::string rerun(const Paper& paper, const Options& options, std::string_view id) {
  std::string text = command(paper) + " --section " + std::string(id);
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

std::vector<Part> parts_of(const Paper& paper, const Options& options,
                           std::span<const std::string> ids) {
  for (const std::string& id : ids) (void)statement(paper, id);
  std::vector<Part> parts;
  for (const Statement& s : paper.statements) {
    const bool wanted = ids.empty() || std::find(ids.begin(), ids.end(), s.id) != ids.end();
    parts.push_back({.statement = &s, .wanted = wanted, .cells = s.cells(options)});
  }
  return parts;
}

// The cells of the wanted parts as one grid.
TextCells text_cells_of(const Paper& paper, std::span<const Part> parts) {
  TextCells all{.keys = {}, .columns = columns_of_paper(paper), .compute = {}};
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

RunInfo paper_run(const Paper& paper, const Options& options) {
  std::string config = "[paper]\n";
  if (!is_default(paper)) config += "which = \"" + std::string(paper.id) + "\"\n";
  config += "size = \"" + std::string(name(options.size)) + "\"\n";
  return {.verb = "paper", .config_toml = std::move(config), .seed = options.seed};
}

PaperResult run_paper(Run& run, const Paper& paper, const Options& options,
                      std::span<const std::string> ids, const ExecOptions& exec) {
  const std::vector<Part> parts = parts_of(paper, options, ids);
  if (!run_text_cells(run, text_cells_of(paper, parts), exec)) return {.complete = false};
  std::map<std::string, std::string> finished;
  for (FinishedCell& cell : run.cells()) finished[cell.key] = std::move(cell.rows);

  PaperResult result;
  Page page{.title = paper.title, .lead = paper.lead};
  page.lead.append(" ").append(size_text(paper, options.size));
  const std::string where = run.directory().string();
  for (const Part& part : parts) {
    const std::optional<RecordTable> rows = stored_rows(finished, where, part);
    if (!rows) continue;
    SectionReport made = part.statement->report(options, where, *rows);
    made.section.rerun = rerun(paper, options, part.statement->id);
    page.datasets.merge(made.datasets);
    add_readings(made.section, page.datasets);
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
