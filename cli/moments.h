// esscher concentration --metric moments: mean and covariance of the outputs of self-attention.
#pragma once

#include "cli/globals.h"
#include "esscher/config/table.h"

namespace esscher::cli {

// Reads [measure], [attention] and lengths and replicates of [sweep]; [query] is not read, because
// the tokens of a prompt are its queries.
void execute_moments(const Globals& globals, const Config& config);

}  // namespace esscher::cli
