#include "esscher/concentration/study.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <cstdlib>

#include "esscher/base/error.h"
#include "esscher/concentration/bound.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/query_error.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/sphere.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;

Matrix random_matrix(Index rows, Index cols, std::uint64_t id) {
  Matrix m(rows, cols);
  Stream(31, id).fill_normal(0, {m.data(), static_cast<std::size_t>(m.size())});
  return m;
}

Matrix with_norm(const Matrix& m, double norm) {
  return m * (norm / Eigen::JacobiSVD<Eigen::MatrixXd>(m).singularValues()[0]);
}

Problem gaussian_problem(Index d, double scale) {
  return {Gaussian(Matrix::Identity(d, d)),
          Attention::from_uv(scale * Matrix::Identity(d, d), Matrix::Identity(d, d)),
          AnyMeasure(Gaussian(Matrix::Identity(d, d)))};
}

// L * E|X_hat - X|^2 at a long prompt against the constant, for every measure with a closed form.
TEST(Constant, IsTheLimitOfSimulatedErrors) {
  const Attention attention =
      Attention::from_uv(0.6 * with_norm(random_matrix(3, 3, 1), 1), random_matrix(2, 3, 2));
  const Vector z = Vector{{0.8, -0.5, 0.4}};
  const std::vector<AnyMeasure> measures = {
      Gaussian(Vector{{0.2, 0.0, -0.3}}, 0.5 * Matrix::Identity(3, 3)),
      Rademacher(3),
      Uniform(3),
      Sphere(3, 1.5),
      Mixture(Vector{{0.3, 0.7}},
              {Gaussian(0.3 * Matrix::Identity(3, 3)),
               Affine(Vector::Ones(3), 0.5 * Matrix::Identity(3, 3), Uniform(3))}),
      Empirical(random_matrix(7, 3, 3))};
  const std::int64_t L = 3000;
  const std::vector<Metric> metrics = {Metric::output, Metric::grad_v, Metric::grad_u};
  for (const AnyMeasure& mu : measures) {
    const auto errors =
        query_errors(Engine::direct, metrics, {L}, mu, attention, z, 250, Stream(5));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      const double scale = static_cast<double>(L);
      // The next term of the expansion is of relative order 1/L: allowed for by 30/L.
      const double want = asymptotic_constant(metrics[k], mu, attention, z);
      const double got = scale * errors[k][0].value, se = scale * errors[k][0].std_error;
      EXPECT_LE(std::abs(got - want), testing::kSigmas * se + 30 / scale * want)
          << mu.name() << " " << k;
      EXPECT_LT(se, 0.15 * want) << mu.name();
    }
  }
}

// The exact engine has no noise: the constant is reached to the accuracy of its differences.
TEST(Constant, IsTheLimitOfExactMixtureErrors) {
  const Attention attention = Attention::from_kqv(random_matrix(2, 3, 21), random_matrix(2, 3, 22),
                                                  random_matrix(2, 3, 23), 0.3);
  const Vector z = Vector{{0.8, -0.5, 0.4}};
  const AnyMeasure mu = Mixture(Vector{{0.3, 0.7}},
                                {Gaussian(Vector{{0.2, 1.0, -0.3}}, 0.5 * Matrix::Identity(3, 3)),
                                 Gaussian(Vector{{-1.0, 0.4, 0.3}}, 0.2 * Matrix::Identity(3, 3))});
  const std::vector<Metric> all = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                                   Metric::grad_q};
  const std::int64_t L = 1000000000000;
  const auto errors = query_errors(Engine::exact, all, {L}, mu, attention, z, 1, Stream(0));
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_TRUE(close(static_cast<double>(L) * errors[k][0].value,
                      asymptotic_constant(all[k], mu, attention, z), 1e-6))
        << name(all[k]);
  }
}

TEST(Constant, InfiniteOutsideTheDomain) {
  const Attention attention = Attention::from_uv(Matrix::Ones(1, 1), Matrix::Ones(1, 1));
  const AnyMeasure laplace = Laplace(1, 1.0);
  EXPECT_TRUE(
      std::isfinite(asymptotic_constant(Metric::output, laplace, attention, Vector{{0.4}})));
  EXPECT_TRUE(std::isinf(asymptotic_constant(Metric::output, laplace, attention, Vector{{0.6}})));
}

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

// Bias, weights and value of a sampling engine at one query are unbiased for any number of prompts,
// so the average of many estimates from three prompts each must be the exact value.
TEST(QueryErrors, BiasOfFewPromptsIsUnbiased) {
  const Matrix K = random_matrix(2, 3, 11), Q = random_matrix(2, 3, 12);
  const Attention attention = Attention::from_kqv(K, Q, random_matrix(2, 3, 13), 0.3);
  const Vector z = Vector{{0.9, -0.7, 0.5}};
  const AnyMeasure one = Gaussian(Vector{{0.1, 0.4, -0.2}}, 0.6 * Matrix::Identity(3, 3));
  const AnyMeasure two = Mixture(
      Vector{{0.4, 0.6}}, {one, Gaussian(Vector{{1.0, 0.0, 0.3}}, 0.2 * Matrix::Identity(3, 3))});
  const std::vector<Metric> all = {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k,
                                   Metric::grad_q};
  const std::vector<std::int64_t> lengths = {2, 9};
  for (const AnyMeasure& mu : {one, two}) {
    const auto exact = query_errors(Engine::exact, all, lengths, mu, attention, z, 1, Stream(0));
    for (Engine engine : {Engine::sampled, Engine::direct}) {
      std::vector<std::array<Moments, 3>> got(2 * all.size());
      for (std::uint64_t b = 0; b < 2500; ++b) {
        const auto e = query_errors(engine, all, lengths, mu, attention, z, 3, Stream(8).split(b));
        for (std::size_t i = 0; i < got.size(); ++i) {
          const QueryError& x = e[i / 2][i % 2];
          got[i][0].add(x.value);
          got[i][1].add(x.bias2);
          got[i][2].add(x.weights2);
        }
      }
      for (std::size_t i = 0; i < got.size(); ++i) {
        const QueryError& want = exact[i / 2][i % 2];
        EXPECT_TRUE(agrees(got[i][0].estimate(engine), want.value)) << mu.name() << i;
        EXPECT_TRUE(agrees(got[i][1].estimate(engine), want.bias2)) << mu.name() << i;
        EXPECT_TRUE(agrees(got[i][2].estimate(engine), want.weights2)) << mu.name() << i;
      }
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
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(random_matrix(d, d, 5));
  const Matrix Q = qr.householderQ() * Eigen::MatrixXd::Identity(d, d);
  const Matrix rotated = Q * Vector{{8.0, 4.0, 2.0, 1.0}}.asDiagonal() * Q.transpose() / 3.75;
  const Attention attention = Attention::from_uv(with_norm(random_matrix(d, d, 6), 0.22),
                                                 with_norm(random_matrix(d, d, 7), 0.75));
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

// Two levels of randomness, small studies: the 95 % interval must cover the exact value. The night
// holds the measured coverage of 1000 studies to 93..97 %. The 200 of every check hold the coverage
// itself to that range, at the suite's budget of false alarms: the limits are where a binomial with
// p = 0.93 (0.97) falls below (above) with a chance of at most 1e-5. Above, 200 studies can show
// nothing at that budget: 0.97^200 = 0.002.
TEST(Study, IntervalsAreCalibrated) {
  const bool nightly = std::getenv("ESSCHER_NIGHTLY") != nullptr;
  const int repeats = nightly ? 1000 : 200;
  const Problem problem = gaussian_problem(2, 0.35);
  StudyOptions o{{8}, {Metric::output}, Engine::automatic, 80, 2, 0};
  const double truth = study(problem, o).rows[0].value;
  o.engine = Engine::direct;
  int covered = 0;
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(1000 + i);
    covered += study(problem, o).rows[0].ci.contains(truth) ? 1 : 0;
  }
  RecordProperty("covered", covered);
  const auto limit = [&](double p, double level) {
    return quantile(boost::math::binomial(repeats, p), level);
  };
  const double lowest = nightly ? 0.93 * repeats : limit(0.93, 1e-5);
  const double highest = nightly ? 0.97 * repeats : limit(0.97, 1 - 1e-5);
  EXPECT_GE(covered, lowest);
  EXPECT_LE(covered, highest);
}

// Limits within which 200 studies must cover at a rate between 90 and 99 %, up to chances of 1e-5.
void expect_calibrated(int covered, int repeats) {
  const auto limit = [&](double p, double level) {
    return quantile(boost::math::binomial(repeats, p), level);
  };
  EXPECT_GE(covered, limit(0.90, 1e-5));
  EXPECT_LE(covered, limit(0.99, 1 - 1e-5));
}

// Prefixes of one prompt move together, so that many lengths close to each other say little more
// than few: an interval that counts them as independent covers the true slope too rarely.
TEST(Study, SlopeIntervalsOfGivenQueriesAreCalibrated) {
  Problem problem = gaussian_problem(2, 0.4);
  problem.nu.reset();
  problem.points = Matrix{{0.5, 0.2}, {-0.3, 0.9}, {1.1, -0.4}};
  StudyOptions o{{}, {Metric::output}, Engine::exact, 2, 12, 0};
  for (std::int64_t L = 20; L <= 700; L += L / 12) o.lengths.push_back(L);
  const double truth = study(problem, o).fits[0].power.slope;
  o.engine = Engine::sampled;
  const int repeats = 200;
  int covered = 0;
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(500 + i);
    const StudyResult r = study(problem, o);
    covered += r.fits[0].power.ci.contains(truth) ? 1 : 0;
    ASSERT_GT(r.rows[0].std_error, 0);
  }
  RecordProperty("covered", covered);
  expect_calibrated(covered, repeats);
}

// Two equal components are one Gaussian, whose average over Gaussian queries is known: the error of
// a scrambled net must be small and honest.
TEST(Study, NetsOfQueriesAreAccurateAndHonest) {
  const Problem one = gaussian_problem(2, 0.5);
  Problem two = one;
  two.mu = Mixture(Vector{{0.5, 0.5}}, {one.mu, one.mu});
  StudyOptions o{{20, 10000}, {Metric::output, Metric::grad_u}, Engine::automatic, 32, 1, 0};
  const StudyResult truth = study(one, o);
  const int repeats = 60;
  std::array<int, 4> covered{};
  for (int i = 0; i < repeats; ++i) {
    o.seed = static_cast<std::uint64_t>(i);
    const StudyResult r = study(two, o);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(r.rows[k].engine, Engine::exact);
      covered[k] += r.rows[k].ci.contains(truth.rows[k].value) ? 1 : 0;
    }
  }
  for (int c : covered) expect_calibrated(c, repeats);
  // Against as many draws from the same law, which the study cannot see to be Gaussian.
  o.queries = 512;
  const StudyResult net = study(two, o);
  EXPECT_NE(net.how.find("Sobol"), std::string::npos);
  // One token is seen by every query: the weights of the nodes leave no noise there.
  EXPECT_TRUE(
      close(study(two, {{1}, {Metric::output}, Engine::automatic, 32, 1, 0}).rows[0].ess, 1, 1e-9));
  Problem drawn = two;
  drawn.nu = Mixture(Vector{{0.5, 0.5}},
                     {one.mu, Affine(Vector{{1e-9, 0}}, Matrix::Identity(2, 2), one.mu)});
  const StudyResult plain = study(drawn, o);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_TRUE(agrees({net.rows[k].value, net.rows[k].std_error, 512, Engine::exact},
                       truth.rows[k].value));
    EXPECT_LT(net.rows[k].std_error, 0.4 * plain.rows[k].std_error);
  }
}

// Over many small studies the covariance that one reports is the covariance that there is.
TEST(QueryErrors, LengthsCoVaryAsReported) {
  const Problem p = gaussian_problem(2, 0.5);
  const Vector z = Vector{{0.7, -0.6}};
  const std::vector<std::int64_t> lengths = {5, 8, 40};
  for (Engine engine : {Engine::sampled, Engine::direct}) {
    CoMoments values;
    std::array<Moments, 3> reported;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto e = query_errors(engine, {Metric::output}, lengths, p.mu, p.attention, z, 5,
                                  Stream(4).split(i))[0];
      values.add(Vector{{e[0].value, e[1].value, e[2].value}});
      ASSERT_EQ(e[2].cov.size(), 3u);
      EXPECT_TRUE(close(e[2].cov[2], e[2].std_error * e[2].std_error, 1e-12));
      reported[0].add(e[1].cov[0]);
      reported[1].add(e[2].cov[0]);
      reported[2].add(e[2].cov[1]);
    }
    const Matrix C = 3000 * values.covariance_of_mean();
    EXPECT_GT(C(0, 1), 0.4 * C(1, 1));
    EXPECT_TRUE(close(reported[0].mean(), C(0, 1), 0.2));
    EXPECT_TRUE(close(reported[2].mean(), C(1, 2), 0.3));
    EXPECT_TRUE(close(reported[1].mean(), C(0, 2), 0.3));
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

TEST(Length, CertifiedByItsNeighbour) {
  const Problem p = gaussian_problem(3, 0.5);
  for (Metric metric : {Metric::output, Metric::grad_u}) {
    LengthOptions o{.eps = 1e-3, .metric = metric};
    const LengthAnswer a = shortest_length(p, o);
    ASSERT_TRUE(a.length.has_value());
    EXPECT_EQ(a.status, "certified");
    const GaussianAverage D({metric}, *gaussian_law(p.mu), p.attention, *gaussian_law(*p.nu));
    EXPECT_LE(D.at(*a.length)[0].value, 1e-3);
    EXPECT_GT(D.at(*a.length - 1)[0].value, 1e-3);
    EXPECT_EQ(a.value, D.at(*a.length)[0].value);
    EXPECT_EQ(a.value_before, D.at(*a.length - 1)[0].value);
    EXPECT_TRUE(close(a.clt, static_cast<double>(*a.length), 0.3));
  }
}

TEST(Length, RelativeAndQuantile) {
  const Problem p = gaussian_problem(2, 0.4);
  const LengthAnswer relative = shortest_length(p, {.eps = 0.01, .relative = true});
  EXPECT_TRUE(close(relative.eps, 0.01 * 2 * 0.16, 1e-10));
  const LengthAnswer q = shortest_length(p, {.eps = 1e-2, .quantile = 0.9, .queries = 200});
  const LengthAnswer mean = shortest_length(p, {.eps = 1e-2});
  ASSERT_TRUE(q.length && mean.length);
  EXPECT_LE(q.value, 1e-2);
  EXPECT_GT(q.value_before, 1e-2);
  EXPECT_GT(*q.length, *mean.length);
}

TEST(Length, NeverIsExplained) {
  const LengthAnswer tiny = shortest_length(gaussian_problem(1, 0.9), {.eps = 1e-30});
  EXPECT_FALSE(tiny.length.has_value());
  EXPECT_EQ(tiny.status, "never");
  EXPECT_NE(tiny.explanation.find("1e15"), std::string::npos);
  Problem laplace = gaussian_problem(1, 1.0);
  laplace.mu = Laplace(1, 1.0);
  const LengthAnswer none = shortest_length(laplace, {.eps = 0.1});
  EXPECT_EQ(none.status, "never");
  EXPECT_NE(none.explanation.find("infinite"), std::string::npos);
}

// Two equal components are one Gaussian, whose answer is certain.
TEST(Length, QueriesOfALawLeaveABracket) {
  const Problem one = gaussian_problem(2, 0.4);
  Problem two = one;
  two.mu = Mixture(Vector{{0.5, 0.5}}, {one.mu, one.mu});
  const LengthAnswer want = shortest_length(one, {.eps = 1e-2});
  const LengthAnswer got = shortest_length(two, {.eps = 1e-2, .queries = 128, .seed = 2});
  ASSERT_TRUE(got.length && want.length);
  EXPECT_EQ(want.status, "certified");
  EXPECT_EQ(got.status, "estimated");
  EXPECT_EQ(got.engine, Engine::exact);
  EXPECT_LE(got.value, 1e-2);
  EXPECT_GT(got.value_before, 1e-2);
  EXPECT_LE(got.bracket_lo, *want.length);
  EXPECT_GE(got.bracket_hi, *want.length);
  EXPECT_LT(got.bracket_lo, *got.length);
  EXPECT_GT(got.bracket_hi, *got.length);
  EXPECT_TRUE(close(static_cast<double>(got.bracket_hi), static_cast<double>(*want.length), 0.05));
  EXPECT_EQ(got.error_probability, 0.05);
  two.nu.reset();
  two.points = Matrix{{0.5, 1.0}, {-1.0, 0.3}};
  EXPECT_EQ(shortest_length(two, {.eps = 1e-2}).status, "certified") << "given queries";
}

// Laplace tokens have no limit at |z| >= 1, a third of these queries: their average has no answer,
// nor has a high quantile, but a low one has.
TEST(Length, QuantileBelowTheQueriesWithoutALimit) {
  Problem p = gaussian_problem(1, 1.0);
  p.mu = Laplace(1, 1.0);
  LengthOptions o{.eps = 0.5, .quantile = 0.9, .queries = 200};
  EXPECT_EQ(shortest_length(p, o).status, "never");
  o.quantile = 0.3;
  const LengthAnswer got = shortest_length(p, o);
  ASSERT_TRUE(got.length.has_value()) << got.explanation;
  EXPECT_EQ(got.status, "estimated");
  EXPECT_LE(got.value, 0.5);
  EXPECT_NE(got.explanation.find("no limit"), std::string::npos) << got.explanation;
  EXPECT_TRUE(std::isfinite(got.clt));
}

TEST(Length, StochasticAgreesWithCertified) {
  const Problem p = gaussian_problem(2, 0.3);
  const LengthAnswer exact = shortest_length(p, {.eps = 0.05});
  const LengthAnswer got =
      shortest_length(p, {.eps = 0.05, .engine = Engine::direct, .queries = 400, .replicates = 2});
  ASSERT_TRUE(got.length && exact.length);
  EXPECT_EQ(got.status, "estimated");
  EXPECT_TRUE(close(static_cast<double>(*got.length), static_cast<double>(*exact.length), 0.15));
  EXPECT_GT(got.error_probability, 0);
  EXPECT_LE(got.error_probability, 0.05);
  EXPECT_LE(got.bracket_lo, *exact.length);
  EXPECT_GE(got.bracket_hi, *exact.length);
  EXPECT_LT(got.bracket_hi, 3 * got.bracket_lo);

  // A quantile over queries of errors averaged over many prompts, against their exact errors.
  LengthOptions o{.eps = 0.05, .quantile = 0.8, .queries = 300, .replicates = 40};
  const LengthAnswer certain = shortest_length(p, o);
  o.engine = Engine::sampled;
  const LengthAnswer quantile = shortest_length(p, o);
  ASSERT_TRUE(quantile.length && certain.length);
  EXPECT_LE(quantile.error_probability, 0.05);
  EXPECT_LE(quantile.bracket_lo, *certain.length);
  EXPECT_GE(quantile.bracket_hi, *certain.length);
  EXPECT_TRUE(
      close(static_cast<double>(*quantile.length), static_cast<double>(*certain.length), 0.2));
}

TEST(Bound, HypothesesAndFit) {
  const Problem p = gaussian_problem(1, 0.5);
  const StudyResult r = study(p, {{1, 10, 100, 1000, 10000, 100000, 1000000}});
  const BoundReport b = check_bound(Proposition::prop31, p, r, 1);
  ASSERT_EQ(b.fits.size(), 1u);
  EXPECT_TRUE(b.fits[0].holds) << b.verdict;
  EXPECT_GT(b.fits[0].c2, 0.5);
  const auto failing = [](const BoundReport& report) {
    std::string names;
    for (const Hypothesis& h : report.hypotheses) names += h.holds ? "" : h.name + ";";
    return names;
  };
  EXPECT_EQ(failing(b), "L >= 2;");
  EXPECT_EQ(check_bound(Proposition::prop34, p, r, 1).fits.size(), 2u);
  Problem shifted = p;
  shifted.mu = Gaussian(Vector{{0.3}}, Matrix::Constant(1, 1, 0.25));
  EXPECT_EQ(failing(check_bound(Proposition::prop31, shifted, r, 1)),
            "mu is centred;sigma >= 1;L >= 2;");
  const std::int64_t L = bound_length(b.fits[0], b.sigma, 1e-4);
  EXPECT_LE(bound_at(b.fits[0], b.sigma, L), 1e-4);
  EXPECT_GT(bound_at(b.fits[0], b.sigma, L - 1), 1e-4);
}

}  // namespace
}  // namespace esscher
