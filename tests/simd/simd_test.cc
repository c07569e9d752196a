#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "esscher/simd/exp.h"
#include "esscher/simd/targets.h"
#include "esscher/simd/tree.h"
#include "tests/testing.h"

namespace esscher::simd {
namespace {

// Runs the body once per target and proves by the target's own code that it was the one running.
template <class Body>
void on_every_target(const Body& body) {
  const std::vector<std::string> targets = supported_targets();
  ASSERT_FALSE(targets.empty());
  for (const std::string& target : targets) {
    force_target(target);
    ASSERT_EQ(active_target(), target);
    body(target);
  }
  force_target("");
}

TEST(Targets, BestIsFirstAndChosen) {
  force_target("");
  EXPECT_EQ(active_target(), supported_targets().front());
}

TEST(Targets, UnknownNameListsTheKnownOnes) {
  try {
    force_target("MMX");
    FAIL() << "no error";
  } catch (const ArgumentError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("MMX"), std::string::npos) << text;
    EXPECT_NE(text.find(supported_targets().front()), std::string::npos) << text;
  }
}

// A fresh process per target: the environment is read once.
TEST(Targets, EnvironmentForces) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::string& target : supported_targets()) {
    EXPECT_EXIT(
        {
          ::setenv("ESSCHER_TARGET", target.c_str(), 1);
          std::exit(active_target() == target ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

template <class T>
class Exponential : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Exponential, Reals);

template <class T>
double ulp_error(T got, T x) {
  const long double want = std::exp(static_cast<long double>(x));
  const T rounded = static_cast<T>(want);
  const long double ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / ulp));
}

TYPED_TEST(Exponential, KeepsItsContractOnEveryTarget) {
  using T = TypeParam;
  constexpr ExpContract<T> contract = exp_contract<T>();
  const std::size_t n = 400001;
  std::vector<T> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(n - 1);
    // Half on the whole range, half near 0 where softmax weights live.
    x[i] = static_cast<T>(i % 2 ? contract.lowest + u * (contract.highest - contract.lowest)
                                : 4 * (u - 0.5));
  }
  x[0] = contract.lowest;
  x[1] = contract.highest;
  on_every_target([&](const std::string& target) {
    exp_array(std::span<const T>(x), std::span<T>(y));
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, ulp_error(y[i], x[i]));
    EXPECT_LE(worst, contract.max_ulp) << target;
    EXPECT_GT(worst, 0.5) << target << ": a contract this loose should be tightened";
    std::printf("exp %s on %s: worst %.3f ulp\n", sizeof(T) == 4 ? "float" : "double",
                target.c_str(), worst);
  });
}

TYPED_TEST(Exponential, EdgePoints) {
  using T = TypeParam;
  constexpr T inf = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x = {0, -T(0), -inf, inf, nan, -nan, T(1000), T(-1000), T(1e30), T(-1e30)};
  on_every_target([&](const std::string& target) {
    std::vector<T> y(x.size());
    exp_array(std::span<const T>(x), std::span<T>(y));
    EXPECT_EQ(y[0], 1) << target;
    EXPECT_EQ(y[1], 1) << target;
    EXPECT_EQ(y[2], 0) << target;
    EXPECT_EQ(y[3], inf) << target;
    EXPECT_TRUE(std::isnan(y[4])) << target;
    EXPECT_TRUE(std::isnan(y[5])) << target;
    EXPECT_EQ(y[6], inf) << target;
    EXPECT_EQ(y[7], 0) << target;
    EXPECT_EQ(y[8], inf) << target;
    EXPECT_EQ(y[9], 0) << target;
  });
}

TYPED_TEST(Exponential, EveryLengthAndAlignment) {
  using T = TypeParam;
  on_every_target([&](const std::string& target) {
    for (std::size_t n = 0; n <= 33; ++n) {
      for (std::size_t offset = 0; offset < 3; ++offset) {
        std::vector<T> x(n + offset), y(n + offset + 1, T(-7));
        for (std::size_t i = 0; i < n; ++i) x[offset + i] = static_cast<T>(0.25 * i - 3);
        exp_array(std::span<const T>(x).subspan(offset), std::span<T>(y).subspan(offset, n));
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_LE(ulp_error(y[offset + i], x[offset + i]), 1.5) << target << " n=" << n;
        }
        ASSERT_EQ(y[offset + n], T(-7)) << target << ": wrote past the end, n=" << n;
      }
    }
  });
}

struct Concatenate {
  void operator()(std::string& left, const std::string& right) const {
    left = "(" + left + right + ")";
  }
};

TEST(TreeFold, ShapeDependsOnTheCountOnly) {
  TreeFold<std::string, Concatenate> fold("-");
  EXPECT_EQ(fold.total(), "-");
  const std::vector<std::string> shapes = {"a",
                                           "(ab)",
                                           "((ab)c)",
                                           "((ab)(cd))",
                                           "(((ab)(cd))e)",
                                           "(((ab)(cd))(ef))",
                                           "(((ab)(cd))((ef)g))"};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    fold.push(std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(fold.total(), shapes[i]);
  }
  EXPECT_EQ(fold.count(), shapes.size());
}

}  // namespace
}  // namespace esscher::simd
