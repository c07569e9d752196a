// esscher export: the rows of a run for other programs.
#include "esscher/store/export.h"

#include "cli/verbs.h"
#include "esscher/io/file.h"

namespace esscher::cli {
void add_export(CLI::App& app, Globals&) {
  CLI::App* verb =
      app.add_subcommand("export", "Write the rows of a run as CSV, JSON or NumPy .npz");
  verb->footer(
      "The bytes depend on the results only: not on threads, ranks, interruptions or the date.\n"
      "Examples:\n  esscher export results/rate --csv > rate.csv\n"
      "  esscher export results/rate --npz --file rate.npz");
  auto run = std::make_shared<std::string>();
  auto file = std::make_shared<std::string>();
  verb->add_option("run", *run, "run directory")->required()->type_name("RUN");
  verb->add_option("--file", *file, "where to write, default standard output")->type_name("FILE");
  CLI::Option_group* format = verb->add_option_group("format");
  auto kind = std::make_shared<std::string>();
  const auto add = [&](const std::string& name, const std::string& text) {
    format->add_flag_callback(
        "--" + name, [kind, name] { *kind = name; }, text);
  };
  add("csv", "comma-separated values with a header");
  add("json", "rows with configuration and seed");
  add("npz", "one NumPy array per column");
  format->require_option(1);
  verb->callback([run, file, kind] {
    const Run opened = Run::open(*run);
    const std::string bytes = *kind == "csv"    ? export_csv(opened)
                              : *kind == "json" ? export_json(opened)
                                                : export_npz(opened);
    file->empty() ? write_stdout(bytes) : write_text(*file, bytes);
  });
}

}  // namespace esscher::cli
