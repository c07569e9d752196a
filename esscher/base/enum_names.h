// Names of enumerators, said once per enum. The words of TOML, of the command line, of result rows
// and of error messages are these.
//
//   enum class Engine { exact, sampled };
//   constexpr auto enum_names(Engine) {
//     return EnumNames<Engine, 2>{
//         "engine", {{{Engine::exact, "exact"}, {Engine::sampled, "sampled"}}}};
//   }
//
//   name(Engine::exact)            is "exact"
//   parse_enum<Engine>("sampled")  is Engine::sampled; another word is an ArgumentError that lists
//                                  the words there are
//   enum_words<Engine>()           is {"exact", "sampled"}
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "esscher/base/error.h"

namespace esscher {

template <class E, std::size_t N>
struct EnumNames {
  std::string_view what;  // how messages call the enum, e.g. "engine"
  std::array<std::pair<E, std::string_view>, N> table;
};

// An enum with a table of names in its own namespace.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e).table;
};

template <NamedEnum E>
constexpr std::string_view name(E value) {
  for (const auto& [enumerator, word] : enum_names(value).table) {
    if (enumerator == value) return word;
  }
  return "?";
}

template <NamedEnum E>
std::vector<std::string> enum_words() {
  std::vector<std::string> words;
  for (const auto& [enumerator, word] : enum_names(E{}).table) words.emplace_back(word);
  return words;
}

// Inverse of name(); throws ArgumentError on another word.
template <NamedEnum E>
E parse_enum(std::string_view text) {
  const auto names = enum_names(E{});
  for (const auto& [enumerator, word] : names.table) {
    if (word == text) return enumerator;
  }
  throw_unknown_word(names.what, text, enum_words<E>());
}

}  // namespace esscher
