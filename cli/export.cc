// esscher export: the rows of a run for other programs.
#include "esscher/store/export.h"

#include <fmt/format.h>

#include "cli/verbs.h"
#include "esscher/io/file.h"

namespace esscher::cli {
namespace {

std::string columns_text(const Run& run) {
  std::string text = fmt::format("{:<24} {:<8} {:<8} {}\n", "column", "type", "unit", "meaning");
  for (const Column& column : run.columns()) {
    text += fmt::format("{:<24} {:<8} {:<8} {}\n", column.name, name(column.type), column.unit,
                        column.meaning);
  }
  return text;
}

std::string exported(const Run& run, const std::string& format) {
  if (format == "columns") return columns_text(run);
  if (format == "csv") return export_csv(run);
  return format == "json" ? export_json(run) : export_npz(run);
}

}  // namespace

void add_export(const Command& app, Globals&) {
  const Command verb = app.add("export", "Write the rows of a run as CSV, JSON or NumPy .npz");
  verb.footer(
      "The bytes depend on the results only: not on threads, ranks, interruptions or the date.\n"
      "Examples:\n  esscher export results/rate --csv > rate.csv\n"
      "  esscher export results/rate --npz --file rate.npz");
  auto run = std::make_shared<std::string>();
  auto file = std::make_shared<std::string>();
  verb.option("run", *run, "run directory").required().type_name("RUN");
  verb.option("--file", *file, "where to write, default standard output").type_name("FILE");
  auto kind = std::make_shared<std::string>();
  verb.choice("format", *kind,
              {{"csv", "comma-separated values with a header"},
               {"json", "rows with configuration and seed"},
               {"npz", "one NumPy array per column"},
               {"columns", "the columns instead of the rows: type, unit and meaning"}});
  verb.run([run, file, kind] {
    const Run opened = Run::open(*run);
    const std::string bytes = exported(opened, *kind);
    file->empty() ? write_stdout(bytes) : write_text(*file, bytes);
  });
}

}  // namespace esscher::cli
