#include <cctype>
#include <string>

#include "esscher/config/keys.h"

namespace esscher {
namespace {

std::string_view kind_text(KeyKind kind) {
  switch (kind) {
    case KeyKind::number: return "number";
    case KeyKind::integer: return "integer";
    case KeyKind::boolean: return "true or false";
    case KeyKind::word: return "word";
    case KeyKind::text: return "text";
    case KeyKind::numbers: return "[x, ..]";
    case KeyKind::words: return "[word, ..]";
    case KeyKind::rows: return "[[x, ..], ..]";
    case KeyKind::matrix: return "matrix";
    case KeyKind::matrices: return "matrix or [matrix, ..]";
    case KeyKind::length: return "integer or \"inf\"";
    case KeyKind::lengths: return "[L, ..] or a grid";
    case KeyKind::table: return "table";
    case KeyKind::tables: return "array of tables";
  }
  return "";
}

// A cell of a Markdown table.
std::string cell_of(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string row_of(const KeyDeclaration& key) {
  std::string holds(kind_text(key.kind));
  if (!key.table.empty() && (key.kind == KeyKind::table || key.kind == KeyKind::tables)) {
    holds += " `" + std::string(key.table) + "`";
  }
  std::string meaning = cell_of(key.meaning);
  for (std::size_t i = 0; i < key.words.size(); ++i) {
    meaning += (i == 0 ? ": `\"" : ", `\"") + std::string(key.words[i]) + "\"`";
  }
  const std::string fallback = key.fallback.empty() ? "" : "`" + cell_of(key.fallback) + "`";
  return "| `" + std::string(key.name) + "` | " + holds + " | " + fallback + " | " + meaning +
         " |\n";
}

std::string verbs_of(std::string_view table) {
  std::string out;
  for (const VerbDeclaration& verb : declared_verbs()) {
    for (const auto* list : {&verb.required, &verb.optional}) {
      for (const std::string_view name : *list) {
        if (name != table) continue;
        out += (out.empty() ? "`" : ", `") + std::string(verb.name) + "`" +
               (list == &verb.required ? " (needed)" : "");
      }
    }
  }
  return out;
}

}  // namespace

std::string config_reference() {
  std::string out;
  for (const TableDeclaration& table : declared_tables()) {
    const std::string name(table.name);
    bool is_root = false;
    for (const std::string_view root : root_tables()) is_root = is_root || root == table.name;
    out += "### " + (is_root ? "\\[" + name + "\\]" : "Table `" + name + "`") + "\n\n";
    std::string meaning(table.meaning);
    if (!meaning.empty()) meaning[0] = static_cast<char>(std::toupper(meaning[0]));
    const std::string verbs = verbs_of(table.name);
    out += meaning + "." + (verbs.empty() ? "" : " Read by " + verbs + ".") + "\n\n";
    out += "| key | holds | default | meaning |\n|---|---|---|---|\n";
    for (const KeyDeclaration& key : table.keys) out += row_of(key);
    out += "\n";
  }
  return out;
}

}  // namespace esscher
