#include "esscher/risk/layer_risk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/layer_error.h"
#include "esscher/task/classification.h"
#include "esscher/task/denoising.h"
#include "esscher/task/pool.h"
#include "esscher/task/single_index_task.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::close;

// --- brute force, in code of its own: everything is drawn, token by token

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : normals_(seed, 1), uniforms_(seed, 2) {}
  double normal() { return normals_.normal(next_++); }
  double uniform() { return uniforms_.uniform(next_++); }
  Vector normals(Index n) {
    Vector out(n);
    for (double& x : out) x = normal();
    return out;
  }

 private:
  Stream normals_, uniforms_;
  std::uint64_t next_ = 0;
};

struct Scene {
  Matrix prompt;  // [L,D]
  Vector query, target;
};

Vector say(const Layer& layer, const Scene& scene) {
  Vector out = layer.W * scene.query;
  for (const LayerHead& head : layer.heads) {
    const Vector scores = scene.prompt * (head.U * scene.query);
    Vector omega = scores / static_cast<double>(scores.size());
    if (head.kind == ModelKind::softmax) {
      omega = (scores.array() - scores.maxCoeff()).exp().matrix();
      omega /= omega.sum();
    }
    out += head.V * (scene.prompt.transpose() * omega);
  }
  return out;
}

template <class MakeScene>
Estimate brute_force(const Layer& layer, int n, const MakeScene& make) {
  Moments out;
  Dice dice(99);
  for (int i = 0; i < n; ++i) {
    const Scene scene = make(dice);
    out.add(0.5 * (say(layer, scene) - scene.target).squaredNorm());
  }
  return out.estimate(Engine::direct);
}

Scene denoising_scene(Dice& dice, const Matrix& means, const Vector& pi, double gamma, double xi,
                      Index L) {
  const Index d = means.cols();
  const auto clean = [&] {
    double u = dice.uniform();
    Index k = 0;
    while (k + 1 < pi.size() && u > pi[k]) u -= pi[k++];
    return Vector(means.row(k).transpose() + gamma * dice.normals(d));
  };
  Scene out{Matrix(L, d), {}, clean()};
  out.query = out.target + xi * dice.normals(d);
  for (Index l = 0; l < L; ++l) out.prompt.row(l) = (clean() + xi * dice.normals(d)).transpose();
  return out;
}

Scene classification_scene(Dice& dice, const Matrix& means, double plus, const Matrix& root,
                           Index L) {
  const Index d = means.cols();
  const auto point = [&] {
    const bool is_plus = dice.uniform() < plus;
    Vector out(d + 1);
    out.head(d) = means.row(is_plus ? 0 : 1).transpose() + root * dice.normals(d);
    out[d] = is_plus ? 1 : -1;
    return out;
  };
  Scene out{Matrix(L, d + 1), point(), Vector(1)};
  out.target[0] = out.query[d];
  out.query[d] = 0;
  for (Index l = 0; l < L; ++l) out.prompt.row(l) = point().transpose();
  return out;
}

template <class Label>
Scene label_scene(Dice& dice, Index d, const Label& label, double noise, Index L) {
  Scene out{Matrix(L, d + 1), Vector::Zero(d + 1), Vector(1)};
  for (Index l = 0; l < L; ++l) {
    const Vector x = dice.normals(d);
    out.prompt.row(l).head(d) = x.transpose();
    out.prompt(l, d) = label(x) + std::sqrt(noise) * dice.normal();
  }
  out.query.head(d) = dice.normals(d);
  out.target[0] = label(out.query.head(d));
  return out;
}

// --- layers

Layer layer_of(Index D, Index m, double u, double v, double w) {
  const Matrix I = Matrix::Identity(D, D);
  return {w * I.bottomRows(m), {{ModelKind::softmax, u * I, v * I.bottomRows(m)}}};
}

DenoisingTask two_means(double gamma, double xi) {
  DenoisingTask task;
  task.means.fixed = Matrix{{1.5, 0.5}, {-1.5, -0.5}};
  task.weights = Vector{{0.5, 0.5}};
  task.gamma = gamma;
  task.xi = xi;
  return task;
}

// The layer of task/denoising.h: one softmax head and a residual.
Layer bayes_layer(const DenoisingTask& task) {
  const double g2 = task.gamma * task.gamma, x2 = task.xi * task.xi, S = g2 + x2;
  const Index d = task.means.cols();
  const Matrix I = Matrix::Identity(d, d);
  return {(g2 - x2) / S * I, {{ModelKind::softmax, I / S, x2 / S * I}}};
}

// Two heads without a residual, for means +-m in at least two dimensions. The first has the gates
// and keeps what is orthogonal to m; the second reads m'z without gates, through a direction b that
// is orthogonal to m.
Layer two_head_layer(const DenoisingTask& task) {
  const double g2 = task.gamma * task.gamma, x2 = task.xi * task.xi, S = g2 + x2;
  const Vector m = task.means.fixed.row(0).transpose().normalized();
  const Vector b{{-m[1], m[0]}};
  const Matrix I = Matrix::Identity(2, 2);
  return {Matrix::Zero(2, 2),
          {{ModelKind::softmax, I / S, x2 / S * (m * m.transpose()) + g2 / S * (b * b.transpose())},
           {ModelKind::softmax, b * m.transpose() / S, (g2 - x2) / S * m * b.transpose()}}};
}

TEST(LayerRisk, DenoisingAgreesWithBruteForce) {
  const DenoisingTask task = two_means(0.6, 0.9);
  const ContextTask context = denoising_task(task);
  const Layer layer = layer_of(2, 2, 0.7, 0.6, 0.2);
  for (const Index L : {1, 7}) {
    const Estimate risk = layer_risk(context, layer, L, {});
    EXPECT_EQ(risk.engine, Engine::quadrature);
    EXPECT_LT(risk.std_error, 1e-5 * risk.value);
    EXPECT_TRUE(agrees(brute_force(layer, 10000,
                                   [&](Dice& dice) {
                                     return denoising_scene(dice, task.means.fixed, task.weights,
                                                            task.gamma, task.xi, L);
                                   }),
                       risk.value))
        << L;
  }
}

TEST(LayerRisk, DrawnMeansAgreeWithBruteForce) {
  for (const MeansLaw law : {MeansLaw::gaussian, MeansLaw::sphere}) {
    DenoisingTask task;
    task.means = {.law = law, .fixed = {}, .count = 2, .dim = 3, .scale = 1.5};
    task.weights = Vector{{0.3, 0.7}};
    task.gamma = 0.5;
    task.xi = 0.8;
    const Layer layer = layer_of(3, 3, 0.6, 0.5, 0.3);
    const Estimate risk = layer_risk(denoising_task(task), layer, 5, {});
    EXPECT_TRUE(agree(brute_force(layer, 10000,
                                  [&](Dice& dice) {
                                    Matrix means(2, 3);
                                    for (Index k = 0; k < 2; ++k) {
                                      Vector g = dice.normals(3);
                                      if (law == MeansLaw::sphere) g.normalize();
                                      means.row(k) = 1.5 * g.transpose();
                                    }
                                    return denoising_scene(dice, means, task.weights, 0.5, 0.8, 5);
                                  }),
                      risk))
        << name(law);
  }
}

TEST(LayerRisk, ClassificationAgreesWithBruteForce) {
  ClassificationTask task;
  task.means.fixed = Matrix{{1.0, 0.2}, {-0.6, 0.4}};
  task.weights = Vector{{0.4, 0.6}};
  task.cov = Matrix{{1.0, 0.3}, {0.3, 0.7}};
  Layer layer = layer_of(3, 1, 0.8, 0.9, 0.1);
  layer.heads[0].U(2, 0) = 0.5;  // scores read labels
  layer.W << 0.2, -0.1, 0.0;
  const Matrix root = psd_sqrt("test", "cov", task.cov);
  for (const Index L : {1, 6}) {
    EXPECT_TRUE(agrees(brute_force(layer, 10000,
                                   [&](Dice& dice) {
                                     return classification_scene(dice, task.means.fixed, 0.4, root,
                                                                 L);
                                   }),
                       layer_risk(classification_task(task), layer, L, {}).value))
        << L;
  }
}

TEST(LayerRisk, SingleIndexAgreesWithBruteForce) {
  for (const IndexLaw law : {IndexLaw::gaussian, IndexLaw::sphere}) {
    SingleIndexTask task;
    task.cov = Matrix::Identity(2, 2);
    task.link = Link(LinkName::sign);
    task.index_law = law;
    task.noise_variance = 0.2;
    const Layer layer = layer_of(3, 1, 0.9, 0.8, 0);
    const Estimate risk = layer_risk(single_index_task(task), layer, 6, {.log2_nodes = 9});
    EXPECT_TRUE(agree(brute_force(layer, 10000,
                                  [&](Dice& dice) {
                                    Vector w = dice.normals(2);
                                    if (law == IndexLaw::sphere) w.normalize();
                                    const auto label = [&](const Vector& x) {
                                      return w.dot(x) > 0 ? 1.0 : -1.0;
                                    };
                                    return label_scene(dice, 2, label, 0.2, 6);
                                  }),
                      risk))
        << name(law);
  }
}

TEST(LayerRisk, PoolAgreesWithBruteForce) {
  PoolTask task;
  task.pool = Matrix{{1.0, 0.0}, {-0.5, 1.0}, {0.3, -1.2}};
  task.cov = Matrix::Identity(2, 2);
  task.noise_variance = 0.1;
  const Layer layer = layer_of(3, 1, 0.9, 0.8, 0);
  EXPECT_TRUE(agrees(brute_force(layer, 10000,
                                 [&](Dice& dice) {
                                   const auto i = static_cast<Index>(3 * dice.uniform());
                                   const Vector w = task.pool.row(i).transpose();
                                   const auto label = [&](const Vector& x) { return w.dot(x); };
                                   return label_scene(dice, 2, label, 0.1, 6);
                                 }),
                     layer_risk(pool_task(task), layer, 6, {}).value));
}

TEST(LayerRisk, SeveralHeadsAreDrawnAndAgreeWithBruteForce) {
  const DenoisingTask task = two_means(0.6, 0.9);
  Layer layer = layer_of(2, 2, 0.7, 0.6, 0.2);
  layer.heads.push_back(
      {ModelKind::softmax, -0.3 * Matrix::Identity(2, 2), Matrix{{0.1, 0.2}, {0.0, -0.4}}});
  layer.heads.push_back(
      {ModelKind::linear, 0.2 * Matrix::Identity(2, 2), Matrix{{0.1, 0.0}, {0.3, 0.1}}});
  const Estimate risk = layer_risk(denoising_task(task), layer, 4, {.draws = 10000});
  EXPECT_EQ(risk.engine, Engine::direct);
  EXPECT_TRUE(agree(brute_force(layer, 10000,
                                [&](Dice& dice) {
                                  return denoising_scene(dice, task.means.fixed, task.weights,
                                                         task.gamma, task.xi, 4);
                                }),
                    risk));
}

TEST(LayerRisk, TwoSoftmaxHeadsAreExactIfAskedFor) {
  DenoisingTask line;
  line.means.fixed = Matrix{{1.5}, {-1.5}};
  line.weights = Vector{{0.5, 0.5}};
  line.gamma = line.xi = 0.7;
  const ContextTask task = denoising_task(line);
  Layer layer = layer_of(1, 1, 0.8, 0.6, 0.1);
  layer.heads.push_back({ModelKind::softmax, Matrix{{-0.5}}, Matrix{{0.3}}});
  const Estimate exact = layer_risk(task, layer, 6, {.engine = Engine::exact});
  EXPECT_EQ(exact.engine, Engine::quadrature);
  EXPECT_LT(exact.std_error, 1e-8);
  const Estimate drawn = layer_risk(task, layer, 6, {.draws = 20000});
  EXPECT_EQ(drawn.engine, Engine::direct);
  EXPECT_TRUE(agrees(drawn, exact.value));
}

TEST(LayerRisk, DrawnPromptsAgreeWithTheFormula) {
  const ContextTask task = denoising_task(two_means(0.6, 0.9));
  const Layer layer = layer_of(2, 2, 0.7, 0.6, 0.2);
  const Estimate direct = layer_risk(task, layer, 12, {.draws = 20000, .engine = Engine::direct});
  EXPECT_EQ(direct.engine, Engine::direct);
  EXPECT_TRUE(agrees(direct, layer_risk(task, layer, 12, {}).value));
}

TEST(LayerRisk, TheLayersOfTheTheoryAreThePosteriorMean) {
  const DenoisingTask task = two_means(0.6, 0.9);
  const ContextTask context = denoising_task(task);
  for (const Layer& layer : {bayes_layer(task), two_head_layer(task)}) {
    for (const WeightedNode& at : lattice_nodes(context, 0)) {
      const Vector out = layer_output(layer, at.node.tokens->measure(), at.node.query);
      EXPECT_TRUE(close(out, at.node.target, 1e-12));
    }
    const double risk = layer_risk(context, layer, Length::infinity(), {}).value;
    const double bayes = reference_risks(context, Length::infinity(), {}).bayes.value;
    EXPECT_TRUE(close(risk, bayes, 1e-12));
  }
  // The control: one head without a residual is not, unless gamma = xi.
  Layer alone = bayes_layer(task);
  alone.W.setZero();
  const double bayes = reference_risks(context, Length::infinity(), {}).bayes.value;
  EXPECT_GT(layer_risk(context, alone, Length::infinity(), {}).value, 1.01 * bayes);
  const DenoisingTask equal = two_means(0.8, 0.8);
  EXPECT_EQ(bayes_layer(equal).W, Matrix::Zero(2, 2));
}

// The limit's optimum is in the slow regime: a cooler layer and even an affine map beat it at L =
// 100.
TEST(LayerRisk, TheOptimumOfTheLimitIsTooSharpForFinitePrompts) {
  DenoisingTask task;
  task.means.fixed = Matrix{{1.5}, {-1.5}};
  task.gamma = task.xi = 1 / std::numbers::sqrt2;
  const ContextTask context = denoising_task(task);
  const Layer limit = layer_of(1, 1, 1.0, 0.5, 0.0), cooler = layer_of(1, 1, 0.7, 0.5, 0.2);
  const double affine = reference_risks(context, 100, {}).affine.value;
  EXPECT_GT(layer_risk(context, limit, 100, {}).value, affine);
  EXPECT_LT(layer_risk(context, cooler, 100, {}).value, affine);
  const double at_infinity = layer_risk(context, limit, Length::infinity(), {}).value;
  EXPECT_TRUE(close(layer_risk(context, limit, 1000000000000000L, {}).value, at_infinity, 1e-2));
  const Layer slow = layer_of(1, 1, 0.3, 0.5, 0.1);
  EXPECT_TRUE(close(layer_risk(context, slow, 1000000000000L, {}).value,
                    layer_risk(context, slow, Length::infinity(), {}).value, 1e-7));
}

TEST(LayerRisk, BayesIsNeverBeaten) {
  DenoisingTask line;
  line.means.fixed = Matrix{{1.0}, {-0.5}};
  line.gamma = 0.5;
  line.xi = 0.7;
  std::vector<ContextTask> tasks{denoising_task(line)};
  ClassificationTask classes;
  classes.means.fixed = Matrix{{1.0}, {-0.6}};
  classes.cov = Matrix::Identity(1, 1);
  tasks.push_back(classification_task(classes));
  PoolTask pool;
  pool.pool = Matrix{{1.0}, {-0.5}, {0.3}};
  pool.cov = Matrix::Identity(1, 1);
  pool.noise_variance = 0.3;
  tasks.push_back(pool_task(pool));
  for (const ContextTask& task : tasks) {
    for (const Length L : {Length(2), Length(40), Length::infinity()}) {
      const ReferenceRisks best = reference_risks(task, L, {});
      const double bound = best.bayes.value - 6 * best.bayes.std_error;
      EXPECT_LE(bound, best.affine.value);
      EXPECT_LE(best.affine.value, best.linear.value + 1e-12);
      for (const double u : {0.1, 0.5, 1.0}) {
        for (const double v : {0.2, 0.5, 1.0}) {
          const Layer layer = layer_of(task.token_dim, task.out_dim, u, v, 0.1);
          EXPECT_GE(layer_risk(task, layer, L, {}).value, bound)
              << name(task.type) << " L " << L.text() << " u " << u << " v " << v;
        }
      }
    }
  }
}

TEST(LayerRisk, ReferencesAgreeWithLeastSquares) {
  // Regression of drawn targets on drawn queries, with and without an intercept.
  ClassificationTask classes;
  classes.means.fixed = Matrix{{1.0, 0.2}, {-0.6, 0.4}};
  classes.weights = Vector{{0.3, 0.7}};
  classes.cov = Matrix{{1.0, 0.3}, {0.3, 0.7}};
  SingleIndexTask single;
  single.cov = Matrix::Identity(2, 2);
  single.link = Link(LinkName::relu);
  for (const ContextTask& task : {denoising_task(two_means(0.6, 0.9)), classification_task(classes),
                                  single_index_task(single)}) {
    QueryMoments drawn{Vector::Zero(task.token_dim), Matrix::Zero(task.token_dim, task.token_dim),
                       Vector::Zero(task.out_dim), Matrix::Zero(task.out_dim, task.token_dim), 0};
    constexpr int n = 20000;
    for (std::uint64_t i = 0; i < n; ++i) {
      const ContextNode node = draw_node(task, Stream(5).split(i));
      const Vector t = task.target(node, Stream(6).split(i));
      drawn.z += node.query / n;
      drawn.zz += node.query * node.query.transpose() / n;
      drawn.t += t / n;
      drawn.tz += t * node.query.transpose() / n;
      drawn.tt += t.squaredNorm() / n;
    }
    const ReferenceRisks best = reference_risks(task, 10, {});
    EXPECT_TRUE(close(best.affine.value, best_affine_risk(drawn), 0.05)) << name(task.type);
    EXPECT_TRUE(close(best.linear.value, best_linear_risk(drawn), 0.05)) << name(task.type);
  }
}

// The posterior of a pool, simulated in code of its own.
TEST(LayerRisk, BayesOfAPoolAgreesWithBruteForce) {
  PoolTask task;
  task.pool = Matrix{{1.0, 0.0}, {-0.5, 1.0}, {0.3, -1.2}};
  task.cov = Matrix::Identity(2, 2);
  task.noise_variance = 0.5;
  const ReferenceRisks best = reference_risks(pool_task(task), 3, {.draws = 10000});
  EXPECT_FALSE(best.bayes_is_bound());
  Moments out;
  Dice dice(3);
  for (int n = 0; n < 10000; ++n) {
    const Vector w = task.pool.row(static_cast<Index>(3 * dice.uniform())).transpose();
    Vector density = Vector::Ones(3);
    for (int l = 0; l < 3; ++l) {
      const Vector x = dice.normals(2);
      const double y = w.dot(x) + std::sqrt(0.5) * dice.normal();
      for (Index i = 0; i < 3; ++i) {
        const double rest = y - task.pool.row(i).dot(x);
        density[i] *= std::exp(-rest * rest);
      }
    }
    const Vector x = dice.normals(2);
    const double said = (task.pool * x).dot(density / density.sum());
    out.add(0.5 * (said - w.dot(x)) * (said - w.dot(x)));
  }
  EXPECT_TRUE(agree(out.estimate(Engine::direct), best.bayes));
}

TEST(LayerRisk, FixedNodesHaveTheirExactGradient) {
  DenoisingTask line;
  line.means.fixed = Matrix{{1.0}, {-0.5}};
  for (const Length L : {Length(5), Length::infinity()}) {
    const ContextTask task = denoising_task(line);
    const Layer layer = layer_of(1, 1, 0.7, 0.6, 0.2);
    const LayerRiskFunction f = layer_risk_function(task, layer, L, {});
    Layer gradient;
    (void)f(layer, &gradient);
    EXPECT_TRUE(testing::gradient_check(
        [&](const Vector& theta) { return f(layer.with(theta), nullptr); }, layer.parameters(),
        gradient.parameters(), {.step = 1e-2, .relative = 1e-7, .rounding = 1e-11}));
  }
  const ContextTask task = denoising_task(two_means(0.6, 0.9));
  Layer two = layer_of(2, 2, 0.7, 0.6, 0.2);
  two.heads.push_back(two.heads[0]);
  two.heads[1].U *= -0.5;
  const LayerRiskFunction f = layer_risk_function(task, two, 5, {.draws = 50});
  Layer gradient;
  (void)f(two, &gradient);
  EXPECT_TRUE(testing::gradient_check(
      [&](const Vector& theta) { return f(two.with(theta), nullptr); }, two.parameters(),
      gradient.parameters(), {.step = 1e-2, .relative = 1e-7, .rounding = 1e-12}));
}

TEST(LayerRisk, SameBitsForAnyNumberOfThreads) {
  DenoisingTask task;
  task.means = {.law = MeansLaw::sphere, .fixed = {}, .count = 2, .dim = 2, .scale = 1.5};
  const ContextTask context = denoising_task(task);
  const Layer layer = layer_of(2, 2, 0.7, 0.6, 0.2);
  const int before = thread_count();
  set_thread_count(1);
  const Estimate one = layer_risk(context, layer, 9, {.log2_nodes = 8, .scramblings = 2});
  const Estimate drawn = layer_risk(context, layer, 9, {.draws = 99, .engine = Engine::direct});
  set_thread_count(3);
  EXPECT_EQ(layer_risk(context, layer, 9, {.log2_nodes = 8, .scramblings = 2}).value, one.value);
  EXPECT_EQ(layer_risk(context, layer, 9, {.draws = 99, .engine = Engine::direct}).value,
            drawn.value);
  set_thread_count(before);
}

TEST(LayerRisk, MistakesAreNamed) {
  DenoisingTask bad = two_means(0.5, 0.5);
  bad.xi = -1;
  EXPECT_NE(
      testing::message_of<ArgumentError>([&] { return denoising_task(bad); }).find("xi is -1"),
      std::string::npos);
  const ContextTask task = denoising_task(two_means(0.6, 0.9));
  EXPECT_THROW((void)layer_risk(task, layer_of(3, 3, 1, 1, 0), 5, {}), DimensionError);
  Layer two = layer_of(2, 2, 0.7, 0.6, 0.2);
  two.heads.push_back(two.heads[0]);
  two.heads[1].kind = ModelKind::linear;
  EXPECT_NE(testing::message_of<CapabilityError>([&] {
              return layer_risk(task, two, 5, {.engine = Engine::exact});
            }).find("direct"),
            std::string::npos);
}

TEST(LayerRisk, RowsNameTaskAndReferences) {
  DenoisingTask line;
  line.means.fixed = Matrix{{1.0}, {-0.5}};
  const LayerProblem problem{.task = denoising_task(line),
                             .layer = layer_of(1, 1, 0.7, 0.6, 0.2),
                             .lengths = {Length(10), Length::infinity()},
                             .risk = {}};
  const std::vector<RiskRow> rows = layer_risk_rows(problem);
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[0].model, "softmax");
  EXPECT_EQ(rows[1].model, "bayes");
  EXPECT_EQ(rows[2].model, "affine");
  EXPECT_EQ(rows[3].model, "linear");
  for (const RiskRow& row : rows) EXPECT_EQ(row.task, "denoising");
  EXPECT_FALSE(rows[1].bound);
}

}  // namespace
}  // namespace esscher
