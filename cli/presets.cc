#include "esscher/config/presets.h"

#include <fmt/format.h>

#include "cli/verbs.h"

namespace esscher::cli {

void add_presets(const Command& app, Globals& globals) {
  const Command verb =
      add_verb(app, globals, "presets", "published settings, runnable by name",
               "Examples:\n  esscher presets\n  esscher presets --show von-oswald", kLookup);
  static std::string show;
  verb.option("--show", show, "print the configuration of one preset").type_name("NAME");
  verb.run([&globals] {
    if (!show.empty()) (void)load_preset(show);
    Json rows = Json::array();
    std::string text;
    for (const Preset& p : presets()) {
      if (!show.empty() && p.name != show) continue;
      Json row{{"name", p.name},
               {"verb", p.verb},
               {"title", p.title},
               {"provenance", p.provenance},
               {"expected", p.expected}};
      if (!show.empty()) row["toml"] = p.toml;
      rows.push_back(row);
      text += show.empty() ? fmt::format("{:<26}{:<15}{}\n", p.name, p.verb, p.title) : p.toml;
    }
    print_result(globals, "presets", Json{{"presets", rows}}, text);
  });
}

}  // namespace esscher::cli
