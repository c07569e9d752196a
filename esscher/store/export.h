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

// One array per column (numpy.load): numbers as f8 (null and missing are NaN), integers as i8 where
// all values are, booleans as b1. A text column NAME is i8 codes, -1 for none, into the rows of
// NAME.text, u1 [distinct, bytes] padded with zeros:  a["NAME.text"].view("S%d" % w).ravel()[codes]
std::string export_npz(const Run& run);

}  // namespace esscher
