// What a mixture would err on prompts of its own law, against the exact engine and against sampling.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>

#include "esscher/estimate/moments.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/walk.h"
#include "esscher/heads/diagnose.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/prompt/exact_mixture.h"
#include "tests/heads/some_heads.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

// A law of tokens z' = (k, v) with the surrogate's moments. Of the value covariances only the
// traces are known and only they matter to mean-square errors: what the keys do not explain is
// spread evenly over the coordinates.
GaussianMixtureLaw token_law(const Surrogate& surrogate) {
  const Index dk = surrogate.mean_k.cols();
  const Index dv = surrogate.mean_v.cols();
  GaussianMixtureLaw law{.weights = surrogate.weights, .components = {}};
  for (Index c = 0; c < surrogate.size(); ++c) {
    const Matrix& Ckk = surrogate.cov_k[c];
    const Matrix& Cvk = surrogate.cov_vk[c];
    const Matrix explained = Cvk * Ckk.ldlt().solve(Cvk.transpose());
    const double rest = surrogate.trace_v(c) - explained.trace();
    GaussianLaw component{.mean = Vector(dk + dv), .cov = Matrix(dk + dv, dk + dv)};
    component.mean << surrogate.mean_k.row(c).transpose(), surrogate.mean_v.row(c).transpose();
    component.cov << Ckk, Cvk.transpose(), Cvk,
        explained + rest / static_cast<double>(dv) * Matrix::Identity(dv, dv);
    law.components.push_back(component);
  }
  return law;
}

// Every query of every mixture has its control, and they are those of the exact engine at full
// accuracy on the surrogates that are exported.
TEST(MixtureControl, MixtureControlsAreTheExactEngineOnEveryQuery) {
  const Head head = head_of("clusters", four_clusters(700, 4), 1.0, false);
  HeadOptions options;
  options.components = {2, 4, 8};
  const HeadDiagnosis got = diagnose(head, options);
  const std::vector<Surrogate> surrogates = fit_surrogates(head, options);
  ASSERT_EQ(got.mixtures.size(), 3u);
  Matrix U = Matrix::Zero(9, 9);
  U.topLeftCorner(4, 4).setIdentity();
  Matrix V = Matrix::Zero(5, 9);
  V.rightCols(5).setIdentity();
  const Attention attention = Attention::from_uv(U, V);
  const Matrix values = head.V(0, head.n);
  for (std::size_t row = 0; row < 3; ++row) {
    const GaussianMixtureLaw law = token_law(surrogates[row + 1]);
    std::vector<double> ratios;
    for (const Index i : default_queries(head)) {
      Vector z = Vector::Zero(9);
      z.head(4) = head.scale * head.Q(i, 1).row(0);
      const Vector s = head.K(0, head.n) * z.head(4);
      const Vector w = (s.array() - s.maxCoeff()).exp();
      const Vector moved = values.transpose() * w / w.sum() - Vector(values.colwise().mean());
      const double error2 =
          MixtureErrors(law, attention, z).error_parts(Metric::output, head.n).total();
      ratios.push_back(std::sqrt(error2) / moved.norm());
    }
    EXPECT_EQ(got.mixtures[row].control_queries, 128);
    EXPECT_TRUE(testing::close(got.mixtures[row].control_lin_c.value(), median(ratios), 1e-6))
        << got.mixtures[row].k;
  }
}

// The control of a mixture is the mean over prompts drawn from it.
TEST(MixtureControl, TheMixtureControlIsTheMeanOverItsOwnPrompts) {
  const Head head = head_of("clusters", four_clusters(200, 3), 1.0, false);
  HeadOptions options;
  options.components = {4};
  options.queries = {7};
  const HeadDiagnosis got = diagnose(head, options);
  const Vector a = head.scale * head.Q(7, 1).row(0);
  const Surrogate surrogate = fit_surrogates(head, options).back();
  const GaussianMixtureLaw law = token_law(surrogate);
  std::vector<AnyMeasure> parts;
  for (const GaussianLaw& part : law.components) parts.emplace_back(Gaussian(part.mean, part.cov));
  const Mixture mixture(law.weights, parts);
  Moments error2;
  for (int r = 0; r < 2000; ++r) {
    const Matrix tokens = mixture.sample(Stream(77).split(r), head.n).tokens();
    const Vector s = tokens.leftCols(3) * a;
    const Vector w = (s.array() - s.maxCoeff()).exp();
    const Vector T = tokens.rightCols(5).transpose() * w / w.sum();
    error2.add((T - surrogate(a)).squaredNorm());
  }
  const Vector s = head.K(0, head.n) * a;
  const Vector w = (s.array() - s.maxCoeff()).exp();
  const Matrix values = head.V(0, head.n);
  const double signal = (values.transpose() * w / w.sum() - Vector(values.colwise().mean())).norm();
  EXPECT_TRUE(testing::agrees(error2.estimate(Engine::direct),
                              std::pow(got.mixtures.front().control_lin_c.value() * signal, 2)));
}

// The last query of a causal head sees every key: the same figures as without the mask.
TEST(MixtureControl, CausalHeadsHaveAMixtureControlAtEachPrompt) {
  const Matrix keys = four_clusters(600, 4);
  const Matrix queries = random_matrix(Stream(21, 13), 600, 4) / 2.0;
  HeadOptions options;
  options.components = {4};
  options.queries = {599};
  const auto control = [&](bool causal) {
    const Head head = make_head("last", queries, keys, values_of(keys, 5), 1.0, causal);
    return diagnose(head, options).mixtures.front();
  };
  EXPECT_TRUE(testing::close(control(true).control_lin_c.value(),
                             control(false).control_lin_c.value(), 1e-9));
  EXPECT_EQ(control(true).control_queries, 1);
}

// A query in the middle of a causal head: the mixture of all keys, its moments over the keys before
// the query, by hand.
TEST(MixtureControl, CausalControlsReadThePromptOfTheQuery) {
  const Matrix keys = four_clusters(600, 4);
  const Matrix values = values_of(keys, 5);
  const Matrix queries = random_matrix(Stream(21, 13), 600, 4) / 2.0;
  const Head head = make_head("middle", queries, keys, values, 1.0, true);
  HeadOptions options;
  options.components = {4};
  options.queries = {299};
  const HeadDiagnosis got = diagnose(head, options);
  const SurrogateModel model = fit_models(head, options, {false}).back();
  PromptMoments moments = model.moments;
  const Matrix prompt = keys.topRows(300);
  const Matrix shifted = prompt.rowwise() - moments.origin_k().transpose();
  moments.add(shifted, values.topRows(300).rowwise() - moments.origin_v().transpose(),
              responsibilities(*model.fit, shifted));
  const Vector s = prompt * queries.row(299).transpose();
  const Vector w = s.array().exp();
  const Vector moved =
      values.topRows(300).transpose() * w / w.sum() - Vector(values.topRows(300).colwise().mean());
  const double control =
      mixture_control(moments.scores(queries.row(299), model.floor()).front(), 300);
  EXPECT_TRUE(
      testing::close(got.mixtures.front().control_lin_c.value(), control / moved.norm(), 1e-9));
}

}  // namespace
}  // namespace esscher
