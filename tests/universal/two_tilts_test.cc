#include "esscher/universal/two_tilts.h"

#include <cmath>
#include <utility>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/universal/score_mixture.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;

Matrix cov_of(double first, double second, double correlation) {
  Matrix out(2, 2);
  out << first * first, correlation * first * second, correlation * first * second, second * second;
  return out;
}

// Values that are the scores themselves, f = s and g = s'.
TwoTilts own_scores(const Vector& weights, const Matrix& mu, const Matrix& cov) {
  return {weights, mu, cov, mu.col(0), mu.col(1), cov.row(0), cov.row(1), cov(0, 1)};
}

TwoTilts ones(const Vector& weights, const Matrix& mu, const Matrix& cov) {
  const Matrix one = Matrix::Ones(weights.size(), 1), none = Matrix::Zero(1, 2);
  return {weights, mu, cov, one, one, none, none, 0};
}

TwoTilts gaussian_scores(double first, double second, double correlation) {
  return own_scores(Vector::Ones(1), Matrix::Zero(1, 2), cov_of(first, second, correlation));
}

struct Pair {
  Vector weights{{0.3, 0.7}};
  Matrix mu{{0.4, -1.0}, {-0.2, 0.9}};
  Matrix cov = cov_of(0.8, 1.1, -0.4);
};

TEST(TwoTilts, TheValueOfTheTheory) {
  EXPECT_NEAR(two_tilts(gaussian_scores(1, 1.5, 0.5), 8), 1.3094, 5e-5);
}

TEST(TwoTilts, WeightsAddUpToOne) {
  for (const std::int64_t L : {1, 2, 8, 100, 10000}) {
    for (const double correlation : {-1.0, -0.3, 0.0, 0.5, 0.999, 1.0}) {
      for (const double second : {0.0, 0.05, 0.7, 1.0, 3.0}) {
        const TwoTilts one =
            ones(Vector::Ones(1), Matrix::Zero(1, 2), cov_of(1.0, second, correlation));
        EXPECT_NEAR(two_tilts(one, L), 1, 1e-8) << L << " " << correlation << " " << second;
      }
    }
    const Pair two;
    EXPECT_NEAR(two_tilts(ones(two.weights, two.mu, two.cov), L), 1, 1e-8) << L;
  }
}

// Two tokens with the differences x = s_1 - s_2 and y of their scores: omega_1 - omega_2 is
// tanh(x/2), so that sum omega f = (f_1 + f_2)/2 + (f_1 - f_2)/2 tanh(x/2), and sums of the tokens
// are independent of differences. Values f = alpha'(s, s') and g = beta'(s, s') read both scores.
TEST(TwoTilts, TwoTokensByBruteForce) {
  const double first = 1.2, second = 0.8, correlation = -0.6;
  const Matrix cov = cov_of(first, second, correlation), none = Matrix::Zero(1, 2);
  const double step = 0.1, rest = std::sqrt(1 - correlation * correlation);
  const std::vector<Vector> reads{Vector{{1, 0}}, Vector{{0, 1}}, Vector{{0.5, -2}}};
  for (const Vector& alpha : reads) {
    for (const Vector& beta : reads) {
      double sum = 0, weights = 0;
      for (double g = -8; g <= 8; g += step) {
        for (double h = -8; h <= 8; h += step) {
          const double w = std::exp(-(g * g + h * h) / 2);
          const Vector x =
              std::sqrt(2.0) * Vector{{first * g, second * (correlation * g + rest * h)}};
          sum += w * alpha.dot(x) * beta.dot(x) / 4 * std::tanh(x[0] / 2) * std::tanh(x[1] / 2);
          weights += w;
        }
      }
      const double fg = alpha.dot(cov * beta);
      const TwoTilts tokens{Vector::Ones(1),
                            none,
                            cov,
                            Matrix::Zero(1, 1),
                            Matrix::Zero(1, 1),
                            (cov * alpha).transpose(),
                            (cov * beta).transpose(),
                            fg};
      EXPECT_TRUE(close(two_tilts(tokens, 2), fg / 2 + sum / weights, 1e-9))
          << alpha.transpose() << ", " << beta.transpose();
    }
  }
}

TEST(TwoTilts, OneTokenIsItsOwnMean) {
  const Pair two;
  const double want =
      (two.weights.array() * two.mu.col(0).array() * two.mu.col(1).array()).sum() + two.cov(0, 1);
  EXPECT_TRUE(close(two_tilts(own_scores(two.weights, two.mu, two.cov), 1), want, 1e-9));
}

// Prompts of a mixture, drawn here.
TEST(TwoTilts, DrawnPrompts) {
  const Pair two;
  const std::int64_t L = 12;
  const double rest = std::sqrt(1 - 0.16);
  Moments found;
  for (std::uint64_t draw = 0; draw < 40000; ++draw) {
    const Stream own = Stream(5, 0).split(draw);
    double total[2] = {0, 0}, sum[2] = {0, 0};
    for (std::int64_t i = 0; i < L; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      const Index k = own.split(1).uniform(at) < two.weights[0] ? 0 : 1;
      const double g = own.split(2).normal(at), h = own.split(3).normal(at);
      const double s[2] = {two.mu(k, 0) + 0.8 * g, two.mu(k, 1) + 1.1 * (-0.4 * g + rest * h)};
      for (int head = 0; head < 2; ++head) {
        total[head] += std::exp(s[head]);
        sum[head] += s[head] * std::exp(s[head]);
      }
    }
    found.add(sum[0] / total[0] * sum[1] / total[1]);
  }
  EXPECT_TRUE(agrees(found.estimate(Engine::direct),
                     two_tilts(own_scores(two.weights, two.mu, two.cov), L)));
}

// Both heads are the same: E|sum omega zeta|^2 of one head, with its own integral.
TEST(TwoTilts, EqualHeadsAreOne) {
  for (const double tau : {0.3, 1.0, 2.0}) {
    for (const std::int64_t L : {2, 30, 1000, 10000}) {
      const ScoreMixture one{.weights = Vector{{0.3, 0.7}},
                             .mu = Vector{{0.4, -0.2}},
                             .tau2 = Vector::Constant(2, tau * tau),
                             .mean = Matrix{{1.0, 0.2}, {-0.5, 0.3}},
                             .cross = Matrix{{0.5, -0.1}, {0.5, -0.1}} * tau,
                             .variance = Vector::Constant(2, 2.0)};
      const Matrix centred = one.mean.rowwise() - limit(one).transpose();
      Matrix mu(2, 2), cross(2, 2);
      mu << one.mu, one.mu;
      cross << one.cross.row(0).transpose(), one.cross.row(0).transpose();
      const TwoTilts both{one.weights, mu, cov_of(tau, tau, 1), centred, centred, cross,
                          cross,       2.0};
      EXPECT_TRUE(close(two_tilts(both, L), mean_square_error(one, L), 2e-6)) << tau << " " << L;
    }
  }
}

TEST(TwoTilts, HeadsMayBeExchanged) {
  const Pair two;
  const TwoTilts all = own_scores(two.weights, two.mu, two.cov);
  EXPECT_EQ(two_tilts(all, 20), two_tilts(all.exchanged(), 20));
}

// The slope in every field by differences, also of parallel tilts and of a score that does not
// vary; the value is that without a slope.
TEST(TwoTilts, GradientsAgreeWithDifferences) {
  for (const auto& [correlation, second] :
       std::vector<std::pair<double, double>>{{-0.4, 1.1}, {0.5, 0.7}, {0.9, 0.3}}) {
    TwoTilts t{Vector{{0.3, 0.7}},
               Matrix{{0.4, -1.0}, {-0.2, 0.9}},
               cov_of(0.8, second, correlation),
               Matrix{{0.5, -0.2}, {0.1, 0.7}},
               Matrix{{-0.3, 0.6}, {0.8, 0.2}},
               Matrix{{0.3, -0.1}, {0.2, 0.4}},
               Matrix{{-0.2, 0.5}, {0.1, 0.3}},
               0.35};
    for (const std::int64_t L : {1, 2, 3, 40, 5000}) {
      const TwoTiltsGradient found = two_tilts_gradient(t, L);
      EXPECT_TRUE(close(found.value, two_tilts(t, L), 1e-8)) << L;
      const auto check = [&](Matrix TwoTilts::*field, const char* what) {
        for (Index i = 0; i < (t.*field).rows(); ++i) {
          for (Index j = 0; j < (t.*field).cols(); ++j) {
            const auto at = [&](double by) {
              TwoTilts moved = t;
              (moved.*field)(i, j) += by;
              // Both entries of a covariance move.
              if (field == &TwoTilts::cov && i != j) (moved.*field)(j, i) += by;
              return two_tilts(moved, L);
            };
            const double h = 1e-3;
            const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
            const double both = field == &TwoTilts::cov && i != j ? 2 : 1;
            EXPECT_NEAR(both * (found.slope.*field)(i, j), slope, 1e-6 * (1 + std::abs(slope)))
                << what << " " << i << " " << j << " L " << L;
          }
        }
      };
      check(&TwoTilts::mu, "mu");
      check(&TwoTilts::cov, "cov");
      check(&TwoTilts::f, "f");
      check(&TwoTilts::g, "g");
      check(&TwoTilts::f_cross, "f_cross");
      check(&TwoTilts::g_cross, "g_cross");
      TwoTilts more = t;
      more.fg += 1;
      EXPECT_NEAR(found.slope.fg, two_tilts(more, L) - two_tilts(t, L), 1e-8) << L;
    }
  }
}

// One token is its own output: the value is f g + fg, whatever the scores are. Derivatives in scores
// need finer nodes than the value, the more so the sharper the scores are.
TEST(TwoTilts, GradientsOfOneTokenDoNotSeeItsScores) {
  for (const double s : {0.1, 2.0, 10.0}) {
    for (const double r : {-0.9, 0.0, 0.9, 1.0}) {
      const double c = r * std::sqrt(0.6) * s;
      const TwoTilts t{.weights = Vector{{0.4, 0.6}},
                       .mu = Matrix{{0.5, -0.5}, {-0.25, 0.15}},
                       .cov = Matrix{{s, c}, {c, 0.6 * s}},
                       .f = Matrix{{0.5, -0.2}, {0.1, 0.7}},
                       .g = Matrix{{-0.4, 0.6}, {0.9, 0.2}},
                       .f_cross = Matrix{{0.3 * s, 0.1 * c}, {-0.2 * s, 0.25 * c}},
                       .g_cross = Matrix{{0.1 * c, 0.24 * s}, {0.3 * c, -0.06 * s}},
                       .fg = 0.2};
      const TwoTiltsGradient found = two_tilts_gradient(t, 1);
      EXPECT_NEAR(found.value, 0.4 * -0.32 + 0.6 * 0.23 + 0.2, 1e-10);
      for (const Matrix& slope :
           {found.slope.mu, found.slope.cov, found.slope.f_cross, found.slope.g_cross}) {
        EXPECT_LT(slope.cwiseAbs().maxCoeff(), 1e-9) << "s " << s << " r " << r;
      }
    }
  }
}

TEST(TwoTilts, RefusesWhatDoesNotFit) {
  TwoTilts wrong = gaussian_scores(1, 1, 0);
  EXPECT_THROW(two_tilts(wrong, 0), ArgumentError);
  wrong.g = Matrix::Zero(2, 1);
  EXPECT_THROW(two_tilts(wrong, 3), DimensionError);
}

}  // namespace
}  // namespace esscher
