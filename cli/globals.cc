#include "cli/globals.h"

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cli/process/process.h"
#include "cli/style.h"
#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/config/presets.h"
#include "esscher/io/file.h"
#include "esscher/store/exec.h"

namespace esscher::cli {

Config Globals::assigned(Config loaded) const {
  for (const std::string& assignment : set) loaded.set(assignment);
  loaded.check_known();
  return loaded;
}

Config Globals::load_config() const {
  return assigned(config.empty() ? Config() : Config::load(config));
}

Config Globals::load_config(const std::string& preset) const {
  if (preset.empty()) return load_config();
  if (!config.empty()) {
    throw ConfigError("--preset and --config both given, expected one of them");
  }
  return assigned(load_preset(preset));
}

Command add_verb(const Command& app, Globals& globals, const std::string& name,
                 const std::string& description, const std::string& examples,
                 const Offered& offered) {
  const char* group = "Common options";
  const Command verb = app.add(name, description);
  verb.footer(examples);
  if (offered.config) {
    verb.option("-c,--config", globals.config, "configuration file")
        .type_name("FILE.toml")
        .group(group);
    verb.option("-s,--set", globals.set, "override one key; the value is TOML or a bare word")
        .type_name("KEY.PATH=VALUE")
        .one_value()
        .group(group);
  }
  verb.flag("--json", globals.json, "print one JSON document instead of text").group(group);
  if (offered.out) {
    verb.option("-o,--out", globals.out, "folder for files").type_name("DIR").group(group);
  }
  if (offered.threads) {
    verb.option("--threads", globals.threads, "threads, 0 for one per core")
        .type_name("N")
        .between(0, 4096)
        .group(group);
  }
  std::optional<Option> seed;
  if (offered.seed) {
    seed = verb.option("--seed", globals.seed, "seed of every random number (default 0)")
               .type_name("S")
               .group(group);
  }
  verb.flag("--quiet", globals.quiet, "no progress").group(group);
  if (offered.shard) {
    verb.option("--shard", globals.shard, "do one part of the cells of a run, for 'runs merge'")
        .type_name("I/N")
        .group(group);
  }
  if (offered.dry_run) {
    verb.flag("--dry-run", globals.dry_run,
              "say what would run, with which engine, how long and in how much memory")
        .group(group);
  }
  verb.before([&globals, seed] {
    globals.has_seed = seed && seed->given();
    if (globals.threads > 0) set_thread_count(globals.threads);
    (void)Shard::parse(globals.shard);  // a wrong one is an error also where no cell is computed
  });
  return verb;
}

Option add_tokens(const Command& verb, std::string& file) {
  return verb
      .option("--tokens", file,
              "tokens instead of [measure], one per row: .npy .csv .npz#name .safetensors#tensor")
      .type_name("FILE");
}

void set_tokens(Config& config, const std::string& file) {
  if (file.empty()) return;
  if (config.root().has("measure")) {
    config.root().fail_because("measure", "given beside --tokens; give the tokens once");
  }
  config.set("measure.type=empirical", "--tokens " + file);
  config.set("measure.file=" + Json(file).dump(), "--tokens " + file);
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
  std::string shown = text;
  if (!globals.out.empty()) {
    const std::filesystem::path folder = globals.out;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    write_text(folder / (name + ".json"), dump_pretty(document));
    // A verb without a page reports by its document.
    const std::filesystem::path page = folder / "report.html";
    const bool has_page = std::filesystem::exists(page, error);
    shown += "report: " + (has_page ? page : folder / (name + ".json")).string() + "\n";
  }
  write_stdout(globals.json ? dump_pretty(document) : styled(shown, shows_colour(stdout)));
}

void print_note(const Globals& globals, const std::string& text) {
  if (!globals.quiet) std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace esscher::cli
