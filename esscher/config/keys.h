// Every key of the configuration, declared once: where it stands, what it holds, its default and its
// meaning. Unknown keys are found with this declaration before anything is read, and the templates of
// `esscher config` and the JSON schema are made from it.
//
// A table may hold tables of another declaration: measure.parts are tables `measure` again, and a
// matrix may be a table `matrix`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/config/value.h"

namespace esscher {

// What a key holds.
enum class KeyKind {
  number,
  integer,
  boolean,
  word,      // one of `words`
  text,      // a file name or a sentence
  numbers,   // [x, ..]
  words,     // ["a", ..] of `words`
  rows,      // [[x, ..], ..]
  matrix,    // a number, rows, or a table `matrix`
  matrices,  // the same, or a list of rows
  length,    // a positive integer or "inf"
  lengths,   // [L, ..], or a table `lengths`
  table,     // a table `table`, or one of `words` if there are any
  tables     // an array of tables `table`
};

struct KeyDeclaration {
  std::string_view name;
  KeyKind kind = KeyKind::number;
  std::string_view fallback;  // the default as TOML; empty: there is none, the meaning says why
  std::string_view meaning;
  std::vector<std::string_view> words = {};
  std::string_view table = {};    // the declaration that a nested table follows
  std::string_view example = {};  // TOML that a template writes for a key without default
};

struct TableDeclaration {
  std::string_view name;
  std::string_view meaning;
  std::vector<KeyDeclaration> keys;
};

// A verb with the tables of its configuration; what it cannot do without is listed first.
struct VerbDeclaration {
  std::string_view name;  // "icl train"
  std::vector<std::string_view> required;
  std::vector<std::string_view> optional;
};

std::span<const TableDeclaration> declared_tables();
const TableDeclaration& declared_table(std::string_view name);
std::span<const std::string_view> root_tables();  // those that stand at the root of a file
std::span<const VerbDeclaration> declared_verbs();

// Throws ConfigError "where: unknown key a.b, did you mean a.c?" at the first key of `root` that no
// declaration has, so that a slip is named before its consequences.
void check_known_keys(const ConfigValue& root);

// All tables with their keys in Markdown, for docs/reference/toml.md.
std::string config_reference();

// A commented configuration of a verb: what is required with an example, everything else as a comment
// with its default. Throws ArgumentError on a verb without configuration.
std::string config_template(std::string_view verb);

}  // namespace esscher
