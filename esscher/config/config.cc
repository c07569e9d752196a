#include <algorithm>
#include <charconv>

#include "esscher/base/error.h"
#include "esscher/config/keys.h"
#include "esscher/config/table.h"
#include "esscher/io/file.h"

namespace esscher {
namespace {

constexpr std::string_view kShared[] = {"measure", "attention", "query", "reference", "prompt",
                                        "sweep",   "task",      "model", "train",     "flow"};

bool is_shared(std::string_view key) {
  return std::find(std::begin(kShared), std::end(kShared), key) != std::end(kShared);
}

[[noreturn]] void fail_set(std::string_view assignment, std::string_view problem) {
  throw ConfigError("--set " + std::string(assignment) + ": " + std::string(problem));
}

std::vector<std::string> split_path(std::string_view assignment, std::string_view path) {
  constexpr std::size_t kDeepest = 32;
  std::vector<std::string> out;
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view key = path.substr(0, dot);
    if (key.empty() || key.find_first_of(" \t\"'") != std::string_view::npos ||
        out.size() == kDeepest) {
      fail_set(assignment, "expected key.path=value");
    }
    // parts[0] is what messages write for parts.0.
    const std::size_t bracket = key.ends_with(']') ? key.find('[') : std::string_view::npos;
    out.emplace_back(key.substr(0, bracket));
    if (bracket != std::string_view::npos) {
      out.emplace_back(key.substr(bracket + 1, key.size() - bracket - 2));
    }
    if (dot == std::string_view::npos) return out;
    path.remove_prefix(dot + 1);
  }
}

ConfigValue& array_item(std::string_view assignment, ConfigValue::Array& array,
                        const std::string& key) {
  std::size_t i = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), i);
  if (error != std::errc{} || end != key.data() + key.size() || i >= array.size()) {
    fail_set(assignment, "\"" + key + "\" is not an index into an array of " +
                             std::to_string(array.size()) + " values");
  }
  return array[i];
}

// The place of the last key, with tables created on the way.
ConfigValue& place_of(std::string_view assignment, ConfigValue& root,
                      const std::vector<std::string>& keys,
                      const std::shared_ptr<const std::string>& source) {
  ConfigValue* node = &root;
  for (const std::string& key : keys) {
    if (ConfigValue::Array* array = node->array()) {
      node = &array_item(assignment, *array, key);
      continue;
    }
    ConfigValue::Map* map = node->map();
    if (map == nullptr) {
      fail_set(assignment, "\"" + key + "\" would be a key of " + node->text() + ", " +
                               std::string(node->type()));
    }
    if (key.find_first_not_of("0123456789") == std::string::npos) {
      fail_set(assignment, "there is no array with an item " + key +
                               " yet; give the whole array first, [{..}, ..]");
    }
    const auto [entry, is_new] = map->try_emplace(key);
    node = &entry->second;
    if (is_new) node->source = source;
  }
  return *node;
}

void check_used(const ConfigValue& value, const std::string& path) {
  if (!value.used) throw ConfigError(value.where() + ": unknown key " + path);
  const ConfigValue::Map* map = value.map();
  if (map != nullptr) {
    for (const auto& [key, item] : *map) check_used(item, path + "." + key);
  }
  const ConfigValue::Array* array = value.array();
  if (array == nullptr) return;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const ConfigValue& item = (*array)[i];
    if (item.map()) check_used(item, path + "[" + std::to_string(i) + "]");
  }
}

}  // namespace

Config::Config() : tree_(std::make_shared<ConfigTree>()) {}

Config Config::load(const std::filesystem::path& file) {
  return parse(read_text(file), file.string(), file.parent_path());
}

Config Config::parse(std::string_view text, const std::string& name,
                     const std::filesystem::path& folder) {
  Config config;
  config.tree_->root = parse_toml(text, name);
  config.tree_->file_source = config.tree_->root.source;
  config.tree_->folder = folder;
  return config;
}

void Config::set(std::string_view assignment, std::string_view door) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) fail_set(assignment, "expected key.path=value");
  const std::string source = door.empty() ? "--set " + std::string(assignment) : std::string(door);
  const std::vector<std::string> keys = split_path(assignment, assignment.substr(0, equals));
  ConfigValue value = parse_toml_value(assignment.substr(equals + 1), source);
  ConfigValue& place = place_of(assignment, tree_->root, keys, value.source);
  const bool is_set = place.source && place.source != value.source &&
                      place.source != tree_->file_source && place.map() == nullptr;
  // A second --set overrides the first; another option does not.
  const bool other_door = is_set && (!door.empty() || !place.source->starts_with("--set "));
  if (other_door) {
    throw ConfigError(std::string(assignment.substr(0, equals)) + " is given twice: by " +
                      *place.source + " and by " + source);
  }
  place = std::move(value);
}

Table Config::root() const { return {tree_, &tree_->root, ""}; }

void Config::check_known() const { check_known_keys(tree_->root); }

void Config::check_all_used() const {
  for (const auto& [key, value] : *tree_->root.map()) {
    if (!value.used && is_shared(key)) continue;
    check_used(value, key);
  }
}

std::string Config::resolved_toml() const { return write_toml(tree_->root); }

}  // namespace esscher
