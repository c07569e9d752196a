// The verbs and options of the program as plain text, read from their declarations: completion and
// the manual are made from it. Command::describe() makes it.
#pragma once

#include <string>
#include <vector>

namespace esscher::cli {

struct OptionText {
  std::vector<std::string>
      names;          // "--out", "-o"; the one name of a positional argument has no dash
  std::string value;  // what stands for its value, such as FILE.toml; empty for a flag
  std::vector<std::string> words;  // the values it takes, if they are few
  std::string text;
  bool is_positional = false;
};

struct VerbText {
  std::string name;
  std::string text;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<VerbText> verbs;
};

}  // namespace esscher::cli
