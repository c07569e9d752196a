#include "esscher/heads/dependence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/estimate/autocorrelation.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/diagnose.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/stationary.h"
#include "tests/coverage.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::random_matrix;

Head head_of(const Matrix& keys) {
  return make_head("keys", random_matrix(Stream(3), 4, keys.cols()), keys, keys, 0.3, false);
}

Matrix autoregression(double rho, Index d, Index n, const Stream& stream) {
  const Matrix I = Matrix::Identity(d, d);
  return Stationary::autoregressive(Gaussian(I), {rho * I}).sample(stream, n).tokens();
}

// The interval of one head is open where kappa is a lower bound only.
void count(testing::Coverage& c, const Matrix& keys, double truth) {
  const KeyDependence found = *key_dependence(head_of(keys));
  ++c.seeds;
  c.flagged += std::isinf(found.high) ? 1 : 0;
  c.held += std::isfinite(found.high) && found.low <= truth && truth <= found.high ? 1 : 0;
}

// Keys that follow AR(1) with coefficient 0.5 have kappa (1 + 0.5)/(1 - 0.5) = 3, independent ones 1.
TEST(KeyDependence, IntervalsHoldTheKappaOfAnAutoregression) {
  for (const Index d : {1, 4}) {
    testing::Coverage c, apart;
    std::vector<double> widths;
    for (std::uint64_t r = 0; r < 400; ++r) {
      const Matrix keys = autoregression(0.5, d, 1500, Stream(7, r));
      count(c, keys, 3);
      count(apart, random_matrix(Stream(8, r), 600, d), 1);
      const KeyDependence found = *key_dependence(head_of(keys));
      widths.push_back((found.high - found.low) / found.kappa);
    }
    testing::expect_calibrated(c, "AR(1)");
    testing::expect_calibrated(apart, "independent keys");
    // Chi-square of 1500/(2 * 15 + 1 - 3) = 53.6 degrees of freedom for each coordinate, for the window
    // of 5 kappa = 15: the quantiles are 35.2 and 75.8 of 53.6, 175.2 and 256.0 of 214.3.
    const double wide = d == 1 ? 53.6 * (1 / 35.2 - 1 / 75.8) : 214.3 * (1 / 175.2 - 1 / 256.0);
    EXPECT_TRUE(testing::close(median(widths), wide, 0.1)) << d;
  }
}

// Four coordinates that share nine tenths of their variance are hardly more than one, and one of four
// that is slow has most of the noise.
TEST(KeyDependence, CoordinatesThatAreAlikeCountOnce) {
  testing::Coverage shared, uneven;
  std::vector<double> coordinates;
  for (std::uint64_t r = 0; r < 400; ++r) {
    const Matrix common = autoregression(0.5, 1, 1500, Stream(21, r));
    const Matrix own = autoregression(0.5, 4, 1500, Stream(22, r));
    const Matrix keys =
        std::sqrt(0.1) * own + std::sqrt(0.9) * common * Eigen::RowVectorXd::Ones(4);
    count(shared, keys, 3);
    coordinates.push_back(autocorrelation(keys).coordinates);
    Matrix mixed = autoregression(0.3, 4, 1500, Stream(23, r));
    mixed.leftCols(1) = autoregression(0.7, 1, 1500, Stream(24, r));
    count(uneven, mixed, (1.7 / 0.3 + 3 * 1.3 / 0.7) / 4);
  }
  testing::expect_calibrated(shared, "coordinates with a common part");
  testing::expect_calibrated(uneven, "one slow coordinate of four");
  // Eigenvalues of the correlations: 0.1 + 4 * 0.9 once, 0.1 three times.
  EXPECT_TRUE(testing::close(median(coordinates), 16 / (3.7 * 3.7 + 3 * 0.01), 0.05));
}

// A share of the variance of a sum of autocovariances goes with that of the keys, which divides it.
// Where neighbours repel each other, the window sees frequencies at which keys vary more.
TEST(KeyDependence, TheErrorOfKappaIsItsSpreadOverPrompts) {
  constexpr int kPrompts = 3000;
  for (const double rho : {0.5, -0.3}) {
    double sum = 0, squares = 0, stated = 0;
    for (std::uint64_t r = 0; r < kPrompts; ++r) {
      const Autocorrelation found = autocorrelation(autoregression(rho, 1, 1500, Stream(15, r)));
      sum += found.kappa / kPrompts;
      squares += found.kappa * found.kappa / kPrompts;
      stated += std::pow(found.std_error / found.kappa, 2) / kPrompts;
    }
    EXPECT_NEAR(std::sqrt(stated / (squares / (sum * sum) - 1)), 1.02, 0.035) << rho;
  }
}

// Few effective keys make kappa skewed: an interval of as much on either side misses above it three
// times as often as it should, and below it never.
TEST(KeyDependence, IntervalsMissOnEitherSideAlike) {
  constexpr int kPrompts = 600;
  int above = 0, below = 0;
  for (std::uint64_t r = 0; r < kPrompts; ++r) {
    const KeyDependence found =
        *key_dependence(head_of(autoregression(0.8, 1, 1500, Stream(12, r))));
    above += found.high < 9 ? 1 : 0;
    below += found.low > 9 ? 1 : 0;
  }
  // 15 of 600 expected on either side, four binomial errors around it.
  EXPECT_LE(above, 30);
  EXPECT_LE(below, 30);
  EXPECT_GE(above, 2);
  EXPECT_GE(below, 2);
}

// Neighbours that repel each other have a kappa below 1, and the window sees more noise than that.
TEST(KeyDependence, KeysThatRepelTheirNeighboursAreNotTakenForCertain) {
  for (const Index d : {1, 8}) {
    testing::Coverage c;
    for (std::uint64_t r = 0; r < 400; ++r) {
      count(c, autoregression(-0.3, d, 1000, Stream(13, r)), 0.7 / 1.3);
    }
    testing::expect_calibrated(c, "keys that repel");
  }
}

TEST(KeyDependence, FewKeysLeaveALowerBound) {
  EXPECT_TRUE(std::isinf(key_dependence(head_of(autoregression(0.8, 1, 100, Stream(14))))->high));
}

// The mean that is subtracted lowers every autocovariance by the variance of the mean, kappa/n.
TEST(KeyDependence, TheMeanOfFewKeysCostsKappaWhatIsSaid) {
  double kappa = 0, bias = 0;
  constexpr int kPrompts = 400;
  for (std::uint64_t r = 0; r < kPrompts; ++r) {
    const Autocorrelation found = autocorrelation(autoregression(0.5, 8, 200, Stream(9, r)));
    kappa += found.kappa / kPrompts;
    bias += found.bias / kPrompts;
  }
  EXPECT_GT(bias, 0.3);
  EXPECT_NEAR(kappa + bias, 3, 0.15);
}

// One slow coordinate, kappa 39, among fifteen of kappa 13/7: the window of their mean sees a third of
// it, and an interval would miss (39 + 15 * 13/7)/16 = 4.18 nearly always.
TEST(KeyDependence, OneSlowCoordinateLeavesALowerBound) {
  int held = 0, open = 0;
  for (std::uint64_t r = 0; r < 60; ++r) {
    Matrix keys(1500, 16);
    keys.leftCols(1) = autoregression(0.95, 1, 1500, Stream(10, r));
    keys.rightCols(15) = autoregression(0.3, 15, 1500, Stream(11, r));
    const KeyDependence found = *key_dependence(head_of(keys));
    open += std::isinf(found.high) ? 1 : 0;
    held += found.low <= 4.18 && 4.18 <= found.high ? 1 : 0;
  }
  EXPECT_GE(open, 55);
  EXPECT_GE(held, 55);
}

TEST(KeyDependence, KeysThatDriftHaveALowerBoundOnly) {
  Matrix keys(400, 1);
  for (Index l = 0; l < keys.rows(); ++l) keys(l, 0) = std::cos(0.004 * static_cast<double>(l));
  const KeyDependence found = *key_dependence(head_of(keys));
  EXPECT_TRUE(std::isinf(found.high));
  EXPECT_GT(found.kappa, 50);
  EXPECT_FALSE(key_dependence(head_of(keys.topRows(7))));
}

// A head reports what its keys say, of the first ones alone if there are many.
TEST(KeyDependence, IsAColumnOfADiagnosis) {
  HeadOptions options;
  options.components = {};
  options.windows = {};
  const Matrix keys = autoregression(0.7, 3, kDependenceKeys + 500, Stream(9));
  const HeadDiagnosis all = diagnose(head_of(keys), options);
  const HeadDiagnosis first = diagnose(head_of(keys.topRows(kDependenceKeys)), options);
  EXPECT_EQ(all.kappa, first.kappa);
  EXPECT_LT(*all.kappa_low, 1.7 / 0.3);
  EXPECT_GT(*all.kappa_high, 1.7 / 0.3);
  EXPECT_FALSE(diagnose(head_of(keys.topRows(6)), options).kappa);
}

}  // namespace
}  // namespace esscher
