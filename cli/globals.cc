#include "cli/globals.h"

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cli/process/process.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/config/presets.h"
#include "esscher/io/file.h"
#include "esscher/store/exec.h"

namespace esscher::cli {

Config Globals::load_config() const {
  Config loaded = config.empty() ? Config() : Config::load(config);
  for (const std::string& assignment : set) loaded.set(assignment);
  return loaded;
}

Config Globals::load_config(const std::string& preset) const {
  if (preset.empty()) return load_config();
  if (!config.empty()) {
    throw ConfigError("--preset and --config both given, expected one of them");
  }
  Config loaded = load_preset(preset);
  for (const std::string& assignment : set) loaded.set(assignment);
  return loaded;
}

CLI::App* add_verb(CLI::App& app, Globals& globals, const std::string& name,
                   const std::string& description, const std::string& examples) {
  const char* group = "Common options";
  CLI::App* verb = app.add_subcommand(name, description);
  verb->footer(examples);
  verb->add_option("--config", globals.config, "configuration file")
      ->type_name("FILE.toml")
      ->group(group);
  verb->add_option("--set", globals.set, "override one key; the value is TOML or a bare word")
      ->type_name("KEY.PATH=VALUE")
      ->allow_extra_args(false)
      ->group(group);
  verb->add_flag("--json", globals.json, "print one JSON document instead of text")->group(group);
  verb->add_option("--out", globals.out, "folder for files")->type_name("DIR")->group(group);
  verb->add_option("--threads", globals.threads, "threads, 0 for one per core")
      ->type_name("N")
      ->check(CLI::Range(0, 4096))
      ->group(group);
  verb->add_option_function<std::uint64_t>(
          "--seed",
          [&globals](std::uint64_t seed) {
            globals.seed = seed;
            globals.has_seed = true;
          },
          "seed of every random number (default 0)")
      ->type_name("S")
      ->group(group);
  verb->add_flag("--quiet", globals.quiet, "no progress, no text beside --json")->group(group);
  verb->add_option("--shard", globals.shard, "do one part of the cells of a run, for 'runs merge'")
      ->type_name("I/N")
      ->group(group);
  verb->parse_complete_callback([&globals] {
    if (globals.threads > 0) set_thread_count(globals.threads);
    (void)Shard::parse(globals.shard);  // a wrong one is an error also where no cell is computed
  });
  return verb;
}

void write_stdout(const std::string& bytes) {
  // Nothing is lost after this: a reader that has seen enough (head) ends the program quietly.
  std::signal(SIGPIPE, SIG_DFL);
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (!whole || std::fflush(stdout) != 0) throw RuntimeFailure("cannot write to standard output");
}

void print_result(const Globals& globals, const std::string& name, const Json& document,
                  const std::string& text) {
  if (!is_first_rank()) return;
  if (!globals.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(globals.out, error);
    write_text(std::filesystem::path(globals.out) / (name + ".json"), dump_pretty(document));
  }
  if (globals.json) print_note(globals, text);
  write_stdout(globals.json ? dump_pretty(document) : text);
}

void print_note(const Globals& globals, const std::string& text) {
  if (!globals.quiet) std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace esscher::cli
