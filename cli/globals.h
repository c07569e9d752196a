// What every verb shares: the common options, the configuration, and how results leave the program.
//
// A verb is one file cli/VERB.cc with
//
//   void add_VERB(const Command& app, Globals& globals) {
//     const Command verb = add_verb(app, globals, "VERB", "one line", "Examples:\n  esscher VERB ...");
//     verb.run([&globals] { ... compute everything, then print_result(...) last ... });
//   }
//
// listed in cli/verbs.h. It throws typed errors; main.cc turns them into messages and exit codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "esscher/config/table.h"
#include "esscher/json/json.h"

namespace esscher::cli {

struct Globals {
  std::string config;            // --config FILE.toml
  std::vector<std::string> set;  // --set key.path=value, any number
  bool json = false;             // --json: one document on stdout and nothing else there
  std::string out;               // --out DIR
  int threads = 0;               // --threads N, 0 = one per core
  std::uint64_t seed = 0;        // --seed S
  bool has_seed = false;         // the user gave --seed
  std::string shard;             // --shard I/N: one part of the cells, see esscher/store/exec.h
  bool quiet = false;            // --quiet: no progress
  bool dry_run = false;          // --dry-run: say what would run, see cli/dry_run.h

  // `loaded` with every --set applied; every key is one that some verb knows.
  [[nodiscard]] Config assigned(Config loaded) const;
  // The file of --config (or nothing), assigned.
  [[nodiscard]] Config load_config() const;
  // The same from the published setting `preset` if it is not empty; ConfigError with --config.
  [[nodiscard]] Config load_config(const std::string& preset) const;
};

// Which common options mean something to a verb; --json and --quiet always do.
struct Offered {
  bool config = true;  // --config and --set
  bool out = true;
  bool threads = true;
  bool seed = true;
  bool shard = false;
  bool dry_run = false;
};

// What a verb offers that only looks something up.
inline constexpr Offered kLookup{.config = false, .out = false, .threads = false, .seed = false};

// A subcommand with its common options; `examples` is the footer of its --help.
Command add_verb(const Command& app, Globals& globals, const std::string& name,
                 const std::string& description, const std::string& examples,
                 const Offered& offered = {});

// The option --tokens FILE, and what it stands for: [measure] type = "empirical", file = FILE. It is a
// ConfigError to give a [measure] beside it.
Option add_tokens(const Command& verb, std::string& file);
void set_tokens(Config& config, const std::string& file);

// For bytes that are the result themselves; print_result() for documents. Call it last.
void write_stdout(const std::string& bytes);

// Writes the result: with --json the document on stdout, without it `text`. With --out DIR also the document as DIR/NAME.json, and a last line that
// names the report if there is one. Marks of cli/style.h are shown on a terminal only. Call it last.
void print_result(const Globals& globals, const std::string& name, const Json& document,
                  const std::string& text);

// A message for people on stderr, unless --quiet.
void print_note(const Globals& globals, const std::string& text);

}  // namespace esscher::cli
