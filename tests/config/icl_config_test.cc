#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/config/presets.h"
#include "esscher/training/study.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

Config config_of(const std::string& text) { return Config::parse(text, "test.toml"); }

FlowStudy short_study(const Config& config) {
  const Table root = config.root();
  FlowStudy study;
  study.task = read_task(root);
  const ModelConfig model = read_model(root, study.task);
  const FlowConfig flow = read_flow(root, 0);
  study.kind = model.kind;
  study.length = flow.length;
  study.space = model.space;
  study.theta0 = model.theta0;
  study.flow = flow.options;
  study.risk = flow.risk;
  study.alpha = model.alpha;
  return study;
}

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
  const ModelConfig model = read_model(config.root(), task);
  EXPECT_EQ(model.kind, ModelKind::linear);
  EXPECT_TRUE(close(model.space.score_scale, 1 / std::sqrt(3.0), 1e-15));
  const Readout start = model.space.readout(model.theta0);
  EXPECT_TRUE(close(start.U, Matrix(0.3 * Matrix::Identity(3, 3)), 1e-12));
  EXPECT_TRUE(close(start.r(2), 3, 1e-12));
  EXPECT_TRUE(read_flow(config.root(), 0).length.is_infinite());
  config.check_all_used();
}

TEST(IclConfig, RefusesByKey) {
  const auto refused = [](const std::string& text, const std::string& key) {
    const Config config = config_of(text);
    try {
      const LinearRegressionTask task = read_task(config.root());
      read_model(config.root(), task);
      read_flow(config.root(), 0);
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
  EXPECT_TRUE(refused("[task]\ndim = 2\n[model]\ninit = { kind = \"torch\" }\n", "model.init"));
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
    const LinearRegressionTask task = read_task(config.root());
    read_model(config.root(), task);
    read_flow(config.root(), 0);
    skip_preset(config.root());
  }
  EXPECT_GE(seen, 8);
}

TEST(Presets, FlowsRunShortened) {
  for (const Preset& preset : presets()) {
    if (preset.verb != "icl flow") continue;
    Config config = load_preset(preset.name);
    config.set("flow.t_end=2");
    config.set("flow.draws=50");
    const Json document = flow_document(flow_rows(short_study(config)));
    EXPECT_EQ(document["status"], "t_end") << preset.name;
    EXPECT_LT(document["path"].back()["risk"], document["path"].front()["risk"]) << preset.name;
  }
}

TEST(Presets, AuditComparesShortened) {
  const FlowStudy flow = short_study(load_preset("audit-d4"));
  CompareStudy study;
  study.setup.task = flow.task;
  study.setup.space = flow.space;
  study.setup.theta0 = flow.theta0;
  study.setup.flow = flow.flow;
  study.setup.risk = flow.risk;
  study.setup.risk.log2_nodes = 6;
  study.setup.points = 10;
  study.lengths = {Length(10), Length(1000)};
  study.eps = {0.5};
  std::vector<Json> rows;
  const std::vector<std::string> keys = compare_keys(study);
  ASSERT_EQ(keys.size(), 7u);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (const Json& row : compare_rows(study, i)) rows.push_back(row);
  }
  const Json document = compare_document(rows);
  ASSERT_EQ(document["rows"].size(), 5u);
  EXPECT_EQ(document["rows"][0]["model"], "infinity");
  EXPECT_LT(document["rows"][0]["limiting_risk"], 1e-12);
  EXPECT_GT(document["rows"][1]["limiting_risk"], document["rows"][2]["limiting_risk"]);
  EXPECT_EQ(document["lengths"].size(), 2u);
  EXPECT_EQ(document["lengths"][0]["status"], "found");
}

}  // namespace
}  // namespace esscher
