// esscher concentration --metric sup --radius R: the worst query of a ball.
#pragma once

#include "cli/globals.h"
#include "esscher/config/table.h"

namespace esscher::cli {

// Reads [measure], [attention] and lengths and replicates of [sweep]. Throws ConfigError without a
// radius, with a [query], and with an engine other than direct.
void execute_sup(const Globals& globals, const Config& config, double radius);

}  // namespace esscher::cli
