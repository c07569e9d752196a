// Bold and colour: on a terminal only, and nowhere with NO_COLOR.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/cli/program.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Style : public Program {
 protected:
  // What a person at a terminal sees: `script` runs the program on one.
  std::string on_terminal(const std::string& arguments, const std::string& environment) {
    return run_command("env " + environment + " script -qec \"" + esscher_program() + " " +
                       arguments + "\" /dev/null < /dev/null")
        .out;
  }
};

TEST_F(Style, OnATerminalOnly) {
  if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "there is no script(1)";
  const std::string ask =
      "length --error 10% -s measure.type=gaussian -s measure.dim=1 -s attention.U=0.3";
  EXPECT_THAT(on_terminal(ask, "TERM=xterm"), HasSubstr("\033[1mL = "));
  EXPECT_THAT(on_terminal(ask, "TERM=xterm NO_COLOR=1"), Not(HasSubstr("\033")));
  EXPECT_THAT(on_terminal(ask, "TERM=dumb"), Not(HasSubstr("\033")));
  EXPECT_THAT(on_terminal(ask + " --json", "TERM=xterm"), Not(HasSubstr("\033")));
  const Outcome piped = run(ask);
  EXPECT_EQ(piped.out.find("L = "), 0u) << "no mark is left in a pipe";
  EXPECT_THAT(on_terminal("limit -s mesure.dim=1", "TERM=xterm"), HasSubstr("\033[31messcher:"));
  EXPECT_EQ(run("limit -s mesure.dim=1").err.find("esscher: "), 0u);
}

}  // namespace
}  // namespace esscher
