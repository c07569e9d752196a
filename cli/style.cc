#include "cli/style.h"

#include <unistd.h>

#include <cstdlib>

namespace esscher::cli {
namespace {

// Control characters that no text of the program holds otherwise.
constexpr char kStrong = '\x01', kGood = '\x02', kBad = '\x03', kEnd = '\x04';

std::string marked(char mark, std::string_view text) {
  return std::string(1, mark).append(text).append(1, kEnd);
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string strong(std::string_view text) { return marked(kStrong, text); }
std::string good(std::string_view text) { return marked(kGood, text); }
std::string bad(std::string_view text) { return marked(kBad, text); }

bool shows_colour(std::FILE* stream) {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !is_dumb && !is_set("NO_COLOR") && ::isatty(::fileno(stream)) == 1;
}

std::string styled(std::string_view text, bool is_coloured) {
  std::string out;
  for (const char c : text) {
    if (c < kStrong || c > kEnd) {
      out += c;
    } else if (is_coloured) {
      out += c == kStrong ? "\033[1m"
             : c == kGood ? "\033[32m"
             : c == kBad  ? "\033[31m"
                          : "\033[0m";
    }
  }
  return out;
}

}  // namespace esscher::cli
