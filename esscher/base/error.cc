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

namespace {

// Insertions, deletions, substitutions and swaps of neighbours. Three rows of the usual table are kept,
// because a swap looks back by two.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = word.size() / 2 + 1;  // at most half of the letters may be wrong
  for (const std::string& candidate : known) {
    // A longer or a shorter form of the same word is a common slip: dimension for dim.
    const bool is_form = std::min(word.size(), candidate.size()) >= 3 &&
                         (word.starts_with(candidate) || candidate.starts_with(word));
    const std::size_t edits = is_form ? 1 : edit_distance(word, candidate);
    if (edits < least) {
      least = edits;
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
