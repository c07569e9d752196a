// Every verb of the program, in the order of `esscher --help`.
#pragma once

#include "cli/globals.h"

namespace esscher::cli {

void add_targets(CLI::App& app, Globals& globals);

}  // namespace esscher::cli
