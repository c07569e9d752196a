// esscher runs: what is in a folder of runs, and shards put together.
#include <fmt/format.h>

#include "cli/process/progress.h"
#include "cli/verbs.h"
#include "esscher/store/merge.h"

namespace esscher::cli {
namespace {

void list(const Globals& globals, const std::string& directory) {
  Json rows = Json::array();
  std::string text =
      fmt::format("{:<32} {:<14} {:>13} {:>10}  {}\n", "run", "verb", "cells", "age", "state");
  for (const auto& run : list_runs(directory)) {
    rows.push_back({{"run", run.directory.string()},
                    {"verb", run.verb},
                    {"done", run.status.done},
                    {"total", run.status.total},
                    {"age", run.age},
                    {"state", run.state}});
    text += fmt::format("{:<32} {:<14} {:>13} {:>10}  {}\n", run.directory.string(), run.verb,
                        fmt::format("{}/{}", run.status.done, run.status.total),
                        duration_text(run.age), run.state);
  }
  if (rows.empty()) text = "no runs in " + directory + "\n";
  print_result(globals, "runs", {{"runs", rows}}, text);
}

}  // namespace

void add_runs(const Command& app, Globals& globals) {
  const Command verb = app.add("runs", "List runs, or merge shards made on other machines");
  verb.footer(
      "Examples:\n  esscher runs\n  esscher runs results --json\n"
      "  esscher runs merge shard1 shard2 --out whole");
  auto directory = std::make_shared<std::string>(".");
  verb.option("dir", *directory, "folder to look in, two levels deep").type_name("DIR");
  verb.flag("--json", globals.json, "print one JSON document instead of text");
  const Command merge =
      verb.add("merge", "Make one run from shards: same configuration, cells disjoint or equal");
  auto shards = std::make_shared<std::vector<std::string>>();
  auto out = std::make_shared<std::string>();
  merge.option("shards", *shards, "run directories").required().type_name("RUN");
  merge.option("--out", *out, "directory of the merged run").required().type_name("DIR");
  merge.run([&globals, shards, out] {
    merge_runs({shards->begin(), shards->end()}, *out);
    const auto [done, total] = Run::open(*out).status();
    print_result(globals, "merge", {{"run", *out}, {"done", done}, {"total", total}},
                 fmt::format("{}: {} of {} cells\n", *out, done, total));
  });
  verb.run([&globals, verb, directory] {
    if (!verb.verb_given()) list(globals, *directory);
  });
}

}  // namespace esscher::cli
