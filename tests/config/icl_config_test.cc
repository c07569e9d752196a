#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/config/train.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

Config config_of(const std::string& text) { return Config::parse(text, "test.toml"); }

TEST(IclConfig, ReadsTaskAndModel) {
  const Config config = config_of(R"toml(
[task]
dim = 2
task_variance = 0.5
noise_variance = 0.1
query_noise = true
prompt_cov = { kind = "kcm", rho = 0.5 }
[model]
kind = "linear"
parametrisation = "KQVO"
score_scale = "1/sqrt(d)"
init = { kind = "dense", U = 0.3, V = [[0, 0, 0], [0, 0, 0], [1, 2, 3]] }
[train]
length = "inf"
)toml");
  const LinearRegressionTask task = read_task(config.root());
  EXPECT_EQ(task.prompt_cov(0, 1), 0.5);
  EXPECT_EQ(task.query_cov, task.prompt_cov);
  EXPECT_TRUE(task.query_noise);
  const ModelConfig model = read_model(config.root(), task, 0);
  EXPECT_EQ(model.kind, ModelKind::linear);
  EXPECT_TRUE(close(model.space.score_scale, 1 / std::sqrt(3.0), 1e-15));
  const Readout start = model.space.readout(model.theta0);
  EXPECT_TRUE(close(start.U, Matrix(0.3 * Matrix::Identity(3, 3)), 1e-12));
  EXPECT_TRUE(close(start.r(2), 3, 1e-12));
  EXPECT_TRUE(read_length(config.root()).is_infinite());
  read_flow(config.root(), 0);
  config.check_all_used();
}

TEST(IclConfig, RefusesByKey) {
  const auto refused = [](const std::string& text, const std::string& key) {
    const Config config = config_of(text);
    try {
      const LinearRegressionTask task = read_task(config.root());
      read_model(config.root(), task, 0);
      read_flow(config.root(), 0);
      read_length(config.root());
      read_lengths(config.root(), {});
      config.check_all_used();
    } catch (const ConfigError& error) {
      return std::string(error.what()).find(key) != std::string::npos
                 ? ::testing::AssertionSuccess()
                 : ::testing::AssertionFailure() << error.what();
    }
    return ::testing::AssertionFailure() << "accepted";
  };
  EXPECT_TRUE(refused("[task]\ndim = 0\n", "task.dim"));
  EXPECT_TRUE(refused("[task]\ndim = 2\nnoise_variance = -1\n", "task.noise_variance"));
  EXPECT_TRUE(refused("[task]\ndim = 2\nprompt_cov = [[1, 2], [2, 1]]\n", "task.prompt_cov"));
  EXPECT_TRUE(refused("[task]\ndim = 2\ncolour = 1\n", "task.colour"));
  EXPECT_TRUE(refused("[task]\ndim = 2\nfeatures = \"pink\"\n", "task.features"));
  EXPECT_TRUE(refused("[task]\ndim = 2\n[model]\nscore_scale = 2\n", "model.score_scale"));
  EXPECT_TRUE(refused("[task]\ndim = 2\n[model]\ninit = { kind = \"pink\" }\n", "model.init.kind"));
  EXPECT_TRUE(refused("[task]\ndim = 2\n[model]\nheads = 9\n", "test.toml:4: model.heads"));
  EXPECT_TRUE(refused("[task]\ndim = 2\n[flow]\nrtol = 0\n", "flow.rtol"));
  EXPECT_TRUE(refused("[task]\ndim = 2\n[train]\nlength = 0\n", "train.length"));
}

TEST(Presets, ReleasedLawIsTheFactorTwice) {
  const LinearRegressionTask task = read_task(load_preset("boursier-boyer-released").root());
  const Eigen::MatrixXd C = Eigen::MatrixXd(power_covariance(5, 0.5)).llt().matrixL();
  const Matrix want = (C * C) * (C * C).transpose();
  EXPECT_TRUE(close(task.prompt_cov, want, 1e-14));
  EXPECT_EQ(task.query_cov, Matrix(Matrix::Identity(5, 5)));
  EXPECT_THROW(load_preset("nobody"), ConfigError);
}

TEST(Presets, EveryIclPresetReads) {
  int seen = 0;
  for (const Preset& preset : presets()) {
    EXPECT_FALSE(preset.title.empty() || preset.provenance.empty() || preset.expected.empty());
    if (preset.verb.rfind("icl", 0) != 0) continue;
    ++seen;
    const Config config = load_preset(preset.name);
    allow_preset(config.root());
    if (preset.verb == "icl risk") {  // tasks beyond regression
      EXPECT_FALSE(read_layer_problem(config.root(), 0).lengths.empty()) << preset.name;
      config.check_all_used();
      continue;
    }
    const LinearRegressionTask task = read_task(config.root());
    read_model(config.root(), task, 0);
    read_flow(config.root(), 0);
  }
  EXPECT_GE(seen, 15);
}

TEST(Presets, FlowsRunShortened) {
  for (const Preset& preset : presets()) {
    if (preset.verb != "icl flow") continue;
    Config config = load_preset(preset.name);
    config.set("flow.t_end=2");
    config.set("flow.draws=50");
    const FlowProblem problem = read_flow_problem(config.root(), 0);
    config.check_all_used();
    const FlowRecord flow = assemble_flow(compute_here(flow_cells(problem)));
    EXPECT_EQ(flow.summary.status, FlowStatus::t_end) << preset.name;
    EXPECT_LT(flow.path.back().risk, flow.path.front().risk) << preset.name;
  }
}

TEST(Presets, AuditComparesShortened) {
  Config config = load_preset("audit-d4");
  for (const char* set :
       {"flow.log2_nodes=6", "flow.points=10", "sweep.lengths=[10, 1000]", "sweep.eps=[0.5]"}) {
    config.set(set);
  }
  const CompareProblem problem = read_compare_problem(config.root(), 0);
  config.check_all_used();
  const Cells<TwinRow> cells = twin_cells(problem);
  ASSERT_EQ(cells.keys.size(), 7u);
  const CompareResult result = assemble_twins(compute_here(cells));
  ASSERT_EQ(result.twins.size(), 5u);
  EXPECT_EQ(result.twins[0].model, "infinity");
  EXPECT_LT(*result.twins[0].limiting_risk, 1e-12);
  EXPECT_GT(*result.twins[1].limiting_risk, *result.twins[2].limiting_risk);
  EXPECT_EQ(result.lengths.size(), 2u);
  EXPECT_EQ(result.lengths[0].status, "found");
}

const char* const kTask = "[task]\ndim = 2\n";

// Defect 2: the same table is the same grid for concentration and for icl.
TEST(IclConfig, LengthsAreTheGridOfEveryVerb) {
  const Config config =
      config_of(std::string(kTask) + "[sweep]\nlengths = { from = 10, to = 50, per_decade = 4 }\n");
  const std::vector<Length> want{Length(10), Length(17), Length(29), Length(50)};
  EXPECT_EQ(read_lengths(config.root(), {}), want);
  std::vector<Length> swept;
  for (const std::int64_t L : read_sweep(config.root(), 0).lengths) swept.emplace_back(L);
  EXPECT_EQ(swept, want);
}

// A schedule is relative to the length of training, where its factor is 1.
TEST(IclConfig, AScoreScheduleMultipliesAtOtherLengths) {
  const auto factors = [](const std::string& schedule) {
    const Config config = Config::parse(
        "[task]\ndim = 2\n[train]\nlength = 100\n[sweep]\nlengths = [10, 100, 1000]\n[model]\n" +
            schedule,
        "a.toml");
    const RiskProblem problem = read_risk_problem(config.root(), 0);
    config.check_all_used();
    return problem.factors;
  };
  EXPECT_TRUE(factors("").empty());
  const std::vector<double> log = factors("score_schedule = \"log\"\n");
  ASSERT_EQ(log.size(), 3U);
  EXPECT_NEAR(log[0], 0.5, 1e-15);
  EXPECT_EQ(log[1], 1);
  EXPECT_NEAR(log[2], 1.5, 1e-15);
  // n0 is train.length unless it is given.
  EXPECT_NEAR(factors("score_schedule = { kind = \"yarn\" }\n")[2],
              std::pow(0.1 * std::log(10.0) + 1, 2), 1e-14);
  EXPECT_EQ(factors("score_schedule = { kind = \"yarn\", train = 5000 }\n")[2], 1);
  EXPECT_EQ(factors("score_schedule = { kind = \"table\", table = [[100, 2], [1000, 3]] }\n")[2],
            1.5);
  for (const char* bad : {"score_schedule = \"logg\"\n",
                          "score_schedule = { kind = \"table\", table = [[1, 2, 3]] }\n",
                          "score_schedule = { kind = \"formula\", formula = \"n*\" }\n",
                          "score_schedule = { kind = \"qwen\", c = 2 }\n"}) {
    EXPECT_THROW((void)factors(bad), ConfigError) << bad;
  }
  const Config infinite = Config::parse(
      "[task]\ndim = 2\n[sweep]\nlengths = [\"inf\"]\n[model]\nscore_schedule = \"log\"\n",
      "b.toml");
  EXPECT_THROW((void)read_risk_problem(infinite.root(), 0), ConfigError);
}

// Defect 3: flow and training start at the same point, and obey model.init.seed.
TEST(IclConfig, OneTorchStartForFlowAndTraining) {
  const auto starts = [](const std::string& init, std::uint64_t seed) {
    const Config config = config_of(std::string(kTask) +
                                    "[model]\nparametrisation = \"KQVO\"\ninit = " + init + "\n");
    const Vector flow = read_flow_problem(config.root(), seed).setup.theta0;
    EXPECT_EQ(Trainer(read_train(config.root(), seed).config).theta(), flow);
    config.check_all_used();
    return flow;
  };
  const Vector of_run = starts("{ kind = \"torch\" }", 5);
  EXPECT_EQ(starts("{ kind = \"torch\", seed = 5 }", 0), of_run);
  EXPECT_NE(starts("{ kind = \"torch\", seed = 6 }", 5), of_run);
}

// Defect 1: every start of C++ can be given, for several heads too.
TEST(IclConfig, EveryStartCanBeGiven) {
  const auto model = [](const std::string& lines) {
    const Config config = config_of(std::string(kTask) + "[model]\n" + lines);
    const ModelConfig out = read_model(config.root(), read_task(config.root()), 0);
    config.check_all_used();
    return out;
  };
  EXPECT_EQ(model("init = { kind = \"identity\", scale = 0.3 }\n").start.alpha, 0.3);
  EXPECT_EQ(model("heads = 2\ninit = { kind = \"balanced\", seed = 4 }\n").start.seed, 4U);
  const std::string head = "{ U = 0.5, V = [[0,0,0],[0,0,0],[1,2,3]] }";
  const ModelConfig dense =
      model("heads = 2\ninit = { kind = \"dense\", heads = [" + head + ", " + head + "] }\n");
  ASSERT_EQ(dense.start.dense.size(), 2U);
  EXPECT_EQ(dense.start.dense[1].r(2), 3);
}

// A missing key is stored as the engine it stands for, so a stored configuration says what trained.
TEST(IclConfig, TheStoredEngineOfGradientsIsTheOneThatTrains) {
  const auto stored = [](const std::string& lines) {
    const Config config = config_of(std::string(kTask) + lines);
    EXPECT_NO_THROW(read_train(config.root(), 0));
    return config.resolved_toml();
  };
  EXPECT_NE(stored("").find("gradient = \"sampled\""), std::string::npos);
  EXPECT_NE(stored("features = \"uniform\"\n").find("gradient = \"direct\""), std::string::npos);
  EXPECT_NE(stored("[train]\ngradient = \"auto\"\n").find("gradient = \"auto\""),
            std::string::npos);
}

// What only training reads is no error for a flow; what nobody reads is one for both.
TEST(IclConfig, OneFileServesEveryVerb) {
  const std::string text = std::string(kTask) +
                           "[train]\noptimizer = \"adam\"\nsteps = 10\n[sweep]\n"
                           "lengths = { from = 10, to = 20 }\neps = [0.1]\n[flow]\nrtol = 1e-6\n";
  const auto unused = [](const std::string& toml, const auto& read) {
    const Config config = config_of(toml);
    read(config.root());
    return testing::message_of<ConfigError>([&] {
      config.check_all_used();
      return 0;
    });
  };
  const auto flow = [](const Table& root) { read_flow_problem(root, 0); };
  const auto train = [](const Table& root) { read_train(root, 0); };
  EXPECT_EQ(unused(text, flow), "no error");
  EXPECT_EQ(unused(text, train), "no error");
  const std::string odd = text + "speed = 3\n";
  EXPECT_NE(unused(odd, flow).find("flow.speed"), std::string::npos);
  EXPECT_NE(unused(odd, train).find("flow.speed"), std::string::npos);
}

}  // namespace
}  // namespace esscher
