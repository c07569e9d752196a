#include "esscher/concentration/study.h"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "esscher/universal/universal.h"
#include "tests/concentration/problems.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::gaussian_problem;
using testing::random_matrix;
using testing::with_norm;

TEST(Study, EnginesAgree) {
  const Problem problem = gaussian_problem(2, 0.4);
  StudyOptions o{{4, 32}, {Metric::output, Metric::grad_u}, Engine::automatic, 400, 4, 3};
  const StudyResult exact = study(problem, o);
  for (Engine engine : {Engine::sampled, Engine::direct}) {
    o.engine = engine;
    const StudyResult got = study(problem, o);
    ASSERT_EQ(got.rows.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got.rows[i].engine, engine);
      EXPECT_EQ(got.rows[i].L, exact.rows[i].L);
      EXPECT_TRUE(
          agrees({got.rows[i].value, got.rows[i].std_error, 400, engine}, exact.rows[i].value))
          << i;
    }
  }
}

// One token is known by hand. With G = V = I and U = s I: T_hat = x ~ N(0, I), T = s z, so
//   bias2 = E|s z|^2 = s^2 d,   variance = d,   ess = 1,   shrink = 0.
TEST(Study, OneTokenIsKnownByHand) {
  const Index d = 2;
  const double s = 0.5, bias2 = s * s * d, variance = d;
  const Problem p = gaussian_problem(d, s);
  Problem equals = p;
  equals.mu = Mixture(Vector{{0.5, 0.5}}, {p.mu, p.mu});
  const StudyRow exact = study(p, {.lengths = {1}, .metrics = {Metric::output}}).rows[0];
  EXPECT_TRUE(close(exact.bias2, bias2, 1e-9));
  EXPECT_TRUE(close(exact.variance, variance, 1e-9));
  EXPECT_TRUE(close(exact.value, bias2 + variance, 1e-9));
  EXPECT_TRUE(close(exact.ess, 1, 1e-9));
  EXPECT_NEAR(exact.shrink(), 0, 1e-9);
  const StudyRow net = study(equals, {.lengths = {1}, .metrics = {Metric::output}}).rows[0];
  EXPECT_TRUE(agrees({net.value, net.std_error, 8}, bias2 + variance));
  EXPECT_TRUE(close(net.variance, variance, 1e-6)) << "the same at every query";
  for (const Engine engine : {Engine::sampled, Engine::direct}) {
    Moments got_bias2, got_variance;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const StudyRow r = study(p, {.lengths = {1},
                                   .metrics = {Metric::output},
                                   .engine = engine,
                                   .queries = 64,
                                   .replicates = 4,
                                   .seed = seed})
                             .rows[0];
      EXPECT_EQ(r.ess, 1);
      got_bias2.add(r.bias2);
      got_variance.add(r.variance);
    }
    EXPECT_TRUE(agrees(got_bias2.estimate(engine), bias2)) << name(engine);
    EXPECT_TRUE(agrees(got_variance.estimate(engine), variance)) << name(engine);
  }
}

// E T_hat = shrink s z for Gaussian tokens, hence bias2 = (1 - shrink(tau))^2 s^2 |z|^2, averaged over
// queries: a quadrature over z in one dimension, of universal functions.
TEST(Study, BiasAndShrinkByQuadrature) {
  const double s = 0.6;
  const std::int64_t L = 12;
  const StudyRow row =
      study(gaussian_problem(1, s), {.lengths = {L}, .metrics = {Metric::output}}).rows[0];
  double bias2 = 0, H = 0;
  constexpr double kStep = 0.01;
  for (double z = -9; z <= 9; z += kStep) {
    const double weight = kStep * std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
    const double h = universal(L, s * std::abs(z)).H;
    bias2 += weight * h * h * s * s * z * z;
    H += weight * h;
  }
  EXPECT_TRUE(close(row.bias2, bias2, 1e-8));
  EXPECT_TRUE(close(row.shrink(), 1 - H, 1e-8));
  EXPECT_TRUE(close(row.ess, 1 / H, 1e-8));
}

TEST(Study, ExactRowsReachTheirLimit) {
  const StudyResult r = study(gaussian_problem(3, 0.3), {.lengths = {1, 10, 100, 1000, 10000000},
                                                         .metrics = {Metric::output}});
  ASSERT_EQ(r.rows.size(), 5u);
  EXPECT_EQ(r.rows[3].std_error, 0);
  EXPECT_TRUE(close(r.regime.lambda, 0.09, 1e-12));
  // (1 - 2 lambda)^{-d/2} [d + lambda d/(1 - 2 lambda)] = E e^{tau^2} (tr G + |c|^2) over L.
  const double shrunk = 1 - 2 * 0.09;
  const double constant = std::pow(shrunk, -1.5) * (3 + 0.09 * 3 / shrunk);
  EXPECT_TRUE(close(r.regime.constants[0], constant, 1e-9));
  EXPECT_TRUE(close(r.rows[4].asymptotic, constant * 1e-7, 1e-9));
  EXPECT_TRUE(close(r.rows[4].value, constant * 1e-7, 1e-5));
}

// Cells are pure functions: their rows do not depend on who computes them, in which order, and a
// study of rows that lack a column says which.
TEST(Study, CellsAreAssembledAnywhere) {
  Problem p = gaussian_problem(2, 0.3);
  for (const Engine engine : {Engine::exact, Engine::direct}) {
    const StudyOptions o{.lengths = {5, 50, 500},
                         .metrics = {Metric::output},
                         .engine = engine,
                         .queries = 40,
                         .replicates = 2,
                         .seed = 9};
    const Study study_of(p, o);
    const Cells<PointRow> cells = study_of.cells();
    ASSERT_EQ(cells.keys.size(), 3u);
    std::vector<std::vector<PointRow>> parts(3);
    for (const std::size_t i : {2u, 0u, 1u}) parts[i] = cells.compute(i);
    std::vector<PointRow> rows;
    for (const auto& part : parts) rows.insert(rows.end(), part.begin(), part.end());
    const StudyResult got = study_of.assemble(rows), want = study(p, o);
    for (std::size_t i = 0; i < got.rows.size(); ++i) {
      EXPECT_EQ(record_of(got.rows[i]), record_of(want.rows[i]));
    }
    for (PointRow& row : rows) row.ess.reset(), row.weights2.reset();
    EXPECT_THROW((void)study_of.assemble(rows), FileError);
  }
}

// Infinity and NaN of a row are numbers like others until they are written as JSON.
TEST(Study, NotFiniteNumbersSurviveTheAssembly) {
  const StudyResult slow = study(gaussian_problem(1, 0.9), {.lengths = {10}});
  EXPECT_TRUE(std::isinf(slow.rows[0].asymptotic));
  EXPECT_TRUE(std::isinf(slow.regime.constants[0]));
  Problem points = gaussian_problem(1, 1.0);
  points.mu = Laplace(1, 1.0);
  points.nu.reset();
  points.points = Matrix::Constant(1, 1, 0.6);  // Lambda(2a) is infinite, Lambda(a) is not
  const StudyResult r = study(points, {.lengths = {4}, .metrics = {Metric::output}});
  EXPECT_TRUE(std::isinf(r.rows[0].asymptotic));
  EXPECT_TRUE(std::isnan(r.rows[0].frozen));
  EXPECT_TRUE(std::isnan(r.regime.lambda));
  EXPECT_EQ(r.regime.regime, Regime::slower_somewhere);
}

// An independent audit published these: d = 4, |U| = 0.22, |V| = 0.75, L = 16..1024, three
// covariances; the output error falls by a factor between 40 and 80 and the slopes lie in [-1.11,
// -0.83].
TEST(Study, PublishedAudit) {
  const Index d = 4;
  Matrix kcm(d, d);
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < d; ++j) kcm(i, j) = std::pow(0.5, std::abs(static_cast<double>(i - j)));
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(random_matrix(Stream(31, 5), d, d));
  const Matrix Q = qr.householderQ() * Eigen::MatrixXd::Identity(d, d);
  const Matrix rotated = Q * Vector{{8.0, 4.0, 2.0, 1.0}}.asDiagonal() * Q.transpose() / 3.75;
  const Attention attention =
      Attention::from_uv(with_norm(random_matrix(Stream(31, 6), d, d), 0.22),
                         with_norm(random_matrix(Stream(31, 7), d, d), 0.75));
  for (const Matrix& G :
       {Matrix(Matrix::Identity(d, d)), kcm, Matrix(0.5 * (rotated + rotated.transpose()))}) {
    const Problem p{Gaussian(G), attention, AnyMeasure(Gaussian(G))};
    const StudyResult r = study(p, {{16, 32, 64, 128, 256, 512, 1024}});
    const double factor = r.rows.front().value / r.rows[6].value;
    EXPECT_GT(factor, 40);
    EXPECT_LT(factor, 80);
    for (const MetricFit& fit : r.fits) {
      EXPECT_GT(fit.power.slope, -1.11);
      EXPECT_LT(fit.power.slope, -0.83);
    }
  }
}

TEST(Study, OnePromptPerQuery) {
  Problem p = gaussian_problem(1, 0.3);
  const StudyOptions o{{4, 8}, {Metric::output}, Engine::direct, 20, 1, 1};
  const StudyResult r = study(p, o);
  EXPECT_TRUE(std::isnan(r.rows[0].bias2));
  EXPECT_NE(r.how.find("replicates >= 2"), std::string::npos) << r.how;
  p.nu.reset();
  p.points = Matrix::Ones(3, 1);
  EXPECT_THROW(study(p, o), ArgumentError) << "no error can be told";
}

TEST(Study, HeavyTailsAreFlagged) {
  Problem heavy = gaussian_problem(1, 1.3);  // lambda = 1.69: a frozen softmax at rare queries
  StudyOptions o{{10, 100, 10000}, {Metric::output}, Engine::direct, 300, 1, 5};
  const StudyResult r = study(heavy, o);
  EXPECT_TRUE(r.rows.back().heavy) << "an interval of this study would be confident and wrong";
  EXPECT_FALSE(r.rows.back().flag.empty());
  const StudyResult light = study(gaussian_problem(1, 0.2), o);
  EXPECT_FALSE(light.rows.back().heavy) << light.rows.back().flag;
}

TEST(Study, TooSharpScoresFallBackToSampling) {
  const Problem sharp = gaussian_problem(2, 600);
  Problem mixed = gaussian_problem(2, 40);
  mixed.mu =
      Mixture(Vector{{0.5, 0.5}}, {mixed.mu, Gaussian(Vector::Ones(2), Matrix::Identity(2, 2))});
  for (const Problem& p : {sharp, mixed}) {
    const StudyResult r = study(p, {{4, 16}, {Metric::output}, Engine::automatic, 50, 2, 1});
    EXPECT_NE(r.rows[0].engine, Engine::exact);
    EXPECT_GT(r.rows[0].std_error, 0);
    EXPECT_NE(r.how.find("tau"), std::string::npos);
    EXPECT_THROW(study(p, {{4, 16}, {Metric::output}, Engine::exact}), CapabilityError);
  }
}

TEST(Study, RefusesBadInput) {
  const Problem p = gaussian_problem(2, 0.3);
  EXPECT_THROW(study(p, {{}}), ArgumentError);
  EXPECT_THROW(study(p, {{10, 5}}), ArgumentError);
  EXPECT_THROW(study(p, {{0}}), ArgumentError);
  EXPECT_THROW(study({Rademacher(2), p.attention, p.nu}, {{4}, {Metric::grad_u}, Engine::exact}),
               CapabilityError);
  EXPECT_THROW(study({Gaussian(Matrix::Identity(3, 3)), p.attention, p.nu}, {{4}}), DimensionError);
  EXPECT_THROW(study({p.mu, p.attention}, {{4}}), ArgumentError);
  EXPECT_THROW(study(p, {{4}, {Metric::grad_k}}), CapabilityError);
}

TEST(Study, SigmaSweepMeasuresTheExponent) {
  const auto points =
      sigma_sweep(gaussian_problem(1, 1.0),
                  {{10000000000, 100000000000, 1000000000000}, {Metric::output}}, {0.5, 0.9});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_NEAR(points[0].exponent, 1.0, 1e-3);
  EXPECT_NEAR(points[1].exponent, 0.698, 2e-3);
  EXPECT_NEAR(points[1].gamma, 0.718, 1e-3);
  EXPECT_TRUE(close(points[1].c2, 0.81 * points[1].exponent, 1e-12));
}

// N(0,4) is N(0,1) times 2: the same sigma, the same c_2.
TEST(Study, SigmaIsTheConstantOfTheSweptLaw) {
  const StudyOptions options{.lengths = {100, 1000, 10000}, .metrics = {Metric::output}};
  Problem problem = gaussian_problem(1, 1.0);
  problem.mu = Gaussian(Matrix::Constant(1, 1, 1.0));
  const auto scaled = sigma_sweep(problem, options, {2.0});
  problem.mu = Gaussian(Matrix::Constant(1, 1, 4.0));
  const auto wide = sigma_sweep(problem, options, {1.0});
  EXPECT_EQ(wide.at(0).scale, 1);
  EXPECT_TRUE(close(wide.at(0).sigma, 2, 1e-12));
  EXPECT_TRUE(close(scaled.at(0).sigma, 2, 1e-12));
  EXPECT_TRUE(close(wide.at(0).c2, scaled.at(0).c2, 1e-10));
  EXPECT_TRUE(close(wide.at(0).c2, 4 * wide.at(0).exponent, 1e-12));
}

// Automatic is exact for whatever metric can be: each metric has the engine, and the numbers, that it
// has alone.
TEST(Study, EveryMetricHasItsOwnEngine) {
  const Matrix I = Matrix::Identity(2, 2);
  for (const bool given : {false, true}) {
    Problem problem{Sphere(2, 1.0), Attention::from_uv(0.8 * I, I)};
    if (given) {
      problem.points = Matrix{{1.0, 0.5}, {-0.3, 0.8}};
    } else {
      problem.nu = Gaussian(I);
    }
    StudyOptions options{.lengths = {5, 20, 80}, .queries = 16, .replicates = 4, .seed = 3};
    options.metrics = {Metric::grad_u, Metric::output, Metric::grad_v};
    const Study mixed(problem, options);
    EXPECT_EQ(mixed.parts().size(), 2u);
    EXPECT_EQ(mixed.choice().engine, Engine::direct);
    const Cells<PointRow> cells = mixed.cells();
    EXPECT_EQ(cells.keys.front(), "grad_u queries=0");
    EXPECT_EQ(cells.keys.back().find("output+grad_v queries="), 0u);
    const StudyResult all = mixed.assemble(compute_here(cells));
    ASSERT_EQ(all.rows.size(), 9u);
    ASSERT_EQ(all.limits.size(), 3u);
    ASSERT_EQ(all.regime.constants.size(), 3u);
    for (std::size_t k = 0; k < 3; ++k) {
      StudyOptions one = options;
      one.metrics = {options.metrics[k]};
      const StudyResult alone = study(problem, one);
      EXPECT_EQ(all.limits[k].mean_square, alone.limits[0].mean_square);
      EXPECT_EQ(all.regime.constants[k], alone.regime.constants[0]);
      for (std::size_t l = 0; l < 3; ++l) {
        const StudyRow &row = all.rows[3 * k + l], &want = alone.rows[l];
        EXPECT_EQ(row.metric, options.metrics[k]);
        EXPECT_EQ(row.engine, want.engine);
        EXPECT_EQ(row.engine == Engine::direct, k == 0);
        EXPECT_EQ(row.value, want.value);
        EXPECT_EQ(row.std_error, want.std_error);
      }
    }
    options.engine = Engine::exact;
    EXPECT_THROW(Study(problem, options), CapabilityError);
  }
  // Gaussian tokens are exact in every metric, and their cells are named as before.
  const Study gaussian({Gaussian(I), Attention::from_uv(0.3 * I, I), Gaussian(I)},
                       {.lengths = {5, 20}});
  EXPECT_EQ(gaussian.parts().size(), 1u);
  EXPECT_EQ(gaussian.cells().keys.front(), "L=5");
}

}  // namespace
}  // namespace esscher
