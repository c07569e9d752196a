// esscher scaling with [tokens]: token laws of the literature beside their limit formulas.
#pragma once

#include "cli/globals.h"
#include "esscher/config/table.h"

namespace esscher::cli {

void run_published_tokens(const Globals& globals, const Config& config);

}  // namespace esscher::cli
