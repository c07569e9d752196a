// What a person meets every day: messages, options, examples of --help, dry runs, Ctrl-C, ages.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cmath>
#include <utility>
#include <vector>

#include "esscher/io/npy.h"
#include "tests/cli/program.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Comfort : public Program {
 protected:
  // In the folder of the test, with the program as `esscher`.
  Outcome shell(const std::string& command) {
    write_text(file("command.sh"), "cd '" + file("").string() + "'\nesscher() { '" +
                                       esscher_program() + "' \"$@\"; }\n" + command + "\n");
    return run_command("bash " + file("command.sh").string());
  }
};

struct Case {
  const char* arguments;
  const char* says;
};

// A key through two doors: neither wins in silence. A file is overridden on purpose.
TEST_F(Comfort, AKeyGivenTwiceSaysSo) {
  for (const Case& bad : {
           Case{"icl train -s train.length=5 --length 7",
                "train.length is given twice: by --set train.length=5 and by --length 7"},
           Case{"icl risk -s sweep.lengths=[5] --length 7,inf",
                "sweep.lengths is given twice: by --set sweep.lengths=[5] and by --length 7,inf"},
           Case{"icl risk --preset audit-d4 --config none.toml", "both given, expected one"},
       }) {
    const Outcome got = run(bad.arguments);
    EXPECT_EQ(got.code, 2) << bad.arguments;
    EXPECT_THAT(got.err, HasSubstr(bad.says)) << bad.arguments;
  }
  write_text(file("exp.toml"), "[task]\ndim = 1\n[sweep]\nlengths = [5]\n");
  const Outcome file_overridden =
      run("icl risk --json -c " + file("exp.toml").string() + " --length 7");
  ASSERT_EQ(file_overridden.code, 0) << file_overridden.err;
  EXPECT_EQ(file_overridden.json().at("rows").at(0).at("L"), 7);
}

TEST_F(Comfort, OptionsThatMeanNothingAreNotOffered) {
  for (const Case& bad :
       {Case{"targets --shard 1/2", "esscher targets has no option --shard"},
        Case{"presets --set a=1", "esscher presets has no option --set"},
        Case{"limit -s measure.dim=1 --shard 1/2", "esscher limit has no option --shard"},
        Case{"universal --shard 1/2 --length 1 --tau 1", "esscher universal has no option --shard"},
        Case{"paper -s task.dim=2", "esscher paper has no option -s, "},
        Case{"export run --latexx", "esscher export has no option --latexx, did you mean --latex?"},
        Case{"export run --latex folder", "not expected: folder"},
        Case{"length --shard 1/2", "esscher length has no option --shard"}}) {
    const Outcome got = run(bad.arguments);
    EXPECT_EQ(got.code, 2) << bad.arguments;
    EXPECT_THAT(got.err, HasSubstr(bad.says)) << bad.arguments;
  }
  EXPECT_THAT(run("concentration --help").out, HasSubstr("--shard"));
}

TEST_F(Comfort, HelpNamesTables) {
  for (const Case& verb :
       {Case{"limit", "[measure]"}, Case{"concentration", "[sweep]"}, Case{"length", "[query]"},
        Case{"icl risk", "[task]"}, Case{"icl flow", "[flow]"}, Case{"icl train", "[train]"},
        Case{"icl compare", "[sweep]"}, Case{"attend", "[measure]"}}) {
    EXPECT_THAT(run(std::string(verb.arguments) + " --help").out, HasSubstr(verb.says));
  }
}

TEST_F(Comfort, DryRunSaysWhatWouldRun) {
  const std::string out = file("run").string();
  const std::string study =
      "concentration -s measure.type=rademacher -s measure.dim=2 -s sweep.lengths=[10,100] "
      "-s sweep.queries=64 -o " +
      out;
  const Outcome text = run(study + " --dry-run");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("would run a study of 3 metrics at 2 lengths from 10 to 100"));
  EXPECT_THAT(text.out, ContainsRegex("cells +8\n"));
  EXPECT_THAT(text.out, HasSubstr("tokens are drawn"));
  EXPECT_FALSE(std::filesystem::exists(file("run")));
  const Json before = run(study + " --dry-run --json").json();
  EXPECT_EQ(before.at("cells"), 8);  // four of the exact part, four of grad_u
  EXPECT_EQ(before.at("done"), 0);
  EXPECT_GE(before.at("cpu_seconds").get<double>(), 0);
  EXPECT_GT(before.at("memory_bytes").get<double>(), 1e5);
  ASSERT_EQ(run(study + " --quiet").code, 0);
  const Json after = run(study + " --dry-run --json").json();
  EXPECT_EQ(after.at("done"), 8);
  EXPECT_EQ(after.at("cpu_seconds"), 0.0);
  const std::string sample = testing::source_dir() + "/tests/data/sample-heads.safetensors";
  const std::string heads = "heads " + sample + " --components 2";
  for (const Case& other :
       {Case{"length --error 1% -s measure.type=gaussian -s measure.dim=2", "lengths"},
        Case{"icl risk -s task.dim=2 --length 10,100", "cells"},
        Case{"icl risk -s task.dim=2 --length 10,100 --temperature 0.5,1", "cells"},
        Case{"icl risk -s task.type=denoising -s task.means=[[1],[-1]] --length 10", "cells"},
        Case{"icl train -s task.dim=2 --length 50", "checkpoints"},
        Case{"icl flow -s task.dim=2", "cells"}, Case{"icl compare -s task.dim=2", "cells"},
        Case{"icl optimum -s task.dim=2", "cells"}, Case{heads.c_str(), "cells"},
        Case{"scaling --schedule log", "cells"}, Case{"scaling --keep ess --tau 1.5", "lengths"},
        Case{"scaling -s tokens.kind=equiangular -s tokens.gamma=[1,2]", "cells"},
        Case{"paper --size tiny", "cells"}, Case{"paper --full", "cells"},
        Case{"paper --which mixtures --section clusters", "cells"}}) {
    const Outcome got = run(std::string(other.arguments) + " --dry-run --json");
    ASSERT_EQ(got.code, 0) << other.arguments << got.err;
    EXPECT_GT(got.json().at(other.says).get<int>(), 0) << other.arguments;
    // The longest sections of the paper were not measured.
    const bool is_measured = std::string(other.arguments) != "paper --full";
    EXPECT_EQ(got.json().at("cpu_seconds").is_number(), is_measured) << other.arguments;
    EXPECT_GT(got.json().at("memory_bytes").get<double>(), 1e6) << other.arguments;
    EXPECT_FALSE(got.json().at("engine").get<std::string>().empty()) << other.arguments;
  }
  EXPECT_THAT(run("icl train -s task.dim=2 --dry-run").out, ContainsRegex("checkpoints +[0-9]+\n"));
}

// Each section of the paper has its seconds and its memory, and the whole is their sum and their maximum.
TEST_F(Comfort, DryRunOfThePaperTellsEachSection) {
  const Outcome text = run("paper --dry-run");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("lemma-2.1 +[0-9]+ cells +[0-9.]+ s of CPU +[0-9.]+ MB\n"));
  for (const char* which : {"large-prompts", "temperature", "general", "mixtures"}) {
    for (const char* size : {"tiny", "quick"}) {
      const Json plan =
          run(std::string("paper --which ") + which + " --size " + size + " --dry-run --json")
              .json();
      double seconds = 0, memory = 0;
      std::int64_t cells = 0;
      for (const Json& part : plan.at("parts")) {
        ASSERT_TRUE(part.at("cpu_seconds").is_number()) << part;
        seconds += part.at("cpu_seconds").get<double>();
        memory = std::max(memory, part.at("memory_bytes").get<double>());
        cells += part.at("cells").get<std::int64_t>();
        EXPECT_GT(part.at("memory_bytes").get<double>(), 1e6) << part;
      }
      EXPECT_EQ(plan.at("cells"), cells);
      EXPECT_DOUBLE_EQ(plan.at("cpu_seconds").get<double>(), seconds);
      EXPECT_EQ(plan.at("memory_bytes").get<double>(), memory);
    }
  }
  const Json one = run("paper --section lemma-2.1 --section prop-3.1 --dry-run --json").json();
  ASSERT_EQ(one.at("parts").size(), 2u);
  EXPECT_EQ(one.at("parts")[1].at("name"), "prop-3.1");
}

double seconds_of_children() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec);
}

// The estimate of a flow counts its gradients at the infinite prompt: it is right within a factor.
TEST_F(Comfort, DryRunTellsTheTimeOfAFlow) {
  for (const char* flow : {"icl flow -s task.dim=3 -s flow.log2_nodes=15 --length 50",
                           "icl compare -s task.dim=2 -s flow.log2_nodes=13 --length 20,100"}) {
    const Outcome dry = run(std::string(flow) + " --dry-run --json");
    ASSERT_EQ(dry.code, 0) << dry.err;
    const double told = dry.json().at("cpu_seconds").get<double>();
    const double before = seconds_of_children();
    ASSERT_EQ(run(std::string(flow) + " --quiet").code, 0);
    const double taken = seconds_of_children() - before;
    EXPECT_GT(told, taken / 5) << flow;
    EXPECT_LT(told, taken * 5) << flow;
  }
}

// Every verb with --out ends with the line that names what it wrote.
TEST_F(Comfort, EveryVerbWithOutEndsWithItsReport) {
  write_npy(file("tokens.npy"), Matrix::Identity(3, 2));
  const std::string law = " -s measure.type=gaussian -s measure.dim=2";
  const std::string sample = testing::source_dir() + "/tests/data/sample-heads.safetensors";
  const std::string denoising = " -s task.type=denoising -s task.means=[[1],[-1]] --length 10";
  for (const auto& [arguments, page] : std::vector<std::pair<std::string, std::string>>{
           {"limit -s query.z=[1,0]" + law, "limit.json"},
           {"attend -s query.z=[1,0] --tokens " + file("tokens.npy").string(), "attend.json"},
           {"universal --length 10 --tau 1", "universal.json"},
           {"scaling --schedule log --lengths 100 --draws 0", "report.html"},
           {"scaling --keep ess --tau 1 --lengths 8192", "scaling.json"},
           {"heads " + sample + " --components 2", "report.html"},
           {"concentration -s sweep.lengths=[10]" + law, "report.html"},
           {"length --error 10% -s attention.U=0.3" + law, "length.json"},
           {"icl risk -s task.dim=1 --length 10", "report.html"},
           {"icl risk -s task.dim=1 --length 10 --temperature 1,2", "report.html"},
           {"icl risk" + denoising, "report.html"},
           {"icl flow -s task.dim=1 --length inf", "report.html"},
           {"icl train -s task.dim=1 -s train.steps=20 --length 10", "report.html"},
           {"icl compare -s task.dim=1 -s flow.log2_nodes=6 --length 10", "report.html"},
           {"icl optimum -s model.family=scalars -s flow.restarts=1" + denoising, "report.html"},
           {"paper --size tiny --section lemma-2.1", "report.html"}}) {
    const std::filesystem::path out = file("out");
    const Outcome got = run(arguments + " --quiet --out " + out.string());
    ASSERT_EQ(got.code, 0) << arguments << got.err;
    const std::string last = "report: " + (out / page).string() + "\n";
    EXPECT_TRUE(got.out.ends_with(last)) << arguments << "\n" << got.out;
    EXPECT_TRUE(std::filesystem::exists(out / page)) << arguments;
    std::filesystem::remove_all(out);
  }
}

// The age is that of the last result; looking at a run does not make it young.
TEST_F(Comfort, RunsShowTrueAges) {
  ASSERT_EQ(run("concentration --quiet -s measure.type=gaussian -s measure.dim=1 -s "
                "sweep.lengths=[10] -o " +
                file("runs/one").string())
                .code,
            0);
  ASSERT_EQ(shell("touch -d '3 hours ago' runs/one/run.sqlite").code, 0);
  for (int look = 0; look < 2; ++look) {
    EXPECT_THAT(run("runs " + file("runs").string()).out, HasSubstr("3h 00m"));
    ASSERT_EQ(run("export --csv " + file("runs/one").string()).code, 0);
  }
}

// More steps for a finished training: the bits of a training of that length in one go.
TEST_F(Comfort, ATrainingGoesOn) {
  const std::string base =
      "icl train --quiet -s task.dim=2 -s train.batch=8 -s train.optimizer=adam -s "
      "train.curve_block=15 --length 6 --seed 4 ";
  const std::string part = file("part").string(), whole = file("whole").string();
  ASSERT_EQ(run(base + "-s train.steps=40 -s train.checkpoints=4 -o " + part).code, 0);
  const Outcome refused = run(base + "-s train.steps=100 -s train.checkpoints=10 -o " + part);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--extend STEPS"));
  const Outcome odd = run("icl train --quiet --extend 101 -o " + part);
  EXPECT_EQ(odd.code, 2);
  EXPECT_THAT(odd.err, HasSubstr("in whole checkpoints of 10 steps"));
  const Outcome other = run("icl train --quiet --extend 100 --seed 4 -o " + part);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("--extend takes the configuration of the run"));
  const Outcome longer = run("icl train --json --quiet --extend 100 -o " + part);
  ASSERT_EQ(longer.code, 0) << longer.err;
  const Outcome once = run(base + "--json -s train.steps=100 -s train.checkpoints=10 -o " + whole);
  ASSERT_EQ(once.code, 0) << once.err;
  EXPECT_EQ(longer.out, once.out);
  for (const char* format : {" --csv", " --json", " --npz"}) {
    EXPECT_EQ(run("export " + part + format).out, run("export " + whole + format).out) << format;
  }
  EXPECT_EQ(read_text(file("part/config.toml")), read_text(file("whole/config.toml")));
  EXPECT_EQ(run("icl train --quiet --extend 100 -o " + part).code, 0) << "it may be said again";
}

// Ctrl-C keeps every finished step and says how to go on.
TEST_F(Comfort, InterruptedTrainingSaysHowToResume) {
  const std::string command =
      "icl train --quiet -s task.dim=2 -s train.batch=8 -s train.steps=20000000 -s "
      "train.checkpoints=2 --length 40 -o ";
  const Outcome stopped =
      shell("'" + esscher_program() + "' " + command +
            "run & pid=$!\nfor i in $(seq 100); do [ -e "
            "run/run.sqlite ] && break; sleep 0.05; done\nsleep 0.3\nkill -INT $pid\nwait $pid");
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err,
              ContainsRegex("interrupted: [0-9]+ of 20000000 steps are finished and kept"));
  EXPECT_THAT(stopped.err, HasSubstr("start the same command again to resume"));
}

// A paper at full size takes many hours: Ctrl-C ends it at once and keeps every finished cell, and
// the same command goes on behind them.
TEST_F(Comfort, AnInterruptedPaperGoesOnWhereItStopped) {
  // Waits until so many cells are done, then presses Ctrl-C.
  const auto stopped_at = [&](int cells) {
    const std::string paper = "'" + esscher_program() + "' paper --full -o run";
    return shell(paper + " & pid=$!\nfor i in $(seq 1000); do done=$(" + paper +
                 " --dry-run --json 2>/dev/null | sed -n 's/.*\"done\": \\([0-9]*\\).*/\\1/p'); [ "
                 "\"${done:-0}\" -ge " +
                 std::to_string(cells) + " ] && break; sleep 0.1; done\nkill -INT $pid\nwait $pid");
  };
  const auto done_cells = [&] {
    return run("paper --full --dry-run --json -o " + file("run").string())
        .json()
        .at("done")
        .get<int>();
  };
  const Outcome first = stopped_at(1);
  EXPECT_EQ(first.code, 130) << first.err;
  const int kept = done_cells();
  EXPECT_GE(kept, 1);
  EXPECT_THAT(first.err, HasSubstr("interrupted: " + std::to_string(kept) +
                                   " of 185 cells are finished and kept in run; start the same "
                                   "command again to resume"));
  const Outcome second = stopped_at(kept + 1);
  EXPECT_EQ(second.code, 130) << second.err;
  EXPECT_THAT(second.err,
              HasSubstr("resuming: " + std::to_string(kept) + " of 185 cells are done"));
  EXPECT_GT(done_cells(), kept);
  EXPECT_FALSE(std::filesystem::exists(file("run/report.html"))) << "nothing is judged on a part";
}

}  // namespace
}  // namespace esscher
