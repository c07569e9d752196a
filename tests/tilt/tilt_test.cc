#include "esscher/tilt/tilt.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/random/stream.h"
#include "esscher/simd/targets.h"
#include "esscher/tilt/detail/tilt_slow.h"
#include "tests/testing.h"
#include "tests/tilt/targets.h"

namespace esscher {
namespace {

using testing::close;
using testing::kEps;
using testing::on_every_target;
using testing::Reals;

// [n,d] tokens around `centre` with unit spread, `offset` elements into their buffer.
template <class T>
struct Tokens {
  Tokens(std::uint64_t seed, Index n, Index d, double centre = 0, Index offset = 0)
      : buffer(static_cast<std::size_t>(n * d + offset)), rows(buffer.data() + offset, n, d) {
    const Stream stream(seed, 7);
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      buffer[i] = static_cast<T>(centre + stream.normal(i));
    }
  }
  std::vector<T> buffer;
  Rows<T> rows;
};

template <class T>
std::vector<T> direction(std::uint64_t seed, Index d, double length) {
  std::vector<T> a(static_cast<std::size_t>(d));
  const Stream stream(seed, 8);
  for (std::size_t j = 0; j < a.size(); ++j) {
    a[j] = static_cast<T>(length / std::sqrt(static_cast<double>(d)) * stream.normal(j));
  }
  return a;
}

template <class T>
class Tilt : public ::testing::Test {};
TYPED_TEST_SUITE(Tilt, Reals);

template <class T>
void compare(const TiltState& got, const TiltState& want, double tolerance) {
  ASSERT_EQ(got.count, want.count);
  ASSERT_EQ(got.empty(), want.empty());
  if (want.empty()) return;
  EXPECT_TRUE(close(got.log_sum_exp(), want.log_sum_exp(), tolerance, 1.0));
  EXPECT_TRUE(close(got.mean(), want.mean(), tolerance, 1.0));
  if (got.product.size() > 0) {
    EXPECT_TRUE(close(got.t_mean(), want.t_mean(), tolerance, 1.0));
    EXPECT_TRUE(close(got.product_mean(), want.product_mean(), tolerance, 1.0));
  }
  if (got.second.size() > 0) {
    EXPECT_TRUE(close(got.covariance(), want.covariance(), tolerance, 1.0));
  }
}

TYPED_TEST(Tilt, EveryLengthDimensionAndAlignmentOnEveryTarget) {
  using T = TypeParam;
  on_every_target([] {
    for (Index n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129}) {
      for (Index d = 1; d <= 35; d += n < 10 ? 1 : 7) {
        const Index offset = (n + d) % 5;
        const Tokens<T> z(n + 100 * d, n, d, 0, offset);
        const std::vector<T> a = direction<T>(1, d, 1), r = direction<T>(2, d, 1);
        SCOPED_TRACE("n=" + std::to_string(n) + " d=" + std::to_string(d));
        compare<T>(tilt<T>(a, z.rows, z.rows), slow::tilt<T>(a, z.rows, z.rows), 16 * kEps<T>);
        compare<T>(tilt_product<T>(a, r, z.rows, z.rows),
                   slow::tilt_product<T>(a, r, z.rows, z.rows), 32 * kEps<T>);
        if (n < 10 || d < 9) {
          compare<T>(tilt_second<T>(a, z.rows), slow::tilt<T>(a, z.rows, z.rows), 32 * kEps<T>);
        }
      }
    }
  });
}

// Up to eight coordinates: tokens are turned into columns, in tiles of up to 512.
TYPED_TEST(Tilt, ShortTokensOnEveryTarget) {
  using T = TypeParam;
  on_every_target([] {
    for (const Index n : {10, 31, 32, 100, 500, 511, 512, 513, 1100}) {
      for (Index d = 1; d <= 8; ++d) {
        SCOPED_TRACE("n=" + std::to_string(n) + " d=" + std::to_string(d));
        const Index stride = d + n % 3;
        const Tokens<T> z(n + 100 * d, n, stride, d % 3);
        // Exactly as long as the last row needs: reading past it is an error under ASan.
        const std::vector<T> exact(z.buffer.begin(), z.buffer.end() - (stride - d));
        const Rows<T> rows(exact.data(), n, d, stride);
        const std::vector<T> a = direction<T>(1, d, 1), r = direction<T>(2, d, 1);
        std::vector<T> bias(static_cast<std::size_t>(n), T(0));
        for (std::size_t l = 0; l < bias.size(); l += 3) bias[l] = T(l % 2);
        for (std::size_t l = 1; l < bias.size(); l += 7) {
          bias[l] = -std::numeric_limits<T>::infinity();
        }
        compare<T>(tilt<T>(a, rows, rows), slow::tilt<T>(a, rows, rows), 16 * kEps<T>);
        compare<T>(tilt_product<T>(a, r, rows, rows, bias),
                   slow::tilt_product<T>(a, r, rows, rows, bias), 32 * kEps<T>);
      }
    }
  });
}

TYPED_TEST(Tilt, SeparateKeysAndValuesWithStride) {
  using T = TypeParam;
  on_every_target([] {
    const Index n = 201;
    const Tokens<T> k(1, n, 11), v(2, n, 20, 0, 3);
    const Rows<T> keys(k.rows.data, n, 5, 11), values(v.rows.data, n, 13, 20);
    const std::vector<T> a = direction<T>(3, 5, 2), r = direction<T>(4, 13, 1);
    compare<T>(tilt<T>(a, keys, values), slow::tilt<T>(a, keys, values), 16 * kEps<T>);
    compare<T>(tilt_product<T>(a, r, keys, values), slow::tilt_product<T>(a, r, keys, values),
               32 * kEps<T>);
  });
}

TYPED_TEST(Tilt, ManyLeaves) {
  using T = TypeParam;
  const Index n = 3 * kTiltLeaf + 77, d = 6;
  const Tokens<T> z(5, n, d);
  const std::vector<T> a = direction<T>(5, d, 2), r = direction<T>(6, d, 1);
  compare<T>(tilt_product<T>(a, r, z.rows, z.rows), slow::tilt_product<T>(a, r, z.rows, z.rows),
             32 * kEps<T>);
  compare<T>(tilt_second<T>(a, z.rows), slow::tilt<T>(a, z.rows, z.rows), 32 * kEps<T>);
}

// Tokens far from the origin: without the shift float would lose every digit of the covariance
// (1e4^2 against 1), with it the error stays that of the tokens' spread.
TYPED_TEST(Tilt, TokensFarFromTheOriginKeepTheirDigits) {
  using T = TypeParam;
  on_every_target([] {
    const Index n = 2 * kTiltLeaf, d = 9;
    const Tokens<T> z(6, n, d, 1e4);
    const std::vector<T> a = direction<T>(7, d, 1), r = direction<T>(8, d, 1);
    const TiltState got = tilt_product<T>(a, r, z.rows, z.rows);
    const TiltState want = slow::tilt_product<T>(a, r, z.rows, z.rows);
    // Second term: leaves keep their scores and means, of size 1e4, in double. Those errors reach
    // the result times what differs between two leaves, about 1/sqrt(kTiltLeaf).
    const double leaf_error = 1e4 * kEps<double> / std::sqrt(static_cast<double>(kTiltLeaf));
    const double tolerance = 4 * kEps<T> + 4 * leaf_error;
    EXPECT_TRUE(close(got.product_mean(), want.product_mean(), tolerance, 1.0));
    EXPECT_TRUE(close(got.mean(), want.mean(), 8 * kEps<T>));
    const TiltState second = tilt_second<T>(a, z.rows);
    EXPECT_TRUE(close(second.covariance(), want.covariance(), tolerance, 1.0));
  });
}

TYPED_TEST(Tilt, ScoresOfTenThousand) {
  using T = TypeParam;
  on_every_target([] {
    for (const double sign : {1.0, -1.0}) {
      const Index n = 300, d = 4;
      const Tokens<T> z(9, n, d);
      std::vector<T> a = direction<T>(10, d, 1), bias(static_cast<std::size_t>(n));
      for (T& b : bias) b = static_cast<T>(sign * 1e4);
      compare<T>(tilt<T>(a, z.rows, z.rows, bias), slow::tilt<T>(a, z.rows, z.rows, bias),
                 2e4 * kEps<T>);                   // the score itself is rounded at 1e4
      for (T& x : a) x = static_cast<T>(x * 1e4);  // one token takes all the weight
      const TiltState got = tilt<T>(a, z.rows, z.rows);
      EXPECT_TRUE(close(got.mean(), slow::tilt<T>(a, z.rows, z.rows).mean(), 2e4 * kEps<T>, 1.0));
    }
  });
}

TYPED_TEST(Tilt, MaskedTokensDoNotCount) {
  using T = TypeParam;
  on_every_target([] {
    const Index n = 150, d = 3;
    const Tokens<T> z(11, n, d);
    const std::vector<T> a = direction<T>(12, d, 1), r = direction<T>(13, d, 1);
    std::vector<T> bias(static_cast<std::size_t>(n), 0);
    for (Index l = 0; l < 70; ++l) {  // the first token and a whole tile among them
      bias[static_cast<std::size_t>(l)] = -std::numeric_limits<T>::infinity();
    }
    const TiltState masked = tilt_product<T>(a, r, z.rows, z.rows, bias);
    const Rows<T> rest = z.rows.slice(70, n - 70);
    const TiltState want = slow::tilt_product<T>(a, r, rest, rest);
    EXPECT_TRUE(close(masked.mean(), want.mean(), 16 * kEps<T>, 1.0));
    EXPECT_TRUE(close(masked.product_mean(), want.product_mean(), 32 * kEps<T>, 1.0));
    for (T& b : bias) b = -std::numeric_limits<T>::infinity();
    const TiltState none = tilt_product<T>(a, r, z.rows, z.rows, bias);
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.max, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(none.count, n);
    EXPECT_THROW(none.mean(), DomainError);
  });
}

TYPED_TEST(Tilt, AllEqualScoresGiveThePlainMean) {
  using T = TypeParam;
  const Tokens<T> z(14, 1000, 5);
  const std::vector<T> zero(5, 0);
  const TiltState state = tilt<T>(zero, z.rows, z.rows);
  EXPECT_EQ(state.norm, 1000);
  Vector mean = Vector::Zero(5);
  for (Index l = 0; l < 1000; ++l) {
    for (Index j = 0; j < 5; ++j) mean[j] += static_cast<double>(z.rows.data[l * 5 + j]) / 1000;
  }
  EXPECT_TRUE(close(state.mean(), mean, 4 * kEps<T>, 1.0));
}

TYPED_TEST(Tilt, OneTokenIsItsOwnMean) {
  using T = TypeParam;
  const Tokens<T> z(15, 1, 7, 100);
  const std::vector<T> a = direction<T>(16, 7, 50);
  const TiltState state = tilt_product<T>(a, a, z.rows, z.rows);
  for (Index j = 0; j < 7; ++j) {
    EXPECT_EQ(state.mean()[j], static_cast<double>(z.rows.data[j]));
    EXPECT_EQ(state.product[j], 0);
  }
}

TYPED_TEST(Tilt, NaNReachesTheResult) {
  using T = TypeParam;
  on_every_target([] {
    Tokens<T> z(17, 100, 3);
    z.buffer[150] = std::numeric_limits<T>::quiet_NaN();
    const std::vector<T> a = direction<T>(18, 3, 1);
    EXPECT_TRUE(std::isnan(tilt<T>(a, z.rows, z.rows).mean()[0]));
  });
}

TYPED_TEST(Tilt, PrefixesAgreeWithShorterPrompts) {
  using T = TypeParam;
  const Index n = 2 * kTiltLeaf + 500, d = 4;
  const Tokens<T> z(19, n, d);
  const std::vector<T> a = direction<T>(20, d, 1);
  const std::vector<Index> lengths = {1, 2, 3, 63, 64, 65, 1000, kTiltLeaf, kTiltLeaf + 1, n};
  const Matrix means = tilt_prefixes<T>(a, z.rows, z.rows, lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Rows<T> prefix = z.rows.slice(0, lengths[i]);
    EXPECT_TRUE(close(means.row(static_cast<Index>(i)).transpose(),
                      slow::tilt<T>(a, prefix, prefix).mean(), 16 * kEps<T>, 1.0))
        << lengths[i];
  }
  for (const std::vector<Index>& bad : {std::vector<Index>{0}, {5, 5}, {n + 1}}) {
    EXPECT_THROW(tilt_prefixes<T>(a, z.rows, z.rows, bad), ArgumentError);
  }
}

TYPED_TEST(Tilt, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  const Index n = 9 * kTiltLeaf + 5, d = 6;
  const Tokens<T> z(21, n, d);
  const std::vector<T> a = direction<T>(22, d, 2), r = direction<T>(23, d, 1);
  set_thread_count(1);
  const TiltState one = tilt_product<T>(a, r, z.rows, z.rows);
  for (const int threads : {2, 3, 7}) {
    set_thread_count(threads);
    const TiltState more = tilt_product<T>(a, r, z.rows, z.rows);
    EXPECT_EQ(one.max, more.max);
    EXPECT_EQ(one.norm, more.norm);
    EXPECT_EQ(one.t_sum, more.t_sum);
    EXPECT_EQ(one.sum, more.sum);
    EXPECT_EQ(one.product, more.product);
  }
  set_thread_count(0);
}

TYPED_TEST(Tilt, ShapesAreChecked) {
  using T = TypeParam;
  const Tokens<T> z(24, 10, 3), y(25, 9, 3);
  const std::vector<T> a = direction<T>(26, 3, 1), b = direction<T>(27, 4, 1);
  EXPECT_THROW(tilt<T>(b, z.rows, z.rows), DimensionError);
  EXPECT_THROW(tilt<T>(a, z.rows, y.rows), DimensionError);
  EXPECT_THROW(tilt<T>(a, z.rows, z.rows, a), DimensionError);
  EXPECT_THROW(tilt_product<T>(a, b, z.rows, z.rows), DimensionError);
  EXPECT_THROW(Rows<T>(nullptr, 3, 2, 1), ArgumentError);
}

}  // namespace
}  // namespace esscher
