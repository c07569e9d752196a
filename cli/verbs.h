// Every verb of the program, in the order of `esscher --help`.
#pragma once

#include "cli/globals.h"

namespace esscher::cli {

void add_limit(const Command& app, Globals& globals);
void add_attend(const Command& app, Globals& globals);
void add_universal(const Command& app, Globals& globals);
void add_scaling(const Command& app, Globals& globals);
void add_heads(const Command& app, Globals& globals);
void add_model(const Command& app, Globals& globals);
void add_runs(const Command& app, Globals& globals);
void add_report(const Command& app, Globals& globals);
void add_export(const Command& app, Globals& globals);
void add_cite(const Command& app, Globals& globals);
void add_concentration(const Command& app, Globals& globals);
void add_length(const Command& app, Globals& globals);
void add_bench(const Command& app, Globals& globals);
void add_icl(const Command& app, Globals& globals);
void add_config(const Command& app, Globals& globals);
void add_presets(const Command& app, Globals& globals);
void add_explore(const Command& app, Globals& globals);
void add_paper(const Command& app, Globals& globals);
void add_targets(const Command& app, Globals& globals);
void add_completion(const Command& app, Globals& globals);
void add_manual(const Command& app, Globals& globals);

}  // namespace esscher::cli
