#include "esscher/base/error.h"

#include <array>
#include <charconv>

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

void throw_dimension(std::string_view where, std::string_view argument, long got, long expected) {
  std::string text;
  text.append(where).append(": ").append(argument).append(" has dimension ");
  text.append(std::to_string(got)).append(", expected ").append(std::to_string(expected));
  throw DimensionError(text);
}

}  // namespace esscher
