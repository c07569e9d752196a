// The end of a message about a misspelt word: "did you mean dim?" if a known word is near
// (nearest_word of base/error.h), else "expected one of cov, dim, mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace esscher {

std::string suggest(std::string_view word, const std::vector<std::string>& known);

}  // namespace esscher
