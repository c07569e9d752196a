#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/base/svd.h"
#include "esscher/config/icl.h"
#include "esscher/config/layer.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::message_of;

LayerProblem read(const std::string& text) {
  const Config config = Config::parse(text, "t.toml");
  config.check_known();
  LayerProblem out = read_layer_problem(config.root(), 0);
  config.check_all_used();
  return out;
}

TEST(LayerConfig, ReadsEveryTypeOfTask) {
  const LayerProblem denoising = read(R"toml(
[task]
type = "denoising"
means = [[1.5, 0.0], [-1.5, 0.0]]
weights = [1, 3]
gamma = 0.5
xi = 0.7
[model]
init = { kind = "dense", U = [[1, 2], [3, 4]], V = 0.5, W = [[0, 1], [1, 0]] }
[sweep]
lengths = [10, "inf"]
engine = "exact"
)toml");
  EXPECT_EQ(denoising.risk.engine, Engine::exact);
  EXPECT_EQ(denoising.task.type, TaskType::denoising);
  EXPECT_EQ(denoising.task.strata[1], 0.75);
  EXPECT_EQ(denoising.layer.heads[0].U(1, 0), 3);
  EXPECT_EQ(denoising.layer.heads[0].V, 0.5 * Matrix::Identity(2, 2));
  EXPECT_EQ(denoising.layer.W(0, 1), 1);
  EXPECT_TRUE(denoising.lengths[1].is_infinite());

  const LayerProblem single = read(R"toml(
[task]
type = "single_index"
dim = 2
link = "sign"
noise_variance = 0.1
index_law = "sphere"
[model]
init = { kind = "dense", U = 1.0, V = [[9, 9, 9], [9, 9, 9], [0, 0, 2]] }
)toml");
  EXPECT_EQ(single.task.token_dim, 3);
  EXPECT_EQ(single.layer.out_dim(), 1);
  EXPECT_EQ(single.layer.heads[0].V(0, 2), 2);

  const LayerProblem classes = read(R"toml(
[task]
type = "classification"
means = [[1, 0], [-1, 0]]
cov = [[1, 0.2], [0.2, 1]]
[model]
kinds = ["softmax", "linear"]
init = { kind = "dense", U = [[[1,0,0],[0,1,0],[0,0,0]], [[0,0,0],[0,0,0],[0,0,0]]], V = [[[0,0,1]], [[0,0,2]]] }
)toml");
  ASSERT_EQ(classes.layer.heads.size(), 2u);
  EXPECT_EQ(classes.layer.heads[1].kind, ModelKind::linear);
  EXPECT_EQ(classes.layer.heads[1].V(0, 2), 2);

  const LayerProblem logistic = read(R"toml(
[task]
type = "classification"
dim = 2
means_law = "gaussian"
loss = "logistic"
[model]
parametrisation = "KQVO"
key_dim = 2
score_scale = "1/sqrt(d)"
heads = 2
init = { kind = "torch", seed = 4 }
)toml");
  EXPECT_EQ(logistic.task.loss, TaskLoss::logistic);
  EXPECT_EQ(logistic.layer.heads.size(), 2u);
  EXPECT_EQ(logistic.layer.W.norm(), 0);
  const Vector values = svd(logistic.layer.heads[0].U).s;
  EXPECT_GT(values[1], 1e-3);
  EXPECT_LT(values[2], 1e-12);  // key_dim = 2

  const LayerProblem pool = read(R"toml(
[task]
type = "pool"
dim = 2
pool_size = 8
pool_seed = 3
)toml");
  EXPECT_EQ(pool.task.strata.size(), 8);
  EXPECT_EQ(pool.layer.heads[0].U, 0.01 * Matrix::Identity(3, 3));

  // Regression with a law of w or of covariances of its own.
  const LayerProblem sparse = read(R"toml(
[task]
dim = 4
nonzero = 2
cov_law = "wishart"
)toml");
  EXPECT_EQ(sparse.task.type, TaskType::linear);
  EXPECT_EQ(sparse.task.strata.size(), 6);
  EXPECT_EQ(sparse.task.law_normals, 2 + 8 * 4);
  EXPECT_DOUBLE_EQ(sparse.task.moments(Stream(1)).tt, 2);
  const LayerProblem low = read("task = { type = 'linear', dim = 4, rank = 1, task_variance = 3 }");
  EXPECT_DOUBLE_EQ(low.task.moments(Stream(1)).tt, 3);

  const LayerProblem drawn = read(R"toml(
[task]
type = "denoising"
dim = 3
components = 4
means_law = "sphere"
mean_scale = 2
)toml");
  EXPECT_EQ(drawn.task.law_normals, 12);
}

TEST(LayerConfig, MistakesNameTheKey) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& bad : {
           Case{"task = { type = 'denoising', means = [[1],[2]], xi = -1 }",
                "task.xi is -1, expected a number >= 0"},
           Case{"task = { type = 'denoising' }", "task.means"},
           Case{"task = { type = 'denoising', means = [[1],[2]], features = 'sphere' }",
                "task.features"},
           Case{"task = { type = 'clustering' }", "task.type is \"clustering\""},
           Case{"task = { type = 'classification', means = [[1]] }", "two rows"},
           Case{"task = { type = 'pool', dim = 2 }", "task.pool_size"},
           Case{"task = { type = 'single_index', dim = 2, link = 'sine' }", "task.link"},
           Case{"task = { dim = 2, nonzero = 3 }", "task.nonzero is 3, expected"},
           Case{"task = { dim = 40, nonzero = 20 }", "at most 1000 sets"},
           Case{"task = { dim = 2, cov_law = 'wishhart' }", "task.cov_law is \"wishhart\""},
           Case{"task = { dim = 2, cov_law = 'scale', degrees = 3 }", "task.degrees"},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model.init = { kind = 'dense', U = [[1, 2]], V = [[1]] }",
                "model.init.U: shape is [1,2], expected [1,1]"},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model.init = { kind = 'dense', U = [[[1]], [[2]]], V = [[1]] }",
                "model.init.V is [[1]], expected 2 matrices"},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model.init = { kind = 'normal' }",
                "model.init.kind is \"normal\""},
           Case{"task = { type = 'denoising', means = [[1],[2]], loss = 'logistic' }", "task.loss"},
           Case{"task = { type = 'classification', means = [[1],[2]], loss = 'hinge' }",
                "task.loss is \"hinge\""},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model = { parametrisation = 'block' }",
                "model.parametrisation is \"block\""},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model = { parametrisation = 'KQV', family = 'scalars' }",
                "the parametrisation is KQV"},
           Case{"task = { type = 'denoising', means = [[1],[2]] }\n"
                "model = { key_dim = 2 }",
                "model.key_dim"},
       }) {
    const std::string said = message_of<ConfigError>([&] { return read(bad.text); });
    EXPECT_NE(said.find(bad.says), std::string::npos) << bad.text << "\nsaid: " << said;
  }
}

TEST(LayerConfig, RegressionVerbsRefuseOtherTasks) {
  const Config config = Config::parse("task = { type = 'pool', dim = 2, pool_size = 3 }", "t.toml");
  EXPECT_NE(message_of<ConfigError>([&] {
              return read_task(config.root());
            }).find("task.type is \"pool\", expected \"regression\""),
            std::string::npos);
}

}  // namespace
}  // namespace esscher
