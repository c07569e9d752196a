#include "esscher/tilt/many.h"

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

template <class T>
std::vector<T> normals(std::uint64_t seed, Index n, Index d, double scale = 1, double centre = 0) {
  std::vector<T> x(static_cast<std::size_t>(n * d));
  const Stream stream(seed, 4);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(centre + scale * stream.normal(i));
  }
  return x;
}

template <class T>
class Many : public ::testing::Test {};
TYPED_TEST_SUITE(Many, Reals);

template <class T>
void compare(Index q, Index n, Index dk, Index dv, std::span<const T> bias, double centre) {
  SCOPED_TRACE("q=" + std::to_string(q) + " n=" + std::to_string(n) + " dk=" + std::to_string(dk) +
               " dv=" + std::to_string(dv));
  const auto a = normals<T>(1, q, dk, 0.3), k = normals<T>(2, n, dk, 1, centre);
  const auto v = normals<T>(3, n, dv, 1, centre);
  const Rows<T> keys(k.data(), n, dk), values(v.data(), n, dv);
  const TiltRows got = tilt_many<T>(Rows<T>(a.data(), q, dk), keys, values, bias);
  for (Index i = 0; i < q; ++i) {
    const std::span<const T> a_i(a.data() + i * dk, static_cast<std::size_t>(dk));
    const TiltState want = slow::tilt<T>(a_i, keys, values, bias);
    ASSERT_TRUE(close(got.mean.row(i).transpose(), want.mean(), 64 * kEps<T>, 1.0)) << i;
    ASSERT_TRUE(close(got.log_sum_exp[i], want.log_sum_exp(), 32 * kEps<T>, 1.0)) << i;
  }
}

TYPED_TEST(Many, EveryShapeOnEveryTarget) {
  using T = TypeParam;
  on_every_target([&] {
    for (const Index q : {1, 2, 5, 6, 7, 16, 17, 33, 64, 65}) {
      for (const Index n : {1, 5, 6, 95, 96, 97, 200}) compare<T>(q, n, 5, 7, {}, 0);
    }
    for (Index d = 1; d <= 35; d += 2) compare<T>(9, 50, d, 36 - d, {}, 0);
    compare<T>(3, kTiltLeaf + 100, 4, 4, {}, 100);
  });
}

// Query i of a causal mask is a query on the first n - q + i + 1 tokens.
template <class T>
void compare_causal(Index q, Index n, Index d, double centre) {
  SCOPED_TRACE("q=" + std::to_string(q) + " n=" + std::to_string(n) + " d=" + std::to_string(d));
  const auto a = normals<T>(1, q, d, 0.3), k = normals<T>(2, n, d, 1, centre);
  const auto v = normals<T>(3, n, d + 1);
  const Rows<T> keys(k.data(), n, d), values(v.data(), n, d + 1);
  const TiltRows got = tilt_causal<T>(Rows<T>(a.data(), q, d), keys, values);
  for (Index i = 0; i < q; i += 1 + q / 100) {
    const Index seen = n - q + i + 1;
    const std::span<const T> a_i(a.data() + i * d, static_cast<std::size_t>(d));
    const TiltState want = slow::tilt<T>(a_i, keys.slice(0, seen), values.slice(0, seen));
    ASSERT_TRUE(close(got.mean.row(i).transpose(), want.mean(), 64 * kEps<T>, 1.0)) << i;
    ASSERT_TRUE(close(got.log_sum_exp[i], want.log_sum_exp(), 32 * kEps<T>, 1.0)) << i;
  }
}

TYPED_TEST(Many, CausalQueriesSeeTheirPrefix) {
  using T = TypeParam;
  on_every_target([&] {
    for (const Index n : {1, 2, 7, 95, 96, 97, 130}) compare_causal<T>(n, n, 3, 0);
    for (const Index q : {1, 5, 64, 65, 100}) compare_causal<T>(q, 200, 9, 5);
    compare_causal<T>(70, kTiltLeaf + 30, 2, 0);  // the mask crosses the border of a leaf
  });
  const auto x = normals<T>(5, 4, 3);
  const Rows<T> rows(x.data(), 4, 3);
  EXPECT_THROW(tilt_causal<T>(rows, rows.slice(0, 3), rows.slice(0, 3)), ArgumentError);
}

// Means and products against the slow twin. Tokens that drift make f of the first tile a poor guess
// of f at the end.
template <class T>
void compare_product(Index q, Index n, Index d, std::span<const T> bias, double centre,
                     double drift) {
  SCOPED_TRACE("q=" + std::to_string(q) + " n=" + std::to_string(n) + " d=" + std::to_string(d));
  const auto a = normals<T>(1, q, d, 0.3), r = normals<T>(2, q, d, 0.3);
  auto x = normals<T>(3, n, d, 1, centre);
  for (Index l = 0; l < n; ++l) {
    for (Index j = 0; j < d; ++j) {
      x[static_cast<std::size_t>(l * d + j)] += static_cast<T>(drift * static_cast<double>(l) / n);
    }
  }
  const Rows<T> tokens(x.data(), n, d), queries(a.data(), q, d), rs(r.data(), q, d);
  const TiltRows got = tilt_many_product<T>(queries, rs, tokens, bias);
  for (Index i = 0; i < q; ++i) {
    const std::span<const T> a_i(a.data() + i * d, static_cast<std::size_t>(d));
    const std::span<const T> r_i(r.data() + i * d, static_cast<std::size_t>(d));
    const TiltState want = slow::tilt_product<T>(a_i, r_i, tokens, tokens, bias);
    ASSERT_TRUE(close(got.mean.row(i).transpose(), want.mean(), 64 * kEps<T>, 1.0)) << i;
    ASSERT_TRUE(close(got.product.row(i).transpose(), want.product_mean(), 64 * kEps<T>, 1.0)) << i;
    ASSERT_TRUE(close(got.log_sum_exp[i], want.log_sum_exp(), 32 * kEps<T>, 1.0)) << i;
  }
}

TYPED_TEST(Many, ProductsOnEveryTarget) {
  using T = TypeParam;
  std::vector<T> bias(150, T(0));
  for (std::size_t l = 0; l < 110; ++l) bias[l] = -std::numeric_limits<T>::infinity();
  on_every_target([&] {
    for (const Index q : {1, 7, 33, 65}) {
      for (const Index n : {1, 5, 96, 200}) compare_product<T>(q, n, 6, {}, 0, 0);
    }
    for (Index d = 1; d <= 35; d += 3) compare_product<T>(5, 100, d, {}, 0, 1);
    compare_product<T>(9, 150, 4, bias, 0, 0);
    compare_product<T>(3, kTiltLeaf + 100, 4, {}, 10, 2);
  });
}

TYPED_TEST(Many, RowsDoNotDependOnOtherQueries) {
  using T = TypeParam;
  const auto x = normals<T>(6, 300, 5);
  const Rows<T> rows(x.data(), 300, 5);
  const TiltRows all = tilt_many_product<T>(rows.slice(0, 70), rows.slice(70, 70), rows);
  const TiltRows one = tilt_many_product<T>(rows.slice(66, 1), rows.slice(136, 1), rows);
  EXPECT_EQ(all.mean.row(66), one.mean.row(0));
  EXPECT_EQ(all.product.row(66), one.product.row(0));
}

TYPED_TEST(Many, MaskedTokensDoNotCount) {
  using T = TypeParam;
  std::vector<T> bias(300, T(0));
  for (std::size_t l = 0; l < 130; ++l) bias[l] = -std::numeric_limits<T>::infinity();
  compare<T>(10, 300, 3, 3, bias, 0);
  for (T& b : bias) b = -std::numeric_limits<T>::infinity();
  const auto x = normals<T>(5, 300, 3);
  const Rows<T> rows(x.data(), 300, 3);
  EXPECT_THROW(tilt_many<T>(rows.slice(0, 4), rows, rows, bias), DomainError);
  EXPECT_THROW(tilt_many<T>(rows.slice(0, 4), rows.slice(0, 0), rows.slice(0, 0)), DomainError);
}

TYPED_TEST(Many, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  const Index n = 5 * kTiltLeaf + 3;
  const auto x = normals<T>(6, n, 4);
  const Rows<T> rows(x.data(), n, 4);
  set_thread_count(1);
  const TiltRows one = tilt_many<T>(rows.slice(0, 9), rows, rows);
  set_thread_count(3);
  const TiltRows three = tilt_many<T>(rows.slice(0, 9), rows, rows);
  set_thread_count(0);
  EXPECT_EQ(one.mean, three.mean);
  EXPECT_EQ(one.log_sum_exp, three.log_sum_exp);
  set_thread_count(1);
  const TiltRows product = tilt_many_product<T>(rows.slice(0, 99), rows.slice(9, 99), rows);
  const TiltRows causal = tilt_causal<T>(rows.slice(0, 99), rows, rows);
  set_thread_count(3);
  EXPECT_EQ(product.product,
            tilt_many_product<T>(rows.slice(0, 99), rows.slice(9, 99), rows).product);
  EXPECT_EQ(causal.mean, tilt_causal<T>(rows.slice(0, 99), rows, rows).mean);
  set_thread_count(0);
}

TYPED_TEST(Many, BatchAgreesWithItsPrompts) {
  using T = TypeParam;
  const Index b = 11, d = 6;
  for (const Index length : {1, 10, 63, 1000, static_cast<int>(kTiltLeaf) + 5}) {
    const auto z = normals<T>(7, b * length, d), a = normals<T>(8, b, d, 0.4);
    const auto r = normals<T>(9, b, d, 0.4);
    const Rows<T> tokens(z.data(), b * length, d), queries(a.data(), b, d), rs(r.data(), b, d);
    const TiltRows got = tilt_batch<T>(queries, rs, tokens, length);
    const TiltRows means = tilt_batch<T>(queries, Rows<T>(), tokens, length);
    for (Index i = 0; i < b; ++i) {
      const Rows<T> prompt = tokens.slice(i * length, length);
      const TiltState want =
          slow::tilt_product<T>({a.data() + i * d, 6}, {r.data() + i * d, 6}, prompt, prompt);
      ASSERT_TRUE(close(got.mean.row(i).transpose(), want.mean(), 16 * kEps<T>, 1.0));
      ASSERT_TRUE(close(means.mean.row(i).transpose(), want.mean(), 16 * kEps<T>, 1.0));
      ASSERT_TRUE(close(got.product.row(i).transpose(), want.product_mean(), 32 * kEps<T>, 1.0));
      ASSERT_TRUE(close(got.log_sum_exp[i], want.log_sum_exp(), 16 * kEps<T>, 1.0));
    }
  }
}

}  // namespace
}  // namespace esscher
