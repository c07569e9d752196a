#include "esscher/heads/diagnose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/heads/detail/walk.h"
#include "esscher/heads/load.h"
#include "esscher/measure/gaussian.h"
#include "tests/heads/some_heads.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

// One query over prompts of n Gaussian keys: the measured error of the limit is on average what the
// exact engine says of the law that the keys are drawn from.
TEST(Diagnose, GaussianKeysErrAsTheExactEngineSays) {
  constexpr Index kWidth = 3;
  const Vector a = Vector::Constant(kWidth, 0.6);
  const Matrix W = random_matrix(Stream(21, 40), kWidth, 2);  // v = W'k + noise of variance 1/4
  const ScoreMoments moments{.tau2 = a.squaredNorm(),
                             .signal2 = (W.transpose() * a).squaredNorm(),
                             .value_var = W.squaredNorm() + 2 * 0.25};
  HeadOptions options;
  options.components = {};
  options.tolerance = 10;  // no search for a length
  for (const Index n : {12, 150}) {
    for (const bool causal : {false, true}) {
      Moments error2, kurtosis;
      for (int r = 0; r < 1000; ++r) {
        const Stream stream = Stream(22, n).split(r);
        const Matrix keys = random_matrix(stream.split(1), n, kWidth);
        const Matrix values = keys * W + 0.5 * random_matrix(stream.split(2), n, 2);
        Matrix queries = Matrix::Zero(causal ? n : 1, kWidth);
        queries.bottomRows(1) = a.transpose();
        options.queries = {queries.rows() - 1};
        const HeadDiagnosis head =
            diagnose(make_head("gaussian", queries, keys, values, 1.0, causal), options);
        const Vector w = (keys * a).array().exp();
        const Vector T = values.transpose() * w / w.sum();
        error2.add(std::pow(head.gaussian.lin * T.norm(), 2));
        kurtosis.add(head.kurtosis);
      }
      EXPECT_TRUE(
          testing::agrees(error2.estimate(Engine::direct), gaussian_control(n, moments).error2))
          << n << " " << causal;
      const auto N = static_cast<double>(n);  // of n normals, with their own mean and variance
      EXPECT_TRUE(testing::agrees(kurtosis.estimate(Engine::direct), 3 * (N - 1) / (N + 1))) << n;
    }
  }
}

TEST(Diagnose, GaussianKeysAreLinearHereOrFromALength) {
  for (const bool causal : {false, true}) {
    const HeadDiagnosis head =
        diagnose(head_of("gaussian", random_matrix(Stream(21, 1), 2048, 8), 1.0, causal));
    EXPECT_TRUE(head.verdict_kind == HeadVerdict::linear_here ||
                head.verdict_kind == HeadVerdict::linear_from)
        << head.verdict << ": " << head.reason;
  }
}

// A prefix says what the head would say if it had these keys only.
TEST(Diagnose, PrefixesAreTheHeadOnItsFirstKeys) {
  const Matrix keys = four_clusters(700, 4);
  const Matrix values = values_of(keys, 5);
  const Matrix queries = random_matrix(Stream(21, 41), 12, 4);
  HeadOptions options;
  options.components = {};
  const auto diagnosis = [&](Index n) {
    return diagnose(make_head("prefix", queries, keys.topRows(n), values.topRows(n), 0.5, false),
                    options);
  };
  const std::vector<PrefixRow> rows = diagnosis(700).prefixes;
  ASSERT_EQ(rows.size(), 7u);  // 16, 32, .. 512 and all
  EXPECT_EQ(rows.back().n, 700);
  for (const PrefixRow& row : rows) {
    const HeadDiagnosis want = diagnosis(row.n);
    EXPECT_TRUE(testing::close(row.lin_c, want.gaussian.lin_c, 1e-9)) << row.n;
    EXPECT_TRUE(testing::close(row.control, want.control_lin_c, 1e-9)) << row.n;
    EXPECT_LE(row.control_low, row.control);
    EXPECT_GE(row.control_high, row.control);
  }
}

TEST(Diagnose, TheRightNumberOfComponentsWinsOutOfSample) {
  const HeadDiagnosis head = diagnose(head_of("clusters", four_clusters(4096, 6), 1.0, false));
  EXPECT_EQ(head.best_k, 4) << head.reason;
  EXPECT_EQ(head.verdict_kind, HeadVerdict::needs_components) << head.reason;
  EXPECT_EQ(head.verdict, "needs 4 components");
  ASSERT_EQ(head.mixtures[1].k, 4);
  EXPECT_LT(head.mixtures[1].control_lin_c.value(), 0.5);
}

TEST(Diagnose, ScoresBeyondTheExactEngineHaveNoMixtureControl) {
  const HeadDiagnosis head =
      diagnose(head_of("huge", random_matrix(Stream(21, 14), 300, 4), 300.0, false));
  ASSERT_FALSE(head.mixtures.empty());
  EXPECT_FALSE(head.mixtures.front().control_lin_c.has_value());
  EXPECT_EQ(head.mixtures.front().control_queries, 0);
  EXPECT_EQ(head.frozen, 1.0);
  EXPECT_TRUE(head.linear_from.is_infinite());
}

TEST(Diagnose, HeavyTailsAreNamed) {
  Matrix keys = random_matrix(Stream(21, 2), 4096, 4);
  const Matrix scale = random_matrix(Stream(21, 3), 4096, 2);
  for (Index l = 0; l < keys.rows(); ++l) {  // Student with two degrees of freedom
    keys.row(l) /= std::sqrt(0.5 * scale.row(l).squaredNorm()) + 1e-3;
  }
  const HeadDiagnosis head = diagnose(head_of("student", keys, 0.5, false));
  EXPECT_GT(head.kurtosis, 6);
  EXPECT_NE(head.reason.find("heavy-tailed"), std::string::npos) << head.verdict << head.reason;
}

TEST(Diagnose, OneDominantKeyIsNamed) {
  Matrix keys = 0.1 * random_matrix(Stream(21, 4), 512, 4);
  keys.row(17).setConstant(40.0);
  const Matrix queries = Matrix::Ones(64, 4);
  const HeadDiagnosis head =
      diagnose(make_head("sink", queries, keys, random_matrix(Stream(21, 5), 512, 3), 1.0, false));
  EXPECT_EQ(head.dominant, 1.0);
  EXPECT_NE(head.reason.find("one key"), std::string::npos) << head.reason;
  EXPECT_EQ(head.verdict_kind, HeadVerdict::not_linearisable);
}

TEST(Diagnose, ConstantKeysAreTheMeanValue) {
  const HeadDiagnosis head =
      diagnose(make_head("constant", random_matrix(Stream(21, 6), 32, 3), Matrix::Ones(64, 3),
                         random_matrix(Stream(21, 7), 64, 2), 1.0, false));
  EXPECT_LT(head.tau2, 1e-20);
  EXPECT_LT(head.gaussian.lin, 1e-12);
  EXPECT_EQ(head.verdict_kind, HeadVerdict::linear_here);
}

TEST(Diagnose, FewerKeysThanDimensionsAndDuplicatesAreFine) {
  const HeadDiagnosis few =
      diagnose(head_of("few", random_matrix(Stream(21, 8), 6, 16), 1.0, false));
  EXPECT_TRUE(few.mixtures.empty());
  EXPECT_FALSE(few.verdict.empty());
  Matrix twice(256, 4);
  twice << random_matrix(Stream(21, 9), 128, 4), random_matrix(Stream(21, 9), 128, 4);
  EXPECT_FALSE(diagnose(head_of("twice", twice, 1.0, false)).verdict.empty());
  const HeadDiagnosis one =
      diagnose(head_of("one", random_matrix(Stream(21, 10), 1, 3), 1.0, false));
  EXPECT_EQ(one.ess, 1.0);
  EXPECT_EQ(one.gaussian_split.lin_c, 0.0);
}

TEST(Diagnose, AMixtureIsNotPraisedForTheKeysItMemorised) {
  HeadOptions options;
  options.components = {2, 16};
  const HeadDiagnosis head = diagnose(head_of("short", four_clusters(100, 3), 1.0, false), options);
  ASSERT_EQ(head.mixtures.size(), 2u);
  EXPECT_FALSE(head.mixtures[1].split_lin_c.has_value());  // 50 keys are too few for 16 components
  EXPECT_EQ(head.best_k, 2);
}

// The law of the scores under a fitted mixture follows the histogram where one Gaussian cannot.
TEST(Diagnose, TheMixturesScoreLawFollowsTheHistogram) {
  HeadOptions options;
  options.components = {4};
  const HeadDiagnosis head =
      diagnose(head_of("clusters", four_clusters(4096, 2), 1.0, false), options);
  ASSERT_EQ(head.best_k, 4);
  constexpr double kWidth = 10.0 / kHistogramBins;
  EXPECT_NEAR(head.score_histogram.sum() * kWidth, 1.0, 1e-12);
  EXPECT_NEAR(head.score_mixture.sum() * kWidth, 1.0, 1e-12);
  Vector normal(kHistogramBins);
  for (Index i = 0; i < kHistogramBins; ++i) {
    const double x = -5 + kWidth * (static_cast<double>(i) + 0.5);
    normal(i) = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  }
  const double mixture_gap = (head.score_histogram - head.score_mixture).cwiseAbs().sum() * kWidth;
  const double normal_gap = (head.score_histogram - normal).cwiseAbs().sum() * kWidth;
  EXPECT_LT(mixture_gap, 0.05);
  EXPECT_GT(normal_gap, 4 * mixture_gap);
}

// A prompt longer than a chunk gives what the plain formulas give.
TEST(Diagnose, ChunksDoNotShow) {
  const Index n = 20000;
  const Head head = head_of("long", random_matrix(Stream(21, 11), n, 3), 1.2, false);
  HeadOptions options;
  options.components = {};
  options.queries = {5};
  const HeadDiagnosis got = diagnose(head, options);
  const Vector a = head.scale * head.Q(5, 1).row(0);
  const Vector s = head.K(0, n) * a;
  const Matrix v = head.V(0, n);
  const Vector w = (s.array() - s.maxCoeff()).exp() / (s.array() - s.maxCoeff()).exp().sum();
  const Vector mean = v.colwise().mean();
  const Vector linear = (v.rowwise() - mean.transpose()).transpose() *
                        (s.array() - s.mean()).matrix() / static_cast<double>(n);
  const Vector T = v.transpose() * w;
  EXPECT_TRUE(testing::close(got.ess, 1.0 / w.squaredNorm(), 1e-11));
  EXPECT_TRUE(
      testing::close(got.gaussian.lin_c, (T - mean - linear).norm() / (T - mean).norm(), 1e-9));
  EXPECT_TRUE(testing::close(got.gaussian.lin, (T - mean - linear).norm() / T.norm(), 1e-9));
  EXPECT_TRUE(testing::close(got.tau2, (s.array() - s.mean()).square().mean(), 1e-10));
}

// A long prompt: mixtures have their moments from every third key, everything else from all of them.
TEST(Diagnose, MixturesOfLongPromptsTakeSomeKeys) {
  const Index n = 9000;
  Matrix keys = random_matrix(Stream(23, 1), n, 3);
  for (Index l = 0; l < n; l += 2) keys.row(l).array() += 4.0;
  const Head head = head_of("long", keys, 0.8, false);
  HeadOptions options;
  options.components = {2};
  options.queries = {5, 17};
  options.windows = {16};
  const HeadDiagnosis all = diagnose(head, options);
  options.mixture_keys = 3000;
  const HeadDiagnosis some = diagnose(head, options);
  EXPECT_FALSE(all.mixture_keys);
  EXPECT_EQ(some.mixture_keys, 3000);
  EXPECT_EQ(some.gaussian.lin_c, all.gaussian.lin_c);
  EXPECT_EQ(some.ess, all.ess);
  EXPECT_NE(some.mixtures[0].in_sample.lin_c, all.mixtures[0].in_sample.lin_c);
  // The same fit with moments of rows 0, 3, 6, ..: the slow twin.
  std::vector<SurrogateModel> models = fit_models(head, options, {false});
  walk_prompt(head, {5}, models, options.mixture_keys);
  const MixtureFit& fit = *models[1].fit;
  const Vector origin_k = models[1].moments.origin_k(), origin_v = models[1].moments.origin_v();
  Matrix k(3000, 3), v(3000, head.dv);
  for (Index i = 0; i < 3000; ++i) {
    k.row(i) = head.K(3 * i, 1).row(0) - origin_k.transpose();
    v.row(i) = head.V(3 * i, 1).row(0) - origin_v.transpose();
  }
  PromptMoments moments(2, origin_k, origin_v);
  moments.add(k, v, responsibilities(fit, k));
  const Vector a = head.scale * head.Q(5, 1).row(0);
  EXPECT_TRUE(testing::close(models[1].moments.surrogate(fit.floor)(a),
                             moments.surrogate(fit.floor)(a), 1e-11));
  const auto has_mixture = [](const HeadDiagnosis& one) {
    return std::any_of(one.window->begin(), one.window->end(),
                       [](const WindowRow& row) { return row.tail == Tail::mixture; });
  };
  EXPECT_TRUE(has_mixture(all));
  EXPECT_FALSE(has_mixture(some));
}

TEST(Diagnose, ExportedSurrogatesReproduceTheReportedErrors) {
  const Head head = head_of("clusters", four_clusters(1024, 4), 1.0, false);
  HeadOptions options;
  options.components = {4};
  const HeadDiagnosis report = diagnose(head, options);
  for (const Surrogate& surrogate : fit_surrogates(head, options)) {
    const Index k = surrogate.size();
    std::vector<double> ratios;
    for (const Index i : default_queries(head)) {
      const Vector a = head.scale * head.Q(i, 1).row(0);
      const Vector s = head.K(0, head.n) * a;
      const Vector w = (s.array() - s.maxCoeff()).exp();
      const Vector T = head.V(0, head.n).transpose() * w / w.sum();
      ratios.push_back((T - surrogate(a)).norm() / T.norm());
    }
    std::sort(ratios.begin(), ratios.end());
    const double median = 0.5 * (ratios[ratios.size() / 2 - 1] + ratios[ratios.size() / 2]);
    const double reported = k == 1 ? report.gaussian.lin : report.mixtures.front().in_sample.lin;
    EXPECT_TRUE(testing::close(median, reported, 1e-8)) << k;
  }
}

// What a run on disk keeps is the whole diagnosis: what is absent, infinite or a list comes back.
TEST(Diagnose, ARowReadsBackAsItWas) {
  HeadOptions options;
  options.components = {2, 16};
  for (const double deviation : {1.0, 300.0}) {
    const HeadDiagnosis want =
        diagnose(head_of("row", four_clusters(100, 3), deviation, false), options);
    EXPECT_EQ(want.linear_from.is_infinite(), deviation == 300.0);
    const Record record = record_of(want);
    const auto got = row_of<HeadDiagnosis>("here", columns_of<HeadDiagnosis>(), record);
    EXPECT_EQ(record_of(got), record);
    EXPECT_EQ(got.mixtures.size(), 2u);
    EXPECT_FALSE(got.mixtures[1].split_lin_c.has_value());
  }
}

TEST(Diagnose, SeveralHeadsAreCellsNamedAfterThem) {
  const std::vector<Head> heads = {head_of("a", four_clusters(100, 3), 1.0, false),
                                   head_of("b", four_clusters(90, 3), 1.0, true)};
  HeadOptions options;
  options.components = {2};
  const Cells<HeadDiagnosis> cells = diagnosis_cells(heads, options);
  EXPECT_EQ(cells.keys, (std::vector<std::string>{"a", "b"}));
  const std::vector<HeadDiagnosis> rows = diagnose(heads, options);
  ASSERT_EQ(rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(record_of(rows[i]), record_of(diagnose(heads[i], options)));
    EXPECT_EQ(record_of(rows[i]), record_of(cells.compute(i).front()));
  }
}

TEST(Diagnose, RefusesOptionsThatMeanNothingAndNamesTheHead) {
  const Head head = head_of("who", random_matrix(Stream(21, 12), 20, 2), 1.0, false);
  std::vector<HeadOptions> wrong(5);
  wrong[0].queries = {128};
  wrong[1].queries = {-1};
  wrong[2].most_queries = 0;
  wrong[3].components = {1};
  wrong[4].tolerance = 0;
  for (const HeadOptions& options : wrong) {
    try {
      diagnose(head, options);
      FAIL();
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find("head who"), std::string::npos) << error.what();
    }
  }
}

TEST(Diagnose, ScoresThatOverflowAreAnErrorThatNamesTheHead) {
  const Matrix keys = 1e200 * random_matrix(Stream(21, 15), 20, 2);
  try {
    diagnose(make_head("loud", keys, keys, random_matrix(Stream(21, 16), 20, 2), 1.0, false));
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("head loud"), std::string::npos) << error.what();
  }
}

struct Published {
  const char* name;
  double tau2, ess, lin_c, control;
};

// Medians measured with NumPy by the people who made the sample (tests/data/README.md).
TEST(Diagnose, SampleHeadsMatchThePublishedFigures) {
  const Published published[] = {{"stories15M.moby.L2.H1", 2.17, 35.0, 0.68, 0.59},
                                 {"stories15M.moby.L5.H4", 3.36, 11.0, 0.68, 0.73},
                                 {"moonshine.austen.L3.H6", 0.73, 537.5, 0.30, 0.10},
                                 {"moonshine.austen.L5.H5", 1.45, 559.4, 1.56, 0.15}};
  const std::vector<Head> heads =
      load_heads(testing::source_dir() + "/tests/data/sample-heads.safetensors");
  ASSERT_EQ(heads.size(), 4u);
  HeadOptions options;
  options.components = {2, 4};
  for (const Published& want : published) {
    for (const Head& head : heads) {
      if (head.name != want.name) continue;
      const HeadDiagnosis got = diagnose(head, options);
      EXPECT_TRUE(testing::close(got.tau2, want.tau2, 0.01)) << want.name;
      EXPECT_TRUE(testing::close(got.ess, want.ess, 0.01)) << want.name;
      EXPECT_NEAR(got.gaussian.lin_c, want.lin_c, 0.02) << want.name;
      // Theirs is the median of one draw, ours a ratio of exact means: near, not equal.
      EXPECT_NEAR(got.control_lin_c, want.control, 0.2 * want.control) << want.name;
      EXPECT_FALSE(got.verdict.empty());
    }
  }
}

}  // namespace
}  // namespace esscher
