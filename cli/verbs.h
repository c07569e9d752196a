// Every verb of the program, in the order of `esscher --help`.
#pragma once

#include "cli/globals.h"

namespace esscher::cli {

void add_limit(CLI::App& app, Globals& globals);
void add_attend(CLI::App& app, Globals& globals);
void add_universal(CLI::App& app, Globals& globals);
void add_heads(CLI::App& app, Globals& globals);
void add_runs(CLI::App& app, Globals& globals);
void add_report(CLI::App& app, Globals& globals);
void add_export(CLI::App& app, Globals& globals);
void add_concentration(CLI::App& app, Globals& globals);
void add_length(CLI::App& app, Globals& globals);
void add_bench(CLI::App& app, Globals& globals);
void add_icl(CLI::App& app, Globals& globals);
void add_presets(CLI::App& app, Globals& globals);
void add_paper(CLI::App& app, Globals& globals);
void add_targets(CLI::App& app, Globals& globals);

}  // namespace esscher::cli
