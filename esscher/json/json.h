// JSON of documents and files. A JSON text has no infinity and no NaN: a number that is not finite
// becomes null, and put() says beside it what it was.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"

namespace esscher {

using Json = nlohmann::ordered_json;

// Strict parse (io/strict_json.h). `where` (a file name) starts the message of the FileError.
Json parse_json(std::string_view where, std::string_view text);

// x, or null if x is NaN or infinite.
Json number(double x);
Json number(Length length);             // integer, or "inf"
Json json_vector(const VectorView& v);  // [x, ..]
Json json_matrix(const MatrixView& m);  // [[..], ..]

// object[key] = x. If x is not finite the value is null and object["not_finite"][key] says "inf",
// "-inf" or "nan".
void put(Json& object, const std::string& key, double x);

// One line; two-space indented text with a final newline.
std::string dump(const Json& document);
std::string dump_pretty(const Json& document);

}  // namespace esscher
