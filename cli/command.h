// The verbs and options of the program. The option parser (CLI11) takes ten seconds to compile, so it
// is included in command.cc alone; Command and Option are handles to what the Program owns.
//
//   Command verb = app.add("limit", "one line");
//   verb.option("--queries", options->queries, "queries to draw").type_name("N").between(1, 9);
//   verb.run([options] { ... });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/description.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace esscher::cli {

// Each member changes the option and returns it, so that calls chain.
class Option {
 public:
  Option type_name(const std::string& name) const;  // what --help writes for the value
  Option group(const std::string& name) const;      // the heading of --help it stands under
  Option required() const;
  Option delimiter(char separator) const;  // several values in one word
  Option one_value() const;                // repeat the option for a second value
  Option show_default() const;
  Option positive() const;
  template <class T>  // int, std::int64_t, double
  Option between(T low, T high) const;
  Option one_of(const std::vector<std::string>& words) const;
  Option needs(const Option& other) const;
  Option excludes(const std::string& name) const;

  [[nodiscard]] bool given() const;  // after parsing: the user wrote it

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  [[nodiscard]] Command add(const std::string& name, const std::string& description) const;
  void footer(const std::string& text) const;
  void require_verb() const;  // one of the commands that were added
  // `value` must live until the end of the program. T: std::string, int, std::int64_t,
  // std::uint64_t, double, optional<double>, and vectors of strings, of doubles, of integers.
  template <class T>
  Option option(const std::string& names, T& value, const std::string& text) const;
  Option flag(const std::string& names, bool& value, const std::string& text) const;
  // Flags {name, text}, of which the user gives exactly one: `value` becomes its name.
  void choice(const std::string& group, std::string& value,
              const std::vector<std::pair<std::string, std::string>>& flags) const;
  void run(std::function<void()> body) const;     // what the verb does
  void before(std::function<void()> body) const;  // once its options are parsed, before any run()
  [[nodiscard]] bool verb_given() const;    // after parsing: a command below this one was named
  [[nodiscard]] VerbText describe() const;  // this command and all below it

 private:
  CLI::App* app_;
};

// The whole program: `version` is the answer of --version.
class Program {
 public:
  Program(const std::string& name, const std::string& description, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] Command root() const;
  // Parses and runs. Help and version go to stdout and are 0, wrong usage goes to stderr and is
  // `bad_usage`. What run() throws passes through.
  int parse(int argc, char** argv, int bad_usage) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace esscher::cli
