// `esscher export` by question, and `esscher cite`.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "esscher/io/file.h"
#include "tests/cli/program.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Export : public Program {
 protected:
  std::string made(const std::string& name, const std::string& arguments) {
    const std::string dir = file(name).string();
    const Outcome got = run(arguments + " --quiet --out " + dir);
    EXPECT_EQ(got.code, 0) << got.err;
    return dir;
  }
};

constexpr const char* kStudy =
    "concentration -s measure.type=gaussian -s measure.dim=1 -s measure.cov=0.25 -s "
    "'sweep.metrics=[\"output\"]' -s 'sweep.lengths=[10,20,40,80]' -s sweep.queries=40 ";

TEST_F(Export, CurveOfAStudyWithIntervals) {
  const std::string dir = made("rate", std::string(kStudy) + "-s sweep.engine=direct");
  const std::string list = run("export --list " + dir).out;
  for (const char* table : {"curve ", "exponents ", "cells ", "figure:curve "}) {
    EXPECT_THAT(list, HasSubstr(table));
  }
  const Outcome csv = run("export --csv --table curve " + dir);
  ASSERT_EQ(csv.code, 0) << csv.err;
  std::istringstream lines(csv.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "metric,L,D,std_error,low,high,relative_rms,asymptotic,ess,bias2,engine,heavy\r");
  const Json document = parse_json("study", read_text(file("rate/concentration.json")));
  for (const Json& row : document.at("rows")) {
    ASSERT_TRUE(std::getline(lines, line));
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, ',');) cells.push_back(part);
    EXPECT_EQ(cells.at(0), row.at("metric").get<std::string>());
    EXPECT_EQ(std::stod(cells.at(2)), row.at("value").get<double>());
    EXPECT_EQ(std::stod(cells.at(4)), row.at("ci").at(0).get<double>());
    EXPECT_EQ(std::stod(cells.at(5)), row.at("ci").at(1).get<double>());
    const double limit = document.at("limits").at("output").at("mean_square").get<double>();
    EXPECT_NEAR(std::stod(cells.at(6)), std::sqrt(row.at("value").get<double>() / limit), 1e-14);
  }
  EXPECT_FALSE(std::getline(lines, line));
  const Json json = run("export --json --table curve " + dir).json();
  EXPECT_EQ(json.at("table"), "curve");
  EXPECT_EQ(json.at("rows").size(), 4u);
  EXPECT_EQ(run("export --npz --table curve " + dir).out.substr(0, 2), "PK");
  EXPECT_THAT(run("export --columns --table curve " + dir).out, HasSubstr("lower end of the 95 %"));
  const Outcome wrong = run("export --csv --table curv " + dir);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("has no table curv, did you mean curve?"));
  EXPECT_THAT(run("export --csv " + dir).out, HasSubstr("cell,L,metric"));
}

// The slow regime: what is not finite survives the way through the document.
TEST_F(Export, InfiniteConstantsStay) {
  const std::string dir = made("slow",
                               "concentration -s measure.type=gaussian -s measure.dim=1 -s "
                               "'sweep.metrics=[\"output\"]' -s 'sweep.lengths=[10,20,40]'");
  EXPECT_THAT(run("export --csv --table curve " + dir).out, HasSubstr(",inf,"));
}

TEST_F(Export, LossOfATraining) {
  const std::string dir =
      made("trained",
           "icl train -s task.dim=1 --length 5 -s train.steps=40 -s train.checkpoints=2 -s "
           "train.curve_block=10 -s train.batch=8");
  const std::string csv = run("export --csv --table loss " + dir).out;
  EXPECT_EQ(csv.substr(0, csv.find('\r')), "step,loss,std_error,low,high");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  const std::string states = run("export --csv --table checkpoints " + dir).out;
  EXPECT_EQ(states.substr(0, states.find('\r')), "step,status,U_0_0,U_0_1,U_1_0,U_1_1,r_0,r_1");
  EXPECT_EQ(std::count(states.begin(), states.end(), '\n'), 3);
}

TEST_F(Export, FiguresAndTablesForLatex) {
  const std::string dir = made("rate", kStudy);
  const std::string figures = file("figures").string(), tables = file("tables").string();
  const Outcome pgf = run("export --pgf --file " + figures + " " + dir);
  ASSERT_EQ(pgf.code, 0) << pgf.err;
  EXPECT_THAT(pgf.out, HasSubstr("curve.tex\n"));
  EXPECT_THAT(read_text(file("figures/curve.tex")), HasSubstr("\\begin{axis}["));
  EXPECT_THAT(read_text(file("figures/curve-1.dat")), HasSubstr("L value low high\n10 "));
  const Outcome latex = run("export --latex --table curve --file " + tables + " " + dir);
  ASSERT_EQ(latex.code, 0) << latex.err;
  EXPECT_THAT(read_text(file("tables/curve.tex")), HasSubstr("\\toprule\nmetric & L & D & low"));
  if (std::system("command -v pdflatex > /dev/null") != 0) GTEST_SKIP() << "there is no pdflatex";
  const Outcome compiled = run_command(
      "bash -c 'cd " + figures +
      " && for f in *.tex; do pdflatex -interaction=nonstopmode -halt-on-error $f > log.txt < "
      "/dev/null || { echo $f; tail -20 log.txt; exit 1; }; done'");
  EXPECT_EQ(compiled.code, 0) << compiled.out << compiled.err;
}

TEST_F(Export, CiteARun) {
  const std::string exact = run("cite " + made("exact", kStudy)).out;
  EXPECT_THAT(exact, HasSubstr("@software{esscher,"));
  EXPECT_THAT(exact, HasSubstr("version = {0."));
  EXPECT_THAT(exact, HasSubstr("commit "));
  EXPECT_THAT(exact, HasSubstr("eprint    = {2512.11784}"));
  EXPECT_THAT(exact, Not(HasSubstr("Parallel random numbers")));
  const std::string sampled =
      run("cite " + made("sampled", std::string(kStudy) + "-s sweep.engine=direct")).out;
  EXPECT_THAT(sampled, HasSubstr("Parallel random numbers"));
  const std::string preset =
      run("cite " + made("preset",
                         "icl train --preset von-oswald -s train.steps=4 -s train.checkpoints=2 -s "
                         "train.batch=4"))
          .out;
  EXPECT_THAT(preset, HasSubstr("2212.07677"));
  EXPECT_THAT(preset, Not(HasSubstr("2503.12734")));
  EXPECT_THAT(run("cite").out, HasSubstr("@software{esscher,"));
  EXPECT_EQ(run("cite nothing-here").code, 2);
}

// Every work that `cite` knows stands on the page of references.
TEST_F(Export, CitedWorksStandInTheDocumentation) {
  const std::string page = read_text(testing::source_dir() + "/docs/references.md");
  for (const char* key :
       {"[BB26]", "[ZFB24]", "[ZSLS25]", "[HPCY25]", "[vO22]", "[Boh25]", "[SMDS11]"}) {
    EXPECT_THAT(page, HasSubstr(key));
  }
}

}  // namespace
}  // namespace esscher
