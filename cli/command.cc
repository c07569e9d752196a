#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "esscher/base/error.h"
#include "esscher/base/suggest.h"

namespace esscher::cli {
namespace {

// The words of an option that has one_of(): CLI11 keeps them as "{a,b}" after the name of the value.
std::vector<std::string> words_of(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// Help in words of its own: CLI11 speaks of FLOAT, Excludes and [Option Group: ..].
class HelpText : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out;
    if (option->get_type_size() != 0) {
      out += " " + value_text(*option);
      if (!option->get_default_str().empty()) out += " (default " + option->get_default_str() + ")";
      if (option->get_expected_max() == CLI::detail::expected_max_vector_size) out += " ...";
      if (option->get_required()) out += " (required)";
    }
    for (const CLI::Option* other : option->get_needs()) {
      out += " (only with " + other->get_name() + ")";
    }
    for (const CLI::Option* other : option->get_excludes()) {
      out += " (not with " + other->get_name() + ")";
    }
    return out;
  }

  // A command without a name is a group of options of which one is chosen.
  std::string make_expanded(const CLI::App* app) const override {
    if (!app->get_name().empty()) return Formatter::make_expanded(app);
    std::string out = app->get_group() + ", one of these:\n";
    out.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(out.front())));
    for (const CLI::Option* option : app->get_options()) {
      if (option != app->get_help_ptr()) out += make_option(option, false);
    }
    return out;
  }

 private:
  static std::string value_text(const CLI::Option& option) {
    const std::vector<std::string> words = words_of(option.get_type_name());
    if (!words.empty()) return CLI::detail::join(words, "|");
    const std::string type = option.get_type_name();
    const std::string name = type.substr(0, type.find(':'));
    return name == "FLOAT" ? "X" : name == "INT" || name == "UINT" ? "N" : name;
  }
};

// A number that `fits`; the message says what was given and what was expected.
CLI::Validator number_that(const std::string& expected, std::function<bool(double)> fits) {
  return CLI::Validator(
      [expected, fits = std::move(fits)](std::string& text) {
        char* end = nullptr;
        const double x = std::strtod(text.c_str(), &end);
        const bool is_number = end != text.c_str() && *end == '\0';
        return is_number && fits(x) ? std::string()
                                    : "the value is " + text + ", expected a number " + expected;
      },
      "");
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_name().empty()) out.push_back(verb->get_name());
  }
  return out;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    for (const std::string& name : option->get_snames()) out.push_back("-" + name);
  }
  // A command without a name is a group of options of which one is chosen.
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!group->get_name().empty()) continue;
    for (const std::string& name : option_names(*group)) out.push_back(name);
  }
  return out;
}

OptionText option_text(const CLI::Option& option) {
  OptionText out;
  out.text = option.get_description();
  out.is_positional = option.get_positional();
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  if (out.names.empty()) out.names.push_back(option.get_name());
  if (option.get_items_expected_max() == 0) return out;  // a flag
  const std::string type = option.get_type_name();
  out.words = words_of(type);
  out.value = type.substr(0, type.find_first_of(":{"));
  return out;
}

VerbText verb_text(const CLI::App& app) {
  VerbText out{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    out.options.push_back(option_text(*option));
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    const bool is_group = verb->get_name().empty();  // options of which one is chosen
    if (!is_group && verb->get_group().empty()) continue;
    VerbText below = verb_text(*verb);
    if (is_group) {
      std::move(below.options.begin(), below.options.end(), std::back_inserter(out.options));
    } else {
      out.verbs.push_back(std::move(below));
    }
  }
  return out;
}

// A command that takes words of its own, such as a folder, may have any word in the place of a verb.
bool takes_words(const CLI::App& app) {
  return !app.get_options([](const CLI::Option* o) { return o->get_positional(); }).empty();
}

// What CLI11 only calls unexpected: a misspelt verb, or an option that the verb does not have.
std::string unexpected(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  std::string path = root.get_name();
  for (const std::string& word : words) {
    if (word.starts_with("-")) break;
    const auto verbs =
        app->get_subcommands([&](const CLI::App* a) { return a->get_name() == word; });
    if (verbs.empty()) {
      const std::vector<std::string> known = verb_names(*app);
      if (known.empty() || takes_words(*app)) break;
      return "there is no verb '" + word + "' of " + path + ", " + suggest(word, known);
    }
    app = verbs.front();
    path += " " + word;
  }
  const std::vector<std::string> known = option_names(*app);
  for (const std::string& word : words) {
    const bool is_long = word.starts_with("--");  // the value of a short one may follow at once
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const bool is_option = name.size() > 1 && name[0] == '-' && (is_long || std::isalpha(name[1]));
    if (!is_option || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = is_long ? nearest_word(name, known) : "";
    return path + " has no option " + name + ", " +
           (near.empty() ? "see 'esscher help" + path.substr(7) + "'"
                         : "did you mean " + near + "?");
  }
  return "";
}

}  // namespace

Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::group(const std::string& name) const { return Option(option_->group(name)); }
Option Option::required() const { return Option(option_->required()); }
Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::one_value() const { return Option(option_->allow_extra_args(false)); }
Option Option::show_default() const { return Option(option_->capture_default_str()); }
Option Option::positive() const {
  return Option(option_->check(number_that("> 0", [](double x) { return x > 0; })));
}
template <class T>
Option Option::between(T low, T high) const {
  const auto least = static_cast<double>(low), most = static_cast<double>(high);
  return Option(
      option_->check(number_that("in [" + to_text(least) + ", " + to_text(most) + "]",
                                 [least, most](double x) { return least <= x && x <= most; })));
}
Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::IsMember(words)));
}
Option Option::needs(const Option& other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(const std::string& name) const { return Option(option_->excludes(name)); }
bool Option::given() const { return option_->count() > 0; }

template Option Option::between(int, int) const;
template Option Option::between(std::int64_t, std::int64_t) const;
template Option Option::between(double, double) const;

Command Command::add(const std::string& name, const std::string& description) const {
  return Command(app_->add_subcommand(name, description));
}
void Command::footer(const std::string& text) const { app_->footer(text); }
void Command::require_verb() const { app_->require_subcommand(1); }
template <class T>
Option Command::option(const std::string& names, T& value, const std::string& text) const {
  return Option(app_->add_option(names, value, text));
}
Option Command::flag(const std::string& names, bool& value, const std::string& text) const {
  return Option(app_->add_flag(names, value, text));
}
void Command::choice(const std::string& group, std::string& value,
                     const std::vector<std::pair<std::string, std::string>>& flags) const {
  CLI::Option_group* options = app_->add_option_group(group);
  for (const auto& [name, text] : flags) {
    options->add_flag_callback(
        "--" + name, [&value, chosen = name] { value = chosen; }, text);
  }
  options->require_option(1);
}
void Command::run(std::function<void()> body) const { app_->callback(std::move(body)); }
void Command::before(std::function<void()> body) const {
  app_->parse_complete_callback(std::move(body));
}
bool Command::verb_given() const { return !app_->get_subcommands().empty(); }
VerbText Command::describe() const { return verb_text(*app_); }

using Strings = std::vector<std::string>;
using Numbers = std::vector<double>;
using Integers = std::vector<std::int64_t>;
template Option Command::option(const std::string&, std::string&, const std::string&) const;
template Option Command::option(const std::string&, Strings&, const std::string&) const;
template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, std::int64_t&, const std::string&) const;
template Option Command::option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::option(const std::string&, double&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<double>&,
                                const std::string&) const;
template Option Command::option(const std::string&, Numbers&, const std::string&) const;
template Option Command::option(const std::string&, Integers&, const std::string&) const;

Program::Program(const std::string& name, const std::string& description,
                 const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpText>());
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}
Program::~Program() = default;
Command Program::root() const { return Command(app_.get()); }
int Program::parse(int argc, char** argv, int bad_usage) const {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {  // help VERB is VERB --help
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    const bool is_wrong = error.get_exit_code() != 0;
    if (!is_wrong) return app_->exit(error);  // --help and --version
    const std::string better = unexpected(*app_, words);
    std::fprintf(stderr, "%s: %s\n", app_->get_name().c_str(),
                 better.empty() ? error.what() : better.c_str());
    return bad_usage;
  }
  return 0;
}

}  // namespace esscher::cli
