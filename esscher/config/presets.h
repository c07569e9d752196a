// Published experiments by name: the files of experiments/, built into the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "esscher/config/table.h"

namespace esscher {

struct Preset {
  std::string name;
  std::string title;       // one line
  std::string provenance;  // paper, section, which code defaults
  std::string expected;    // what a run shows
  std::string verb;        // the verb it is meant for, e.g. "icl flow"
  std::string toml;        // the file
};

// They stand in alphabetical order of their names.
const std::vector<Preset>& presets();

// A file of experiments/ is an ordinary --config too: its table [preset], which says where it comes
// from, is no unknown key.
void allow_preset(const Table& root);

// Returns the configuration of that name. Throws ConfigError, which lists the names, otherwise.
Config load_preset(std::string_view name);

}  // namespace esscher
