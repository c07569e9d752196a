#include "cli/completion.h"

#include <algorithm>

#include "cli/globals.h"
#include "esscher/config/keys.h"
#include "esscher/config/presets.h"

namespace esscher::cli {
namespace {

const VerbText* find_verb(const VerbText& verb, const std::string& name) {
  const auto at = std::find_if(verb.verbs.begin(), verb.verbs.end(),
                               [&](const VerbText& below) { return below.name == name; });
  return at == verb.verbs.end() ? nullptr : &*at;
}

const OptionText* find_option(const VerbText& verb, const std::string& name) {
  for (const OptionText& option : verb.options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
      return &option;
    }
  }
  return nullptr;
}

// The tables that a verb reads: those declared for it, else all.
std::vector<std::string_view> tables_of(const std::string& path) {
  for (const VerbDeclaration& verb : declared_verbs()) {
    if (verb.name != path) continue;
    std::vector<std::string_view> out = verb.required;
    out.insert(out.end(), verb.optional.begin(), verb.optional.end());
    return out;
  }
  return {root_tables().begin(), root_tables().end()};
}

// "table.key=" for every key of a verb, and "table.key=word" where a key takes one of a few words.
std::vector<Candidate> keys(const std::string& path, const std::string& current) {
  std::vector<Candidate> out;
  for (const std::string_view table : tables_of(path)) {
    for (const KeyDeclaration& key : declared_table(table).keys) {
      const std::string name = std::string(table) + "." + std::string(key.name) + "=";
      if (key.kind == KeyKind::word && current.starts_with(name)) {
        for (const std::string_view word : key.words) out.push_back({name + std::string(word), ""});
      } else {
        out.push_back({name, std::string(key.meaning)});
      }
    }
  }
  return out;
}

std::vector<Candidate> preset_names() {
  std::vector<Candidate> out;
  for (const Preset& preset : presets()) out.push_back({preset.name, preset.title});
  return out;
}

// The next word of a verb with a configuration, after the words `given`.
std::vector<Candidate> configured_verbs(const std::string& given) {
  std::vector<Candidate> out;
  for (const VerbDeclaration& verb : declared_verbs()) {
    if (!verb.name.starts_with(given)) continue;
    const std::string rest(verb.name.substr(given.size()));
    const std::string word = rest.substr(0, rest.find(' '));
    if (out.empty() || out.back().word != word) out.push_back({word, ""});
  }
  return out;
}

struct Place {
  const VerbText* verb;
  std::string path;   // "icl train"
  std::string given;  // positional words so far, each with a space behind it
  std::string current;
};

std::vector<Candidate> values(const OptionText& option, const Place& at) {
  if (!option.words.empty()) {
    std::vector<Candidate> out;
    for (const std::string& word : option.words) out.push_back({word, ""});
    return out;
  }
  const std::string& kind = option.value;
  if (kind == "KEY.PATH=VALUE") return keys(at.path, at.current);
  if (kind == "VERB") return configured_verbs(at.given);
  if (option.names.front() == "--preset" || at.path == "presets") return preset_names();
  if (kind == "FILE.toml") return {{":files toml", ""}};
  if (kind == "DIR") return {{":folders", ""}};
  if (kind == "RUN" || kind.starts_with("FILE") || option.is_positional) return {{":files", ""}};
  return {};
}

std::vector<Candidate> options_of(const VerbText& verb) {
  std::vector<Candidate> out;
  for (const OptionText& option : verb.options) {
    if (!option.is_positional) out.push_back({option.names.front(), option.text});
  }
  return out;
}

std::vector<Candidate> verbs_and_arguments(const Place& at) {
  std::vector<Candidate> out;
  if (at.given.empty()) {
    for (const VerbText& below : at.verb->verbs) out.push_back({below.name, below.text});
  }
  for (const OptionText& option : at.verb->options) {
    if (!option.is_positional) continue;
    for (Candidate& value : values(option, at)) out.push_back(std::move(value));
  }
  return out;
}

}  // namespace

std::vector<Candidate> candidates(const VerbText& program, std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  Place at{&program, "", "", words.back()};
  words.pop_back();
  const bool is_help = !words.empty() && words.front() == "help";
  if (is_help) words.erase(words.begin());
  const OptionText* open = nullptr;  // an option whose value is being written
  for (const std::string& word : words) {
    const OptionText* option = word.starts_with("-") ? find_option(*at.verb, word) : nullptr;
    if (open != nullptr) {
      open = nullptr;
    } else if (option != nullptr) {
      open = option->value.empty() ? nullptr : option;
    } else if (const VerbText* below = find_verb(*at.verb, word)) {
      at.verb = below;
      at.path += (at.path.empty() ? "" : " ") + word;
    } else if (!word.starts_with("-")) {
      at.given += word + " ";
    }
  }
  std::vector<Candidate> found;
  if (open != nullptr) {
    found = values(*open, at);
  } else if (at.current.starts_with("-") && !is_help) {
    found = options_of(*at.verb);
  } else {
    found = verbs_and_arguments(at);
    if (at.verb == &program && !is_help) found.push_back({"help", "what a verb does"});
    if (is_help) std::erase_if(found, [](const Candidate& c) { return c.word.starts_with(":"); });
  }
  std::erase_if(found, [&](const Candidate& candidate) {
    return !candidate.word.starts_with(":") && !candidate.word.starts_with(at.current);
  });
  return found;
}

int print_candidates(const Command& app, const std::vector<std::string>& words) {
  std::string out;
  for (const Candidate& candidate : candidates(app.describe(), words)) {
    const std::string line = candidate.text.substr(0, candidate.text.find('\n'));
    out += candidate.word + (line.empty() ? "" : "\t" + line) + "\n";
  }
  write_stdout(out);
  return 0;
}

}  // namespace esscher::cli
