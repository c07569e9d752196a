// esscher config: a commented configuration of a verb, and the JSON schema of all of them.
#include <memory>

#include "cli/verbs.h"
#include "esscher/base/error.h"
#include "esscher/config/keys.h"
#include "esscher/config/schema.h"

namespace esscher::cli {
namespace {

struct ConfigOptions {
  std::vector<std::string> verb;
  bool schema = false;
};

void write(const ConfigOptions& options) {
  if (options.schema == !options.verb.empty()) {
    throw ConfigError("config: expected a verb or --schema, for example 'esscher config length'");
  }
  if (options.schema) {
    write_stdout(dump_pretty(config_schema()));
    return;
  }
  std::string verb;
  for (const std::string& word : options.verb) verb += (verb.empty() ? "" : " ") + word;
  write_stdout(config_template(verb));
}

}  // namespace

void add_config(const Command& app, Globals&) {
  const Command verb = app.add("config", "A commented configuration to start from");
  verb.footer(
      "Prints every key of a verb with its default and its meaning; what the verb needs is filled "
      "in.\n"
      "Examples:\n"
      "  esscher config concentration > exp.toml\n"
      "  esscher config icl train > train.toml\n"
      "  esscher config --schema > esscher.schema.json   # for editors that check TOML");
  const auto options = std::make_shared<ConfigOptions>();
  verb.option("verb", options->verb, "the verb, one or two words").type_name("VERB");
  verb.flag("--schema", options->schema, "the JSON schema of all tables instead");
  verb.run([options] { write(*options); });
}

}  // namespace esscher::cli
