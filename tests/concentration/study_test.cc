#include "esscher/concentration/study.h"

#include <Eigen/QR>
#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
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

TEST(Study, SampledRowsSayEverything) {
  const Problem p = gaussian_problem(2, 0.5);
  const Problem mixed{
      Mixture(Vector{{0.5, 0.5}}, {p.mu, Gaussian(Vector::Ones(2), 0.2 * Matrix::Identity(2, 2))}),
      p.attention, p.nu};
  const std::vector<Metric> all = {Metric::output, Metric::grad_v, Metric::grad_u};
  for (const auto& [problem, engine] : {std::pair{p, Engine::sampled},
                                        {p, Engine::direct},
                                        {mixed, Engine::sampled},
                                        {mixed, Engine::exact}}) {
    for (const StudyRow& r : study(problem, {{3, 30}, all, engine, 60, 4, 2}).rows) {
      EXPECT_GE(r.bias2, 0) << name(engine) << name(r.metric);
      EXPECT_GE(r.variance, 0) << name(engine) << name(r.metric);
      EXPECT_TRUE(close(r.bias2 + r.variance, r.value, 1e-12));
      EXPECT_GT(r.ess, 1);
      EXPECT_LT(r.ess, static_cast<double>(r.L));
    }
  }
}

TEST(Study, ExactRowsSayEverything) {
  const StudyResult r =
      study(gaussian_problem(3, 0.3), {{1, 10, 100, 1000, 10000}, {Metric::output}});
  ASSERT_EQ(r.rows.size(), 5u);
  const StudyRow& row = r.rows[3];
  EXPECT_EQ(row.std_error, 0);
  EXPECT_TRUE(close(row.bias2 + row.variance, row.value, 1e-12));
  EXPECT_TRUE(close(row.value, row.asymptotic, 0.02));
  EXPECT_GT(row.ess, 500);
  EXPECT_LT(row.ess, 1000);
  EXPECT_TRUE(close(r.regime.lambda, 0.09, 1e-12));
  EXPECT_NEAR(r.fits.at(0).local.back().exponent, 1, 1e-2);
  const Json j = to_json(r);
  EXPECT_EQ(j["rows"].size(), 5u);
  EXPECT_TRUE(j["regime"]["constant"].is_number());
  EXPECT_TRUE(close(j["rows"][3]["shrink"].get<double>(), 1 - 1 / row.ess, 1e-14));
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

TEST(Study, SameSeedSameNumbers) {
  StudyOptions o{{5, 50}, {Metric::output}, Engine::direct, 40, 2, 9};
  const Problem p = gaussian_problem(2, 0.3);
  EXPECT_EQ(to_json(study(p, o)).dump(), to_json(study(p, o)).dump());
}

TEST(Study, RefusesBadInput) {
  const Problem p = gaussian_problem(2, 0.3);
  EXPECT_THROW(study(p, {{}}), ArgumentError);
  EXPECT_THROW(study(p, {{10, 5}}), ArgumentError);
  EXPECT_THROW(study(p, {{0}}), ArgumentError);
  EXPECT_THROW(study({Rademacher(2), p.attention, p.nu}, {{4}, {Metric::output}, Engine::exact}),
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

}  // namespace
}  // namespace esscher
