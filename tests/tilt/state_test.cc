#include "esscher/tilt/state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// One token with score s and t = <r, x>.
TiltState token(double s, const Vector& x, const Vector& r) {
  TiltState state = TiltState::neutral(x.size(), true, true);
  state.count = 1;
  if (std::isinf(s)) return state;
  state.max = s;
  state.norm = 1;
  state.t_sum = r.dot(x);
  state.sum = x;
  return state;
}

bool same_bits(const TiltState& a, const TiltState& b) {
  return a.max == b.max && a.norm == b.norm && a.t_sum == b.t_sum && a.sum == b.sum &&
         a.product == b.product && a.second == b.second && a.count == b.count;
}

// Associativity and commutativity hold to this many units of 2^-53 of the largest entry.
constexpr double kLawTolerance = 32 * 2.22e-16;

void expect_same_law(const TiltState& a, const TiltState& b) {
  ASSERT_EQ(a.count, b.count);
  ASSERT_EQ(a.empty(), b.empty());
  if (a.empty()) return;
  EXPECT_EQ(a.max, b.max);
  EXPECT_TRUE(close(a.norm, b.norm, kLawTolerance));
  EXPECT_TRUE(close(a.t_mean(), b.t_mean(), kLawTolerance, 4.0));
  EXPECT_TRUE(close(a.mean(), b.mean(), kLawTolerance, 4.0));
  EXPECT_TRUE(close(a.product_mean(), b.product_mean(), kLawTolerance, 16.0));
  EXPECT_TRUE(close(a.covariance(), b.covariance(), kLawTolerance, 16.0));
}

TiltState random_state(const Stream& stream, int tokens, double score_scale) {
  const Index d = 3;
  const Vector r = Vector::LinSpaced(d, -1, 1);
  TiltState state = TiltState::neutral(d, true, true);
  for (int l = 0; l < tokens; ++l) {
    Vector x(d);
    for (Index j = 0; j < d; ++j) x[j] = stream.normal(static_cast<std::uint64_t>(l * 4 + j));
    const double u = stream.normal(static_cast<std::uint64_t>(l * 4 + 3));
    const double s = u > 1.5 ? -std::numeric_limits<double>::infinity() : score_scale * u;
    merge(state, token(s, x, r));
  }
  return state;
}

TiltState merged(TiltState left, const TiltState& right) {
  merge(left, right);
  return left;
}

RC_GTEST_PROP(TiltState, MonoidLaws, (std::uint64_t seed)) {
  const double scale = std::pow(10.0, static_cast<double>(*rc::gen::inRange(-2, 5)));
  const Stream stream(seed, 1);
  std::vector<TiltState> parts;
  for (std::uint64_t i = 0; i < 3; ++i) {
    parts.push_back(random_state(stream.split(i), *rc::gen::inRange(0, 6), scale));
  }
  const TiltState &a = parts[0], &b = parts[1], &c = parts[2];
  const TiltState zero = TiltState::neutral(3, true, true);
  RC_ASSERT(same_bits(merged(zero, a), a));
  RC_ASSERT(same_bits(merged(a, zero), a));
  expect_same_law(merged(merged(a, b), c), merged(a, merged(b, c)));
  expect_same_law(merged(a, b), merged(b, a));
}

TEST(TiltState, NeutralWithNeutralIsNeutral) {
  const TiltState zero = TiltState::neutral(2, true, true);
  EXPECT_TRUE(same_bits(merged(zero, zero), zero));
  EXPECT_TRUE(merged(zero, zero).empty());
}

TEST(TiltState, MaskedTokenCountsAndWeighsNothing) {
  const Vector x = Vector::Constant(2, 3.0), r = Vector::Ones(2);
  const TiltState masked = token(-std::numeric_limits<double>::infinity(), x, r);
  const TiltState plain = token(1.0, x, r);
  EXPECT_TRUE(merged(masked, masked).empty());
  EXPECT_EQ(merged(masked, plain).mean(), x);
  EXPECT_EQ(merged(masked, plain).count, 2);
}

TEST(TiltState, TwoTokensByHand) {
  const Vector r = Vector::Ones(1);
  for (const double shift : {0.0, 1e4, -1e4}) {
    // weights 1/4 and 3/4 at 0 and 2: mean 1.5, variance 0.75
    TiltState state = token(shift, Vector::Zero(1), r);
    merge(state, token(shift + std::log(3.0), Vector::Constant(1, 2.0), r));
    EXPECT_TRUE(close(state.mean()[0], 1.5, 1e-12));
    EXPECT_TRUE(close(state.covariance()(0, 0), 0.75, 1e-12));
    EXPECT_TRUE(close(state.product_mean()[0], 0.75, 1e-12));
    EXPECT_TRUE(close(state.log_sum_exp(), shift + std::log(4.0), 1e-15, 1.0));
  }
}

TEST(TiltState, ScoresFarApartDoNotOverflow) {
  const Vector r = Vector::Ones(1);
  TiltState state = token(1e4, Vector::Constant(1, 5.0), r);
  merge(state, token(-1e4, Vector::Constant(1, 7.0), r));
  EXPECT_EQ(state.mean()[0], 5.0);
  EXPECT_EQ(state.covariance()(0, 0), 0.0);
}

TEST(TiltState, MismatchedStatesDoNotMerge) {
  TiltState a = TiltState::neutral(2), b = TiltState::neutral(3), c = TiltState::neutral(2, true);
  EXPECT_THROW(merge(a, b), DimensionError);
  EXPECT_THROW(merge(a, c), DimensionError);
  EXPECT_THROW(a.mean(), DomainError);
  EXPECT_THROW(a.log_sum_exp(), DomainError);
}

}  // namespace
}  // namespace esscher
