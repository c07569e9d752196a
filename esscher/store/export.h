// Rows of a run for other programs, by their declared columns (base/columns.h). The bytes depend on
// the results only: no date, no timing, no machine, so runs of the same study on 1 or 100 cores,
// interrupted or not, export the same file.
//
// CSV and npz are flat. A column NAME that is an array becomes the columns NAME_0, NAME_1, .. or
// NAME_0_0, NAME_0_1, .. of its entries. A column that is a table of rows is in the JSON only.
#pragma once

#include <filesystem>
#include <string>

#include "esscher/store/run.h"

namespace esscher {

// RFC 4180 with a header: "cell", then every column in the declared order. What is absent is empty;
// numbers read back exactly, and those that are not finite are inf, -inf and nan.
std::string export_csv(const RecordTable& table);
std::string export_csv(const Run& run);  // of its cells

// {"verb","seed","config","columns":[name,..],"declared":[{"name","type","unit","meaning",..},..],
//  "rows":[{"cell":..,..},..]}. What is absent is left out; a number that is not finite is null, and
// "not_finite" in the same row says which it was.
std::string export_json(const Run& run);
// The same for another table of the run, with its name as "table".
std::string export_json(const Run& run, const std::string& name, const RecordTable& table);

// One array per flat column (numpy.load): reals and lengths as f8 with inf and nan, integers as i8,
// booleans as b1; integers and booleans of which some are absent as f8, where absent is nan. A text
// column NAME is i8 codes, -1 for absent, into the rows of NAME.text, u1 [distinct, bytes] padded
// with zeros:  a["NAME.text"].view("S%d" % w).ravel()[codes]
std::string export_npz(const RecordTable& table);
std::string export_npz(const Run& run);

}  // namespace esscher
