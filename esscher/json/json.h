// JSON of results and files. Numbers that are not finite become null, so a document is always JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"

namespace esscher {

using Json = nlohmann::ordered_json;

// Strict parse: no trailing text, no duplicate keys, nesting at most 64 deep. `where` (a file name)
// starts the message of the FileError.
Json parse_json(std::string_view where, std::string_view text);

// x, or null if x is NaN or infinite.
Json number(double x);
Json number(Length length);             // integer, or "inf"
Json json_vector(const VectorView& v);  // [x, ..]
Json json_matrix(const MatrixView& m);  // [[..], ..]

// One line; two-space indented text with a final newline.
std::string dump(const Json& document);
std::string dump_pretty(const Json& document);

}  // namespace esscher
