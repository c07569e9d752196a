// Length of a prompt, or cardinality of a measure: an integer >= 0 or infinity. Functions that need
// at least one token say so.
#pragma once

#include <cstdint>
#include <string>

namespace esscher {

class Length {
 public:
  // n >= 0; throws ArgumentError otherwise.
  Length(std::int64_t n);  // NOLINT(google-explicit-constructor): a number is a length
  static constexpr Length infinity() { return Length{}; }

  [[nodiscard]] constexpr bool is_infinite() const { return n_ < 0; }
  // The integer; throws ArgumentError for infinity.
  [[nodiscard]] std::int64_t count() const;
  // "1000" or "inf", as it appears in tables and JSON.
  [[nodiscard]] std::string text() const;
  // Inverse of text(); accepts "1000", "1e6" (integral values only) and "inf".
  static Length parse(const std::string& text);

  friend constexpr bool operator==(Length, Length) = default;

 private:
  constexpr Length() = default;
  std::int64_t n_ = -1;  // -1 stands for infinity
};

}  // namespace esscher
