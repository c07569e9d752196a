// Typed errors. Each message names the function or file, the argument or key, the value that was
// given and what was expected. The library throws these and nothing else; it never prints.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace esscher {

// Root of every exception thrown by the library on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An argument has a value outside what the function accepts.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

// Shapes that must agree do not.
class DimensionError : public ArgumentError {
 public:
  using ArgumentError::ArgumentError;
};

// A point lies outside the domain of a function, e.g. the log-MGF of Laplace at |a| >= 1/b.
class DomainError : public ArgumentError {
 public:
  using ArgumentError::ArgumentError;
};

// A closed form or engine does not exist for this object; the message names the one that does.
class CapabilityError : public Error {
 public:
  using Error::Error;
};

// A file cannot be read, is malformed, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};

// A configuration key is unknown, missing, of the wrong type or has a wrong value.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A computation started well and failed: it did not converge, it diverged, or a process was lost.
class RuntimeFailure : public Error {
 public:
  using Error::Error;
};

// Shortest text that reads back as the same double ("0.1", "1e-300", "nan").
std::string to_text(double x);

// throw ArgumentError("gaussian: variance is -1, expected a number >= 0")
[[noreturn]] void throw_argument(std::string_view where, std::string_view argument,
                                 std::string_view value, std::string_view expected);

// throw ArgumentError("engine is "exakt", expected one of exact, sampled; did you mean exact?")
[[noreturn]] void throw_unknown_word(std::string_view what, std::string_view word,
                                     const std::vector<std::string>& known);

// The known word that is nearest to this one, by single-letter edits; "" if none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// The same as a DimensionError, for two sizes that must agree.
[[noreturn]] void throw_dimension(std::string_view where, std::string_view argument, long got,
                                  long expected);

inline void check_dimension(std::string_view where, std::string_view argument, long got,
                            long expected) {
  if (got != expected) throw_dimension(where, argument, got, expected);
}

}  // namespace esscher
