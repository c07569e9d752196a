// esscher export: the tables and figures of a run for other programs.
#include "esscher/store/export.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/text_table.h"
#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/io/file.h"
#include "esscher/report/pgf.h"
#include "esscher/report/tables.h"

namespace esscher::cli {
namespace {

struct ExportOptions {
  std::string run;
  std::string file;
  std::string table;
  std::string format;
};

std::string columns_text(const std::vector<Column>& columns) {
  std::string text = fmt::format("{:<24} {:<8} {:<8} {}\n", "column", "type", "unit", "meaning");
  for (const Column& column : columns) {
    text += fmt::format("{:<24} {:<8} {:<8} {}\n", column.name, name(column.type), column.unit,
                        column.meaning);
  }
  return text;
}

std::string list_text(const Run& run) {
  std::string text = fmt::format("{:<24} {:>8} {:>8}  {}\n", "table", "rows", "columns", "meaning");
  for (const RunTable& t : run_tables(run)) {
    text += fmt::format("{:<24} {:>8} {:>8}  {}\n", t.name, t.table.rows.size(),
                        t.table.columns.size(), t.meaning);
  }
  return text;
}

std::string table_text(const Run& run, const ExportOptions& options) {
  if (options.format == "list") return list_text(run);
  if (options.table.empty()) {
    if (options.format == "columns") return columns_text(run.columns());
    if (options.format == "csv") return export_csv(run.keyed_table());
    return options.format == "json" ? export_json(run) : export_npz(run.keyed_table());
  }
  const RunTable chosen = run_table(run, options.table);
  if (options.format == "columns") return columns_text(chosen.table.columns);
  if (options.format == "csv") return export_csv(chosen.table);
  if (options.format == "npz") return export_npz(chosen.table);
  return export_json(run, chosen.name, chosen.table);
}

// The files of --pgf and --latex.
std::map<std::string, std::string> latex_files(const Run& run, const ExportOptions& options) {
  if (options.format == "pgf") {
    const auto report = run.document("report");
    if (!report)
      throw FileError(options.run + ": the run has no page yet, so there are no figures");
    return pgf_figures(*report);
  }
  std::map<std::string, std::string> files;
  const auto add = [&](const RunTable& t) {
    std::string name = t.name;
    std::replace(name.begin(), name.end(), ':', '-');
    files[name + ".tex"] = latex_table(t.table, t.meaning);
  };
  if (!options.table.empty()) {
    add(run_table(run, options.table));
    return files;
  }
  for (const RunTable& t : run_tables(run)) {
    if (!t.name.starts_with("figure:")) add(t);
  }
  return files;
}

void write_folder(const Run& run, const ExportOptions& options) {
  const std::map<std::string, std::string> files = latex_files(run, options);
  const std::filesystem::path folder = options.file.empty()
                                           ? std::filesystem::path(options.run) / options.format
                                           : std::filesystem::path(options.file);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string text;
  for (const auto& [name, content] : files) {
    write_text(folder / name, content);
    if (name.ends_with(".tex")) text += (folder / name).string() + "\n";
  }
  write_stdout(text);
}

void execute(const ExportOptions& options) {
  const Run run = Run::open(options.run);
  if (options.format == "pgf" || options.format == "latex") {
    write_folder(run, options);
    return;
  }
  const std::string bytes = table_text(run, options);
  options.file.empty() ? write_stdout(bytes) : write_text(options.file, bytes);
}

}  // namespace

void add_export(const Command& app, Globals&) {
  const Command verb =
      app.add("export", "Write the tables of a run as CSV, JSON, NumPy .npz or LaTeX");
  verb.footer(
      "--list names the tables of a run: one per question, such as curve (D(L) with intervals), "
      "loss\n"
      "or heads; cells, the rows as they are stored, which is the default; and figure:NAME, the\n"
      "numbers behind a figure. --pgf writes each figure as a .tex that compiles alone, with "
      "pgfplots,\n"
      "and its columns as .dat; --latex writes tables with booktabs and numbers like 0.123(45).\n"
      "The bytes depend on the results only: not on threads, ranks, interruptions or the date.\n"
      "Examples:\n"
      "  esscher export results/rate --list\n"
      "  esscher export results/rate --table curve --csv > rate.csv\n"
      "  esscher export results/rate --npz --file rate.npz\n"
      "  esscher export results/rate --pgf --file figures\n"
      "  esscher export results/rate --latex --table curve --file tables");
  const auto options = std::make_shared<ExportOptions>();
  verb.option("run", options->run, "run directory").required().type_name("RUN");
  verb.option("--table", options->table, "which table, see --list").type_name("NAME");
  verb.option("--file", options->file,
              "where to write, default standard output; a folder for --pgf and --latex, default "
              "RUN/pgf and RUN/latex")
      .type_name("FILE");
  verb.choice("format", options->format,
              {{"csv", "comma-separated values with a header"},
               {"json", "rows with configuration and seed"},
               {"npz", "one NumPy array per column"},
               {"columns", "the columns instead of the rows: type, unit and meaning"},
               {"list", "the tables of the run"},
               {"pgf", "the figures as .tex and .dat for pgfplots"},
               {"latex", "the tables as .tex for booktabs"}});
  verb.run([options] { execute(*options); });
}

}  // namespace esscher::cli
