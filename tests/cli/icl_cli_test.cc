// The verbs `icl risk|flow|train|compare` and `presets` from outside.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "esscher/base/json.h"
#include "esscher/io/file.h"

namespace esscher {
namespace {

class Icl : public ::testing::Test {
 protected:
  Icl() {
    std::string name = (std::filesystem::temp_directory_path() / "esscher.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Icl() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_ / name).string();
  }

  std::string run(const std::string& arguments, int code = 0) {
    const std::string command =
        std::string(ESSCHER_PROGRAM) + " " + arguments + " 2>" + file("stderr");
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      out.append(buffer.data(), n);
    }
    const int status = ::pclose(pipe);
    EXPECT_EQ(WEXITSTATUS(status), code) << arguments << "\n" << read_text(file("stderr"));
    return out;
  }
  Json json(const std::string& arguments) {
    return parse_json("stdout", run(arguments + " --json --quiet"));
  }
  [[nodiscard]] std::string messages() const { return read_text(file("stderr")); }

 private:
  std::filesystem::path folder_;
};

TEST_F(Icl, RiskHasAllModelsAtAllLengths) {
  const Json rows = json("icl risk --set task.dim=2 --length 10,1e9,inf").at("rows");
  ASSERT_EQ(rows.size(), 9u);
  EXPECT_EQ(rows[0].at("L"), 10);
  EXPECT_EQ(rows[0].at("model"), "softmax");
  EXPECT_EQ(rows[2].at("model"), "bayes");
  EXPECT_EQ(rows[8].at("L"), "inf");
  EXPECT_EQ(rows[6].at("risk"), rows[7].at("risk"));
  EXPECT_GT(rows[3].at("std_error"), 0);
}

TEST_F(Icl, FlowEndsAtTheFormulaAndItsModelCanBeShifted) {
  const std::string out = file("run");
  const Json flow = json("icl flow --set task.dim=2 --length inf --out " + out);
  EXPECT_EQ(flow.at("status"), "stationary");
  EXPECT_LT(flow.at("limit_distance"), 1e-6);
  EXPECT_LT(flow.at("conserved_drift"), 1e-6);
  EXPECT_TRUE(std::filesystem::exists(out + "/report.html"));
  const Json again = json("icl flow --set task.dim=2 --length inf --out " + out);
  EXPECT_EQ(again, flow);
  const Json same = json("icl risk --model " + out + " --length inf").at("rows");
  EXPECT_LT(same[0].at("risk"), 1e-12);
  const Json shifted =
      json("icl risk --model " + out + " --length inf --set task.prompt_cov=2.0").at("rows");
  EXPECT_GT(shifted[0].at("risk"), 0.1);
}

TEST_F(Icl, AlphaOutsideTheIntervalWarns) {
  run("icl flow --set task.dim=2 --length inf --set model.init.kind=balanced "
      "--set model.init.alpha=3 --set flow.t_end=1 --json");
  EXPECT_NE(messages().find("outside the interval"), std::string::npos);
}

TEST_F(Icl, CompareRuns) {
  const Json document = json(
      "icl compare --set task.dim=1 --length 10,100 --set flow.log2_nodes=6 --set flow.points=10 "
      "--set 'sweep.eps=[0.2]' --out " +
      file("run"));
  EXPECT_EQ(document.at("rows").size(), 5u);
  EXPECT_EQ(document.at("lengths").size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(file("run") + "/report.html"));
}

TEST_F(Icl, TrainResumesBitForBit) {
  const std::string common =
      "icl train --set task.dim=2 --length 20 --set train.steps=60 --set train.batch=8 "
      "--set train.curve_block=10 --set train.checkpoints=6 --seed 5 ";
  const Json whole = json(common + "--out " + file("whole"));
  EXPECT_EQ(whole.at("steps"), 60);
  EXPECT_EQ(whole.at("status"), "finished");
  EXPECT_EQ(whole.at("loss").size(), 6u);
  // The same command on a finished run, and without a run, says the same.
  EXPECT_EQ(json(common + "--out " + file("whole")), whole);
  EXPECT_EQ(json(common), whole);
}

TEST_F(Icl, DivergenceIsAStatus) {
  const Json document = json(
      "icl train --set task.dim=2 --length 20 --set train.steps=200 --set train.batch=8 "
      "--set train.learning_rate=1000");
  EXPECT_EQ(document.at("status"), "diverged");
  EXPECT_TRUE(document.at("final_risk").at("risk").is_null());
}

TEST_F(Icl, PresetsAreListedAndRunByName) {
  const Json list = json("presets").at("presets");
  EXPECT_GE(list.size(), 9u);
  EXPECT_NE(run("presets --show von-oswald").find("[task]"), std::string::npos);
  const Json train =
      json("icl train --preset boursier-boyer --set train.steps=20 --set train.checkpoints=2");
  EXPECT_EQ(train.at("steps"), 20);
  const Json heads =
      json("icl train --preset he-2503.12734 --set train.steps=5 --set train.checkpoints=1");
  EXPECT_EQ(heads.at("parameters").at("heads").size(), 2u);
}

TEST_F(Icl, BadConfigurationsAreRefusedByKey) {
  run("icl flow --set task.dim=0", 2);
  EXPECT_NE(messages().find("task.dim"), std::string::npos);
  run("icl flow --set task.dim=2 --set flow.speed=3", 2);
  EXPECT_NE(messages().find("flow.speed"), std::string::npos);
  run("icl flow --preset nobody", 2);
  EXPECT_NE(messages().find("boursier-boyer"), std::string::npos);
  run("icl flow --set task.dim=2 --set model.heads=2", 2);
  EXPECT_NE(messages().find("icl train"), std::string::npos);
}

}  // namespace
}  // namespace esscher
