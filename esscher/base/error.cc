#include "esscher/base/error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace esscher {

std::string to_text(double x) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x);
  return {buffer.data(), result.ptr};
}

void throw_argument(std::string_view where, std::string_view argument, std::string_view value,
                    std::string_view expected) {
  std::string text;
  text.append(where).append(": ").append(argument).append(" is ").append(value);
  text.append(", expected ").append(expected);
  throw ArgumentError(text);
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = word.size() / 2 + 1;  // at most half of the letters may be wrong
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i);
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t change = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

void throw_unknown_word(std::string_view what, std::string_view word,
                        const std::vector<std::string>& known) {
  std::string text;
  text.append(what).append(" is \"").append(word).append("\", expected one of ");
  for (std::size_t i = 0; i < known.size(); ++i) text.append(i == 0 ? "" : ", ").append(known[i]);
  const std::string near = nearest_word(word, known);
  if (!near.empty()) text.append("; did you mean ").append(near).append("?");
  throw ArgumentError(text);
}

void throw_dimension(std::string_view where, std::string_view argument, long got, long expected) {
  std::string text;
  text.append(where).append(": ").append(argument).append(" has dimension ");
  text.append(std::to_string(got)).append(", expected ").append(std::to_string(expected));
  throw DimensionError(text);
}

}  // namespace esscher
