// The verbs `icl risk|flow|train|compare` and `presets` from outside.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numbers>
#include <thread>

#include "esscher/risk/layer_risk.h"
#include "esscher/store/run.h"
#include "esscher/task/classification.h"
#include "tests/cli/program.h"
#include "tests/store/temporary.h"

namespace esscher {
namespace {

class Icl : public Program {
 protected:
  [[nodiscard]] std::string file(const std::string& name) const {
    return Program::file(name).string();
  }

  std::string run(const std::string& arguments, int code = 0) {
    const Outcome outcome = Program::run(arguments);
    messages_ = outcome.err;
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << messages_;
    return outcome.out;
  }
  Json json(const std::string& arguments) {
    return parse_json("stdout", run(arguments + " --json --quiet"));
  }
  [[nodiscard]] const std::string& messages() const { return messages_; }

 private:
  std::string messages_;
};

// A number, or the numbers of a list.
std::vector<double> numbers(const Json& value) {
  if (value.is_number()) return {value.get<double>()};
  return value.get<std::vector<double>>();
}

TEST_F(Icl, TemperaturesHaveAGridABestAndAPage) {
  const std::string start = "icl risk --set task.dim=2 --set flow.log2_nodes=8 --length 20,inf ";
  const Json found = json(start + "--temperature 0.5,1,2 --shift covariance=4 --out " + file("t"));
  EXPECT_EQ(found.at("rows").size(), 12U);
  ASSERT_EQ(found.at("best").size(), 4U);
  const Json& limit = found.at("best").at(1);
  EXPECT_EQ(limit.at("L"), "inf");
  EXPECT_NEAR(limit.at("factor").get<double>(), limit.at("limit_factor").get<double>(), 1e-12);
  EXPECT_GE(limit.at("gain").get<double>(), 0);
  EXPECT_TRUE(std::filesystem::exists(file("t") + "/report.html"));
  run(start + "--temperature 0.5,-1", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("--temperature is -1"));
  run(start + "--shift covarianc=4", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("did you mean covariance"));
}

// Scores of deviation 1e4 are beyond every table. Of two tokens the softmax then takes the one that is
// larger in the direction of the query: with r = 1 the risk is 1 - 2^{1/2}/pi.
TEST_F(Icl, ATrainedHeadMayHaveScoresOfAnySharpness) {
  const std::string task = "--set task.dim=1 --length 2 ";
  const Json trained =
      json("icl train " + task +
           "--set 'model.init={kind=\"dense\",U=[[1e4,0],[0,0]],V=[[0,0],[0,1]]}' --set "
           "train.steps=2 --set train.learning_rate=1e-12 --out " +
           file("sharp"));
  const double truth = 1 - std::numbers::sqrt2 / std::numbers::pi;
  const Json tested = json("icl risk --model " + file("sharp") + " --length 2").at("rows").at(0);
  for (const Json& row : {trained.at("final_risk"), tested}) {
    const double error = row.at("std_error").get<double>();
    EXPECT_GT(error, 0);
    EXPECT_LT(error, 0.01);
    EXPECT_NEAR(row.at("risk").get<double>(), truth, 6 * error + 2e-4);
  }
}

TEST_F(Icl, OtherTasksHaveRisksBesideTheirReferences) {
  const std::string task =
      "--set task.type=denoising --set 'task.means=[[1.0],[-1.0]]' --set task.gamma=0.5 --set "
      "task.xi=0.5 ";
  const std::string layer = "--set 'model.init={kind=\"dense\",U=[[2.0]],V=[[0.5]],W=[[0.0]]}' ";
  const Json rows = json("icl risk " + task + layer + "--length 10,inf").at("rows");
  ASSERT_EQ(rows.size(), 8U);
  const char* models[] = {"softmax", "bayes", "affine", "linear"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("model"), models[i % 4]);
    EXPECT_EQ(rows[i].at("task"), "denoising");
    EXPECT_TRUE(rows[i].at("bound").is_null());
  }
  EXPECT_NEAR(rows[4].at("risk").get<double>(), rows[5].at("risk").get<double>(), 1e-12);
  EXPECT_GT(rows[0].at("risk").get<double>(), rows[1].at("risk").get<double>());
  run("icl risk " + task + "--set 'model.init={kind=\"dense\",U=[[2.0,1.0]],V=[[0.5]]}'", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("model.init.U: shape is [1,2], expected [1,1]"));
  run("icl risk --factor 2 " + task, 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("are for task.type = \"regression\""));
}

TEST_F(Icl, ALayerFlowsAndHasADocumentAndAPage) {
  const std::string flow =
      "icl flow --set task.type=denoising --set 'task.means=[[1.0],[-1.0]]' --set task.gamma=0.5 "
      "--set task.xi=0.5 --set model.family=scalars --set "
      "'model.init={kind=\"dense\",U=[[1.0]],V=[[0.3]],W=[[0.1]]}' --length inf ";
  const Json end = json(flow + "--out " + file("flow"));
  EXPECT_EQ(end.at("status"), "stationary");
  EXPECT_EQ(end.at("task"), "denoising");
  EXPECT_EQ(end.at("family"), "scalars");
  EXPECT_NEAR(end.at("U")[0][0].get<double>(), 2, 1e-3);
  EXPECT_NEAR(end.at("risk").get<double>(), end.at("bayes").get<double>(), 1e-8);
  EXPECT_TRUE(std::filesystem::exists(file("flow") + "/report.html"));
  EXPECT_EQ(json(flow + "--dry-run").at("cells"), 1);
  run(flow + "--set model.init.V=[[0.3,1.0]]", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("model.init.V: shape is [1,2], expected [1,1]"));
}

TEST_F(Icl, ALayerIsTrainedResumedAndAskedForItsRiskElsewhere) {
  const std::string train =
      "icl train --set task.type=denoising --set 'task.means=[[1.0],[-1.0]]' --set task.gamma=0.5 "
      "--set task.xi=0.5 --set 'model.kinds=[\"softmax\",\"linear\"]' --set "
      "'model.init={kind=\"dense\",U=[[[1.0]],[[0.2]]],V=[[[0.3]],[[0.1]]],W=[[0.1]]}' --length 8 "
      "--set train.optimizer=adam --set train.learning_rate=0.01 --set train.steps=40 --set "
      "train.checkpoints=4 --set train.curve_block=10 --set train.batch=16 --set flow.draws=200 ";
  const Json end = json(train + "--out " + file("train"));
  EXPECT_EQ(end.at("status"), "finished");
  EXPECT_EQ(end.at("task"), "denoising");
  EXPECT_EQ(end.at("loss").size(), 4U);
  EXPECT_EQ(end.at("parameters").at("kinds"), Json({"softmax", "linear"}));
  EXPECT_TRUE(std::filesystem::exists(file("train") + "/report.html"));
  EXPECT_EQ(json(train + "--threads 1"), end);
  EXPECT_EQ(json(train + "--out " + file("train")), end);
  const std::string shorter = train + "--set train.steps=20 --set train.checkpoints=2 --out ";
  (void)json(shorter + file("half"));
  EXPECT_EQ(json("icl train --extend 40 --out " + file("half")), end);
  const Json rows =
      json("icl risk --model " + file("train") + " --length 8,inf --set flow.draws=25600")
          .at("rows");
  EXPECT_EQ(rows[0].at("model"), "mixed");
  EXPECT_EQ(rows[0].at("risk"), end.at("final_risk").at("risk"));
  EXPECT_LT(rows[4].at("risk"), rows[0].at("risk"));
  run("icl risk --model " + file("no.json") + " --set task.type=pool", 2);
}

TEST_F(Icl, ALayerIsComparedWithItselfOnTheInfinitePrompt) {
  const std::string compare =
      "icl compare --set task.type=pool --set 'task.pool=[[1.0],[-1.0]]' --set "
      "task.noise_variance=0.1 --set model.kind=linear --set "
      "'model.init={kind=\"dense\",U=[[0.4,0.0],[0.0,0.4]],V=[[0.3,0.3]]}' --set flow.points=5 "
      "--set 'sweep.eps=[0.05]' --length 10,100 ";
  const Json found = json(compare + "--out " + file("twins"));
  const Json& rows = found.at("rows");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].at("model"), "infinity");
  EXPECT_EQ(rows[1].at("model"), "linear");
  EXPECT_EQ(rows[1].at("task"), "pool");
  EXPECT_LT(rows[2].at("sup_gradient_gap"), rows[1].at("sup_gradient_gap"));
  EXPECT_LT(rows[2].at("limiting_risk"), rows[1].at("limiting_risk"));
  EXPECT_EQ(found.at("lengths")[0].at("status"), "found");
  EXPECT_TRUE(std::filesystem::exists(file("twins") + "/report.html"));
  EXPECT_EQ(json(compare + "--out " + file("twins")), found);
  EXPECT_EQ(json(compare + "--dry-run").at("cells"), 4);
}

TEST_F(Icl, TheBestLayerHasADocumentAndAPage) {
  const std::string task =
      "--set task.type=denoising --set 'task.means=[[1.0],[-1.0]]' --set task.gamma=0.5 --set "
      "task.xi=0.5 --set flow.restarts=1 ";
  const Json rows =
      json("icl optimum " + task + "--length 1000,inf --out " + file("best")).at("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(rows[1].at("u").get<double>(), 2, 1e-3);
  EXPECT_LE(rows[0].at("risk").get<double>(), rows[0].at("limit_risk").get<double>());
  EXPECT_TRUE(std::filesystem::exists(file("best") + "/report.html"));
}

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

TEST_F(Icl, ConservedDriftIsToldWhereSomethingIsConserved) {
  const auto drift = [&](const std::string& how) {
    return json(
               "icl flow --set task.dim=2 --set flow.t_end=1 --set flow.log2_nodes=6 "
               "--set flow.draws=50 " +
               how)
        .at("conserved_drift");
  };
  EXPECT_LT(drift("--length inf"), 1e-6);
  EXPECT_LT(drift("--length 10 --set model.kind=linear --set task.features=uniform"), 1e-6);
  EXPECT_LT(drift("--length 10 --set model.parametrisation=KQV"), 1e-6);
  EXPECT_TRUE(drift("--length 10").is_null());
  EXPECT_TRUE(drift("--length inf --set task.features=uniform").is_null());
}

TEST_F(Icl, AnyTrainedModelCanBeShifted) {
  const std::string train =
      "icl train --set task.dim=2 --length 20 --set train.steps=20 --set train.batch=8 "
      "--set train.checkpoints=2 --set model.init.kind=torch --set model.parametrisation=KQVO ";
  const std::string risk = " --length 20,inf --set task.dim=2 --set task.query_cov=4.0";
  for (const char* heads : {"1", "3"}) {
    const std::string out = file(std::string("heads") + heads);
    run(train + "--set model.heads=" + heads + " --out " + out);
    EXPECT_THAT(messages(), ::testing::HasSubstr("20/20 steps"));
    EXPECT_THAT(messages(), ::testing::Not(::testing::HasSubstr("\r")));
    const Json rows = json("icl risk --model " + out + risk).at("rows");
    EXPECT_EQ(rows[0].at("engine"), std::string(heads) == "1" ? "quadrature" : "sampled");
    EXPECT_GT(rows[0].at("risk"), 0);
    EXPECT_EQ(rows[0].at("trained"), 20);
    // The file of a training does not say its length.
    Json without = rows;
    for (Json& row : without) row["trained"] = nullptr;
    EXPECT_EQ(json("icl risk --model " + out + "/icl-train.json" + risk).at("rows"), without);
  }
  run("icl risk --length 10 --set task.dim=2 --model " + file("nobody"), 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("nobody"));
  std::ofstream(file("odd.json")) << R"({"heads": [{"U": [[1]], "V": 2}]})";
  run("icl risk --length 10 --set task.dim=2 --model " + file("odd.json"), 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("odd.json: no matrix \"V\""));
}

TEST_F(Icl, ModelsOfSeveralLengthsMakeATable) {
  const std::string flow =
      "icl flow --set task.type=classification --set 'task.means=[[1.0],[-1.0]]' --set "
      "model.family=scalars --set 'model.init={kind=\"dense\",U=[[0.3,0],[0,0]],V=[[0,0.3]]}' "
      "--set flow.t_end=1 --set flow.rtol=1e-3 --length ";
  ClassificationTask classes;
  classes.means.fixed = Matrix{{1.0}, {-1.0}};
  classes.cov = Matrix::Identity(1, 1);
  const ContextTask task = classification_task(classes);
  std::vector<Layer> layers;
  for (const char* L : {"5", "inf"}) {
    const Json end = json(flow + L + " --out " + file(L));
    const auto matrix = [&](const char* key) {
      const auto rows = end.at(key).get<std::vector<std::vector<double>>>();
      Matrix out(static_cast<Index>(rows.size()), 2);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        out.row(static_cast<Index>(i)) << rows[i][0], rows[i][1];
      }
      return out;
    };
    layers.push_back({matrix("W"), {{ModelKind::softmax, matrix("U"), matrix("V")}}});
  }
  const std::string table =
      "icl risk --model " + file("5") + "," + file("inf") + " --length 5,50,inf --out ";
  const Json rows = json(table + file("table")).at("rows");
  EXPECT_EQ(json(table + file("table")).at("rows"), rows);
  EXPECT_TRUE(std::filesystem::exists(file("table") + "/report.html"));
  const Length lengths[] = {5, 50, Length::infinity()};
  for (std::size_t i = 0; i < 3; ++i) {
    const Json &first = rows.at(4 * i), &second = rows.at(12 + i);
    EXPECT_EQ(first.at("trained"), 5);
    EXPECT_EQ(second.at("trained"), "inf");
    EXPECT_TRUE(rows.at(4 * i + 1).at("trained").is_null());
    EXPECT_NEAR(first.at("risk"), layer_risk(task, layers[0], lengths[i], {}).value, 1e-12);
    EXPECT_NEAR(second.at("risk"), layer_risk(task, layers[1], lengths[i], {}).value, 1e-12);
  }
  EXPECT_EQ(rows.size(), 15U);
  run("icl risk --length 5 --model " + file("5") + "," + file("5"), 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("another model was trained at L = 5"));
}

TEST_F(Icl, TemperaturesAreForOneModel) {
  for (const char* L : {"5", "inf"}) {
    (void)json("icl flow --set task.dim=1 --set model.kind=linear --length " + std::string(L) +
               " --out " + file(L));
  }
  const std::string both = "icl risk --length 5,50 --model " + file("5") + "," + file("inf");
  run(both + " --temperature 2", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("for one --model, not 2"));
  const Json rows = json(both + " --set flow.log2_nodes=6").at("rows");
  ASSERT_EQ(rows.size(), 10U);
  const Json alone =
      json("icl risk --length 50 --model " + file("inf") + " --set flow.log2_nodes=6").at("rows");
  EXPECT_EQ(rows[9], alone[1]);
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

// Killed where it hurts, after some checkpoints and inside a step, then started again.
// tests/data/runs/train-unfinished is the run that the released program (commit 421729c) leaves
// when it is stopped at step 20 of 40: its run train-heads, which ended there, with the longer
// plan. It was started without train.gradient. Several heads draw other prompts today, so no run of
// today has the same numbers: what was there must stay as it is, and the rest must follow from it.
TEST_F(Icl, AnUnfinishedOldRunGoesOn) {
  std::filesystem::copy(testing::source_dir() + "/tests/data/runs/train-unfinished", file("old"));
  const std::string train = "icl train --seed 4 --quiet " + config(R"(
[task]
dim = 1
[model]
kind = "softmax"
heads = 2
key_dim = 2
parametrisation = "KQVO"
[model.init]
kind = "torch"
[train]
length = 10
steps = 40
batch = 4
checkpoints = 4
optimizer = "adam"
curve_block = 10
[flow]
horizon = 0.1
)") + "--out ";
  const auto rows = [&](const std::string& run_folder) {
    return parse_json("export", run("export --json " + run_folder)).at("rows");
  };
  const Json ended = rows(testing::source_dir() + "/tests/data/runs/train-heads");
  std::filesystem::copy(file("old"), file("twice"));
  run(train + file("old"));
  run(train + file("twice"));
  EXPECT_EQ(Run::open(file("old")).status().done, 4);
  const Json all = rows(file("old"));
  EXPECT_EQ(all, rows(file("twice")));
  std::size_t kept = 0, later = 0;
  for (const Json& row : all) {
    if (row.at("step") <= 20) {
      kept += static_cast<std::size_t>(std::count(ended.begin(), ended.end(), row));
      continue;
    }
    ++later;
    const char* name = row.at("what") == "loss" ? "loss" : "r";
    for (const double x : numbers(row.at(name))) EXPECT_TRUE(std::isfinite(x)) << row;
  }
  EXPECT_EQ(kept, all.size() - later);
  EXPECT_EQ(later, kept);
}

TEST_F(Icl, KilledTrainingResumesBitForBit) {
  const std::vector<std::string> training = {esscher_program(),
                                             "icl",
                                             "train",
                                             "--quiet",
                                             "--seed",
                                             "5",
                                             "--length",
                                             "2000",
                                             "--set",
                                             "task.dim=5",
                                             "--set",
                                             "train.steps=1200",
                                             "--set",
                                             "train.batch=64",
                                             "--set",
                                             "train.checkpoints=60",
                                             "--set",
                                             "train.optimizer=adam",
                                             "--threads",
                                             "1",
                                             "--out"};
  const auto into = [&](const std::string& name) {
    std::vector<std::string> arguments = training;
    arguments.push_back(file(name));
    return arguments;
  };
  const auto done = [&] {
    return std::filesystem::exists(file("killed")) ? Run::open(file("killed")).status().done : 0;
  };
  ASSERT_EQ(testing::run_program(into("whole")).status, 0);
  std::int64_t last = 0;
  for (int kills = 0; kills < 3; ++kills) {
    testing::Process process(into("killed"));
    for (int i = 0; i < 5000 && done() <= last; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    process.send(SIGKILL);
    ASSERT_EQ(process.wait().status, 128 + SIGKILL) << "it ended before it could be killed";
    last = done();
    ASSERT_GT(last, kills);
    ASSERT_LT(last, 60);
  }
  ASSERT_EQ(testing::run_program(into("killed")).status, 0);
  for (const char* format : {" --csv", " --json"}) {
    EXPECT_EQ(run("export " + file("killed") + format), run("export " + file("whole") + format));
  }
  EXPECT_EQ(testing::bytes_of(file("killed") + "/icl-train.json"),
            testing::bytes_of(file("whole") + "/icl-train.json"));
}

TEST_F(Icl, InfiniteLengthTrainsOnAnyFeatures) {
  const std::string common =
      "icl train --set task.dim=2 --set task.features=rademacher --length inf "
      "--set train.steps=20 --set train.batch=8 --set train.checkpoints=1 ";
  const Json direct = json(common + "--set train.gradient=direct");
  EXPECT_EQ(direct.at("status"), "finished");
  EXPECT_EQ(json(common), direct);  // "auto" is what serves
  run(common + "--set train.gradient=sampled", 2);
  EXPECT_THAT(messages(), ::testing::HasSubstr("direct"));
}

// The result is printed, and the exit code is 1, so that a script notices.
TEST_F(Icl, DivergenceIsAStatusAndAFailure) {
  const std::string train =
      "icl train --set task.dim=2 --length 20 --set train.steps=200 --set train.batch=8 "
      "--set train.learning_rate=1000";
  const Json document = parse_json("stdout", run(train + " --json", 1));
  EXPECT_THAT(messages(), ::testing::HasSubstr("smaller train.learning_rate"));
  EXPECT_EQ(document.at("status"), "diverged");
  EXPECT_TRUE(document.at("final_risk").at("risk").is_null());
  const std::string text = run(train, 1);
  EXPECT_THAT(text, ::testing::HasSubstr("learning_rate is 1000"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("nan")));
}

TEST_F(Icl, EveryPresetRunsShortenedByName) {
  const std::map<std::string, std::string> shortened = {
      {"icl train", "--set train.steps=5 --set train.checkpoints=1 --set flow.log2_nodes=6"},
      {"icl flow", "--set flow.t_end=1 --set flow.log2_nodes=6 --set flow.draws=50"},
      {"icl compare", "--length 10 --set flow.log2_nodes=6 --set flow.points=5"},
      {"icl risk", "--length inf --set flow.log2_nodes=6"},
      {"concentration", "--set 'sweep.lengths=[10,100,1000]'"},
      {"scaling", "--set 'tokens.lengths=[10,100]'"}};
  const Json list = json("presets").at("presets");
  EXPECT_GE(list.size(), 9u);
  for (const Json& preset : list) {
    const std::string name = preset.at("name"), verb = preset.at("verb");
    EXPECT_THAT(run("presets --show " + name), ::testing::HasSubstr("[preset]"));
    const Json document = json(verb + " --preset " + name + " " + shortened.at(verb));
    if (verb == "icl train") {
      EXPECT_EQ(document.at("steps"), 5) << name;
    } else if (verb == "icl flow") {
      EXPECT_EQ(document.at("status"), "t_end") << name;
    } else if (verb == "icl risk") {  // the layer, bayes, affine and linear
      EXPECT_EQ(document.at("rows").size(), 4u) << name;
    } else if (verb == "scaling") {  // seven parameters at two lengths
      EXPECT_EQ(document.at("rows").size(), 14u) << name;
    } else if (name == "audit-suite") {  // output and two Jacobians
      EXPECT_EQ(document.at("rows").size(), 9u);
    } else {
      EXPECT_EQ(document.at("rows").size(), 3u) << name;
    }
    if (name == "he-2503.12734") {
      EXPECT_EQ(document.at("parameters").at("heads").size(), 2u);
    }
  }
}

TEST_F(Icl, ReportsHaveTheirFigures) {
  const auto figures = [&](const std::string& command, const std::string& name) {
    run(command + " --quiet --out " + file(name));
    std::map<std::string, std::string> found;
    const Json report = parse_json(name, testing::bytes_of(file(name) + "/report.json"));
    for (const Json& figure : report.at("figures")) found[figure.at("id")] = figure.dump();
    return found;
  };
  const auto log_axis = ::testing::HasSubstr(R"("type":"log")");
  const auto slider = ::testing::HasSubstr(R"("input":"range")");
  auto flow = figures("icl flow --set task.dim=2 --length inf", "flow");
  EXPECT_THAT(flow["risk"], log_axis);
  EXPECT_THAT(flow["distance"], log_axis);
  EXPECT_THAT(flow["parameters"], slider);
  auto training = figures(
      "icl train --set task.dim=2 --set task.noise_variance=0.1 --length 20 "
      "--set train.steps=60 --set train.checkpoints=3 --set train.batch=8",
      "train");
  EXPECT_THAT(training["loss"], log_axis);
  EXPECT_THAT(training["loss"], ::testing::HasSubstr("The line “Bayes risk” is at"));
  EXPECT_THAT(training["parameters"], slider);
  auto twins = figures(
      "icl compare --set task.dim=2 --length 10,100 --set flow.log2_nodes=6 --set flow.points=9",
      "twins");
  for (const char* id : {"final", "twin-risk", "twin-distance", "sup-gap", "gap"}) {
    EXPECT_THAT(twins[id], log_axis) << id;
  }
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
