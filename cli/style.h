// Bold and colour for people at a terminal. Text marks what stands out; the marks become escape
// sequences where a person reads it, and nothing elsewhere.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace esscher::cli {

// `text` with marks around it.
std::string strong(std::string_view text);
std::string good(std::string_view text);
std::string bad(std::string_view text);

// Whether `stream` is a terminal that shows colours: not a dumb one, and NO_COLOR is empty or not set
// (no-color.org).
bool shows_colour(std::FILE* stream);

// The marks of `text` as escape sequences, or without them.
std::string styled(std::string_view text, bool is_coloured);

}  // namespace esscher::cli
