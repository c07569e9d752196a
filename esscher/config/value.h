// The tree of a TOML file. Every value knows its source and line, so that an error can name them,
// and whether somebody read it, so that a misspelt key is an error instead of being ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace esscher {

struct ConfigValue {
  using Array = std::vector<ConfigValue>;
  using Map = std::map<std::string, ConfigValue>;  // sorted: equal contents give equal text

  std::variant<bool, std::int64_t, double, std::string, Array, Map> data = Map{};
  std::shared_ptr<const std::string> source;  // file name, or "--set key=value"
  int line = 0;                               // 0 if the source has no lines
  bool used = false;                          // a getter has returned it
  bool is_default = false;                    // written by a getter, not by the user

  [[nodiscard]] const Map* map() const { return std::get_if<Map>(&data); }
  [[nodiscard]] Map* map() { return std::get_if<Map>(&data); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&data); }
  [[nodiscard]] Array* array() { return std::get_if<Array>(&data); }

  [[nodiscard]] std::string where() const;      // "file.toml:3" or "--set a=1"
  [[nodiscard]] std::string text() const;       // as TOML on one line, cut after 80 characters
  [[nodiscard]] std::string_view type() const;  // "an integer", "a table", ...
};

// A whole configuration, which Config owns and every Table keeps alive.
struct ConfigTree {
  ConfigValue root;
  std::shared_ptr<const std::string> file_source;  // source of the file's values, unlike --set
  std::filesystem::path folder;                    // where the file's relative names start
};

// Contents only; where they were written does not matter.
bool same_data(const ConfigValue& a, const ConfigValue& b);

// Parses a document; ConfigError "name:line: ..." if it is not TOML or uses dates.
ConfigValue parse_toml(std::string_view text, const std::string& name);

// Parses the right side of --set: a TOML value, or else the text itself as a string.
ConfigValue parse_toml_value(std::string_view text, const std::string& source);

// A document that parses to the same data; keys sorted, so it is a function of the data alone.
std::string write_toml(const ConfigValue& root);

}  // namespace esscher
