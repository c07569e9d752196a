#include "esscher/config/presets.h"

#include <algorithm>

#include "esscher/base/error.h"
#include "preset_files.h"  // made by cmake/presets.cmake

namespace esscher {
namespace {

Preset describe(const PresetFile& file) {
  const Config config = Config::parse(file.text, "preset " + std::string(file.name));
  const Table about = config.root().table("preset");
  return {std::string(file.name), about.text("title"), about.text("provenance"),
          about.text("expected"), about.text("verb"),  std::string(file.text)};
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> out;
    for (const PresetFile& file : kPresetFiles) out.push_back(describe(file));
    std::ranges::sort(out, {}, &Preset::name);
    return out;
  }();
  return all;
}

void allow_preset(const Table& root) {
  if (const std::optional<Table> preset = root.find_table("preset")) preset->allow_all();
}

Config load_preset(std::string_view name) {
  std::string known, begun;
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (preset.name == name) return Config::parse(preset.toml, "preset " + preset.name);
    known += (known.empty() ? "" : ", ") + preset.name;
    if (preset.name.starts_with(name)) begun += (begun.empty() ? "" : " or ") + preset.name;
    names.push_back(preset.name);
  }
  const std::string meant = begun.empty() || name.empty() ? nearest_word(name, names) : begun;
  throw ConfigError("preset is '" + std::string(name) + "', expected one of: " + known +
                    (meant.empty() ? "" : "; did you mean " + meant + "?"));
}

}  // namespace esscher
