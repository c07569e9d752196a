// esscher manual: the man page, made from the declarations of verbs, options and keys.
#include <fmt/format.h>

#include "cli/verbs.h"
#include "esscher/base/version.h"
#include "esscher/config/keys.h"

namespace esscher::cli {
namespace {

// Text that roff shows as it is: a backslash, a dash, and a dot or a quote at the start of a line
// mean something to it.
std::string plain(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else {
      if (c == '-') out += '\\';
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }

std::string entry(const std::string& head, const std::string& text) {
  return ".TP\n" + head + "\n" + (text.empty() ? "\\&" : text) + "\n";
}

// Lines as they were laid out.
std::string kept(std::string_view text) { return ".PP\n.nf\n" + plain(text) + "\n.fi\n"; }

std::string option_entry(const OptionText& option) {
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty() && !option.is_positional)
    head += " \\fI" + plain(option.value) + "\\fR";
  std::string text = plain(option.text);
  for (std::size_t i = 0; i < option.words.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + plain(option.words[i]);
  }
  return entry(head, text);
}

std::string verb_sections(const VerbText& verb, const std::string& path) {
  std::string out;
  if (!path.empty()) {
    out += ".SS \"esscher " + plain(path) + "\"\n" + plain(verb.text) + "\n";
    for (const OptionText& option : verb.options) {
      if (option.names.front() != "--help") out += option_entry(option);
    }
    if (!verb.footer.empty()) out += kept(verb.footer);
  }
  for (const VerbText& below : verb.verbs) {
    out += verb_sections(below, path.empty() ? below.name : path + " " + below.name);
  }
  return out;
}

std::string key_entry(const TableDeclaration& table, const KeyDeclaration& key) {
  std::string text = plain(key.meaning);
  for (std::size_t i = 0; i < key.words.size(); ++i) {
    text += (i == 0 ? ": " : ", ") + plain(key.words[i]);
  }
  if (!key.fallback.empty()) text += " (default " + plain(key.fallback) + ")";
  return entry(bold(std::string(table.name) + "." + std::string(key.name)), text);
}

std::string configuration() {
  std::string out =
      ".SH CONFIGURATION\nA file of TOML (\\fB\\-\\-config\\fR), or single keys "
      "(\\fB\\-\\-set\\fR).\n"
      "\\fBesscher config\\fR \\fIVERB\\fR prints a template.\n";
  for (const TableDeclaration& table : declared_tables()) {
    out += ".SS \"[" + plain(table.name) + "]\"\n" + plain(table.meaning) + "\n";
    for (const KeyDeclaration& key : table.keys) out += key_entry(table, key);
  }
  return out;
}

std::string manual(const VerbText& program) {
  return fmt::format(
      ".TH ESSCHER 1 \"\" \"esscher {}\"\n.SH NAME\nesscher \\- softmax attention as an operator "
      "on "
      "measures\n.SH SYNOPSIS\n.B esscher\n.I VERB\n[options]\n.SH DESCRIPTION\n{}\n.SH VERBS\n{}{}"
      ".SH ENVIRONMENT\n{}.SH \"EXIT STATUS\"\n{}{}{}",
      kVersion, plain(program.text), verb_sections(program, ""), configuration(),
      entry(bold("ESSCHER_TARGET"), "the instruction set of all kernels, see esscher targets"),
      entry("0", "the answer was given"),
      entry("2", "wrong usage or wrong input; nothing was written"),
      entry("1", "any other failure, such as a training that diverges"));
}

}  // namespace

void add_manual(const Command& app, Globals&) {
  const Command verb = app.add("manual", "The man page of the program");
  verb.footer("Examples:\n  esscher manual | man -l -");
  verb.run([app] { write_stdout(manual(app.describe())); });
}

}  // namespace esscher::cli
