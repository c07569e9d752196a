#include "esscher/base/suggest.h"

#include "esscher/base/error.h"

namespace esscher {

std::string suggest(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  if (!near.empty()) return "did you mean " + near + "?";
  std::string out = "expected one of";
  for (std::size_t i = 0; i < known.size(); ++i) out += (i == 0 ? " " : ", ") + known[i];
  return out;
}

}  // namespace esscher
