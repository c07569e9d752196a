// Completion by the Tab key in the three shells, and the man page: both follow the declarations.
#include <gmock/gmock.h>

#include "esscher/config/keys.h"
#include "tests/cli/program.h"

namespace esscher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Completion : public Program {
 protected:
  std::string asked(const std::string& words) { return run("complete-words " + words).out; }

  // The output of a script in a shell, after it has read the completion for that shell.
  std::string in_shell(const std::string& shell, const std::string& script) {
    const std::string completion = file("completion").string();
    EXPECT_EQ(run("completion " + shell + " >" + completion).code, 0);
    const std::string folder = std::filesystem::path(esscher_program()).parent_path().string();
    write_text(file("script"), "PATH=" + folder + ":$PATH\nexport PATH\n" + script);
    if (shell == "fish") {
      write_text(file("script"), "set -x PATH " + folder + " $PATH\n" + script);
    }
    const std::string command = "cd " + file("").string() + " && " + shell + " script >answer 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << read_text(file("answer"));
    return read_text(file("answer"));
  }
};

TEST_F(Completion, VerbsOptionsAndValuesFollowTheDeclarations) {
  EXPECT_THAT(asked("conc"), ::testing::MatchesRegex("concentration\t[^\n]+\n"));
  EXPECT_THAT(asked("''"),
              AllOf(HasSubstr("length\t"), HasSubstr("help\t"), Not(HasSubstr("complete-words"))));
  EXPECT_THAT(asked("icl ''"), AllOf(HasSubstr("train\t"), Not(HasSubstr("limit"))));
  EXPECT_THAT(asked("length --e"), HasSubstr("--eps\t"));
  EXPECT_EQ(asked("help icl tr"), asked("icl tr"));
  EXPECT_EQ(asked("length --config ''"), ":files toml\n");
  EXPECT_EQ(asked("length --out ''"), ":folders\n");
  EXPECT_THAT(asked("icl train --preset he"), HasSubstr("he-2503.12734\t"));
  EXPECT_THAT(asked("config icl ''"), AllOf(HasSubstr("train\n"), Not(HasSubstr("length"))));
  EXPECT_EQ(asked("completion z"), "zsh\n");
}

TEST_F(Completion, KeysAreThoseOfTheVerb) {
  EXPECT_THAT(asked("limit --set ''"),
              AllOf(HasSubstr("measure.type=\t"), Not(HasSubstr("train."))));
  EXPECT_EQ(asked("limit --set measure.type=gam"), "");
  EXPECT_THAT(asked("limit --set measure.type=gau"), HasSubstr("measure.type=gaussian\n"));
  EXPECT_THAT(asked("limit --json -s measure.t"), HasSubstr("measure.type="));
}

TEST_F(Completion, Bash) {
  write_text(file("mine.toml"), "");
  const std::string answer = in_shell("bash", R"(source completion
ask() { COMP_LINE=$1 COMP_POINT=${#1}; _esscher; echo "${COMPREPLY[@]}"; }
ask 'esscher univ'
ask 'esscher limit --set measure.type=gaus'
ask 'esscher limit -c mi'
)");
  EXPECT_EQ(answer, "universal\ngaussian\nmine.toml\n");
}

TEST_F(Completion, Zsh) {
  const std::string answer = in_shell("zsh", R"(compdef() { :; }
source completion
_describe() { echo ${(P)2} }
compadd() { echo ${(P)4} }
_files() { echo files "$@" }
ask() { words=(esscher "$@"); CURRENT=$#words; PREFIX=$words[-1]; _esscher }
ask univ
ask limit --set measure.typ
ask limit -c ''
)");
  EXPECT_THAT(answer, HasSubstr("universal:"));
  EXPECT_THAT(answer, HasSubstr("\nmeasure.type=\nfiles -g *.toml"));
}

TEST_F(Completion, Fish) {
  const std::string answer = in_shell("fish", R"(source completion
complete -C 'esscher univ'
complete -C 'esscher limit --set measure.type=gaus'
)");
  EXPECT_THAT(answer, HasSubstr("universal\t"));
  EXPECT_THAT(answer, HasSubstr("measure.type=gaussian"));
}

TEST_F(Completion, ManualHasEveryVerbAndKeyAndNoFaultOfRoff) {
  const Outcome outcome = run("manual");
  ASSERT_EQ(outcome.code, 0);
  for (const VerbDeclaration& verb : declared_verbs()) {
    EXPECT_THAT(outcome.out, HasSubstr(".SS \"esscher " + std::string(verb.name) + "\"\n"));
  }
  for (const TableDeclaration& table : declared_tables()) {
    EXPECT_THAT(outcome.out, HasSubstr(".SS \"[" + std::string(table.name)));
  }
  write_text(file("esscher.1"), outcome.out);
  const std::string lint = "groff -man -Tutf8 -ww -z " + file("esscher.1").string() + " >" +
                           file("faults").string() + " 2>&1";
  EXPECT_EQ(std::system(lint.c_str()), 0);
  EXPECT_EQ(read_text(file("faults")), "");
}

}  // namespace
}  // namespace esscher
