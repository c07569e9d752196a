// What the program answers to the slips of a newcomer, one test for each. All are refused with exit code
// 2 and one message that names what was given and what was expected, and print nothing else.
#include <gmock/gmock.h>

#include <algorithm>
#include <ostream>

#include "tests/cli/program.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

struct Slip {
  const char* name;
  const char* arguments;
  const char* says;
  const char* file = "";  // bad.toml beside it, if any
};
void PrintTo(const Slip& slip, std::ostream* out) { *out << slip.arguments; }

class Messages : public Program, public ::testing::WithParamInterface<Slip> {};

TEST_P(Messages, SayWhatWasExpected) {
  const Slip& slip = GetParam();
  std::string arguments = slip.arguments;
  if (*slip.file != '\0') {
    write_text(file("bad.toml"), slip.file);
    arguments += " -c " + file("bad.toml").string();
  }
  const Outcome got = run(arguments);
  EXPECT_EQ(got.code, 2);
  EXPECT_THAT(got.err, HasSubstr(slip.says));
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
  EXPECT_LT(got.err.size(), 400u) << got.err;
}

// Keys: what is unknown is said first, with the nearest word or with all of them.
const Slip kKeys[] = {
    {"UnknownTable", "limit -s mesure.type=gaussian -s measure.dim=2",
     "unknown key mesure, did you mean measure?"},
    {"UnknownKeyBeforeMissingOne", "limit -s measure.type=gaussian -s measure.dimension=2",
     "unknown key measure.dimension, did you mean dim?"},
    {"UnknownKeyInItsLine", "limit", "bad.toml:3: unknown key measure.dimm, did you mean dim?",
     "[measure]\ntype = \"gaussian\"\ndimm = 2\n"},
    {"PathIntoAnArray", "limit -s measure.type=mixture -s measure.parts[0].type=gaussian",
     "there is no array with an item 0 yet"},
    {"ListOfKeys", "icl train -s task.dim=2 -s train.lr=0.1", "expected one of length, optimizer"},
    {"BritishSpelling", "icl train -s task.dim=2 -s train.optimiser=adam",
     "unknown key train.optimiser, did you mean optimizer?"},
};
INSTANTIATE_TEST_SUITE_P(Keys, Messages, ::testing::ValuesIn(kKeys),
                         [](const auto& test) { return test.param.name; });

const Slip kWords[] = {
    {"Verb", "concentrate",
     "there is no verb 'concentrate' of esscher, did you mean concentration?"},
    {"VerbBelowAVerb", "icl trian", "there is no verb 'trian' of esscher icl, did you mean train?"},
    {"Option", "length --esp 1", "esscher length has no option --esp, did you mean --eps?"},
    {"VerbOfConfig", "config lenght", "there is no configuration of lenght, did you mean length?"},
    {"NoVerbOfConfig", "config", "expected a verb or --schema"},
    // The folder is no misspelt verb.
    {"OptionBehindAFolder", "runs results --jsonn",
     "esscher runs has no option --jsonn, did you mean --json?"},
};
INSTANTIATE_TEST_SUITE_P(Words, Messages, ::testing::ValuesIn(kWords),
                         [](const auto& test) { return test.param.name; });

const Slip kValues[] = {
    {"NegativeNumber", "length --eps -1", "--eps: the value is -1, expected a number > 0"},
    {"NumberForLengths",
     "concentration -s measure.type=gaussian -s measure.dim=1 -s sweep.lengths=10",
     "sweep.lengths is 10, expected lengths [10, 100] or a grid {from=10"},
    {"WordsForAVector", "limit -s measure.type=gaussian -s measure.dim=2 -s query.z=1,2",
     "query.z is \"1,2\", expected a vector [1, 0.5]"},
    {"WordsWithoutQuotes",
     "concentration -s measure.type=gaussian -s measure.dim=1 -s 'sweep.metrics=[grad_u]'",
     "expected an array of strings in quotes, [\"one\", \"two\"]"},
    {"TwoQueries",
     "limit -s measure.type=gaussian -s measure.dim=1 -s query.z=[1] -s query.points=[[2]]",
     "given were points and z"},
    {"NoQuery", "limit -s measure.type=gaussian -s measure.dim=1 -s query={}", "none was given"},
    {"NoCovariance", "limit -s measure.type=gaussian -s measure.cov=[[1,2],[2,1]] -s query.z=[1,1]",
     "not a covariance: its smallest eigenvalue is -1, expected a positive"},
    {"NoRun", "export nothing-here --csv",
     "nothing-here: there is no such directory, expected a run directory"},
    {"TwoLengthsOfOne", "icl train -s task.dim=1 --length 10,50",
     "--length is '10,50', expected one length, such as 100, 1e6 or inf"},
    {"NoLengths", "icl risk -s task.dim=1 --length 10,x",
     "--length is '10,x', expected lengths with commas between them"},
    {"OneLength", "universal --length 10,20 --tau 1", "10,20"},
    {"LaplaceOutsideItsDomain", "limit -s measure.type=laplace -s measure.dim=1 -s query.z=[2]",
     "expected |a| < 1/b"},
};
INSTANTIATE_TEST_SUITE_P(Values, Messages, ::testing::ValuesIn(kValues),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace esscher
