#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

namespace esscher::cli {

Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::group(const std::string& name) const { return Option(option_->group(name)); }
Option Option::required() const { return Option(option_->required()); }
Option Option::delimiter(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::one_value() const { return Option(option_->allow_extra_args(false)); }
Option Option::show_default() const { return Option(option_->capture_default_str()); }
Option Option::positive() const { return Option(option_->check(CLI::PositiveNumber)); }
template <class T>
Option Option::between(T low, T high) const {
  return Option(option_->check(CLI::Range(low, high)));
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
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}
Program::~Program() = default;
Command Program::root() const { return Command(app_.get()); }
int Program::parse(int argc, char** argv, int bad_usage) const {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error) == 0 ? 0 : bad_usage;
  }
  return 0;
}

}  // namespace esscher::cli
