#include "cli/execute.h"

#include <fmt/format.h>

#include "cli/process/process.h"

namespace esscher::cli {

Run open_run(const std::string& directory, const RunInfo& info) {
  return Run::create_or_resume(directory, info, ranks());
}

ExecOptions exec_options(const Globals& globals) {
  return watched_options(Shard::parse(globals.shard), globals.quiet);
}

void end_shard(const Globals& globals, Run& run) {
  const auto [done, total] = run.status();
  const std::string directory = run.directory().string();
  run.close();
  print_note(globals, fmt::format("shard {} is done: {} of {} cells in {}; put the shards together "
                                  "with\n  esscher runs merge SHARD... --out DIR\n",
                                  globals.shard, done, total, directory));
  if (globals.json && is_first_rank()) {
    write_stdout(dump_pretty({{"shard", globals.shard},
                              {"run", directory},
                              {"cells", {{"done", done}, {"total", total}}}}));
  }
  throw ShardEnd{};
}

}  // namespace esscher::cli
