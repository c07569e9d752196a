// Completion of a command line by the Tab key. The shell asks the program itself:
//
//   esscher complete-words WORD..    the words after "esscher" up to the cursor, the last unfinished
//
// and gets one candidate a line, "word<TAB>what it means", or ":files", ":files toml", ":folders" where
// the shell completes names of files. `esscher completion SHELL` prints the function that asks.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace esscher::cli {

inline constexpr const char* kCompleteWord = "complete-words";

struct Candidate {
  std::string word;
  std::string text;
};

// What may stand in the place of the last of `words`.
std::vector<Candidate> candidates(const VerbText& program, std::vector<std::string> words);

// Prints them; returns 0, because a shell has no use for an error in the middle of a line.
int print_candidates(const Command& app, const std::vector<std::string>& words);

}  // namespace esscher::cli
