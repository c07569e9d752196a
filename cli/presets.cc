#include "esscher/config/presets.h"

#include <fmt/format.h>

#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/json/rows.h"
#include "esscher/paper/preset_claims.h"

namespace esscher::cli {
namespace {

std::string claim_text(const paper::ClaimRow& row) {
  const std::string head = fmt::format("{:<26}{:<11}{}", row.preset, name(row.verdict), row.claim);
  if (row.verdict == paper::ClaimVerdict::no_number) return head + "\n";
  const std::string within = row.relation == "=" ? fmt::format(" +- {:.3g}", row.tolerance) : "";
  return head +
         fmt::format(": {:.6g} {} {:.6g}{}\n", row.found, row.relation, row.expected, within);
}

void check(const Globals& globals, const std::string& wanted, bool full) {
  const paper::ClaimOptions options{.full = full, .assignments = globals.set, .seed = globals.seed};
  std::vector<paper::ClaimRow> rows;
  for (const Preset& p : presets()) {
    if (!wanted.empty() && p.name != wanted) continue;
    const std::vector<paper::ClaimRow> part = paper::check_preset(p.name, options);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  if (rows.empty()) (void)load_preset(wanted);  // throws, with the names
  std::string text;
  bool failed = false;
  for (const paper::ClaimRow& row : rows) {
    text += claim_text(row);
    failed = failed || row.verdict == paper::ClaimVerdict::fails;
  }
  print_result(globals, "presets-check", Json{{"rows", rows_json(rows)}}, text);
  if (failed) throw RuntimeFailure("a claim fails");
}

// `checked` is set when this verb ran: its parent runs after it and has nothing left to do.
void add_check(const Command& presets_verb, Globals& globals, bool& checked) {
  static std::string wanted;
  static bool full = false;
  const Command verb = add_verb(presets_verb, globals, "check",
                                "What the sources of presets claim, checked on a run of each",
                                "Examples:\n  esscher presets check\n"
                                "  esscher presets check zfb-shifts\n"
                                "  esscher presets check he-2503.12734 --full");
  verb.option("name", wanted, "one preset, all unless given").type_name("NAME");
  verb.flag("--full", full, "the published number of training steps");
  verb.run([&globals, &checked] {
    checked = true;
    check(globals, wanted, full);
  });
}

}  // namespace

void add_presets(const Command& app, Globals& globals) {
  const Command verb =
      add_verb(app, globals, "presets", "Published settings, runnable by name",
               "Examples:\n  esscher presets\n  esscher presets --show von-oswald", kLookup);
  static std::string show;
  static bool checked = false;
  add_check(verb, globals, checked);
  verb.option("--show", show, "print the configuration of one preset").type_name("NAME");
  verb.run([&globals] {
    if (checked) return;
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
