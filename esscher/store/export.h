// Rows of a run for other programs. The bytes depend on the results only: no date, no timing, no
// machine, so runs of the same study on 1 or 100 cores, interrupted or not, export the same file.
#pragma once

#include <filesystem>
#include <string>

#include "esscher/store/run.h"

namespace esscher {

// RFC 4180 with a header: "cell", then every column in order of first appearance. Missing and null
// are empty; numbers read back exactly.
std::string export_csv(const Run& run);

// {"verb","seed","config","columns":[..],"rows":[{"cell":..,..},..]}
std::string export_json(const Run& run);

}  // namespace esscher
