// Heads with rules against softmax written out key by key.
#include "esscher/heads/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/kept_keys.h"
#include "esscher/heads/tail.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;
using testing::random_matrix;

constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Arrays {
  Matrix Q, K, V;
};

Arrays some_arrays(Index m, Index n) {
  return {.Q = random_matrix(Stream(61, 1), m, 4),
          .K = random_matrix(Stream(61, 2), n, 4).array() + 0.3,
          .V = random_matrix(Stream(61, 3), n, 3).array() + 0.2};
}

Head head_of(const Arrays& x, bool causal) { return make_head("h", x.Q, x.K, x.V, 0.6, causal); }

// What a rule says of query i and key l: the score that enters the softmax, or -inf.
using Score = std::function<double(Index i, Index l, double raw)>;

struct Figures {
  double lin, lin_c, tau2, ess;
};

// Medians over queries of the Gaussian limit's errors, with loops over keys. A sink has value 0.
Figures brute_force(const Head& head, const Arrays& x, const Score& score,
                    std::optional<double> sink = {}) {
  std::vector<double> lin, lin_c, tau2, ess;
  for (const Index i : default_queries(head)) {
    std::vector<Index> seen;
    std::vector<double> s, raw;
    for (Index l = 0; l < x.K.rows(); ++l) {
      const double plain = 0.6 * x.Q.row(i).dot(x.K.row(l));
      const double one = score(i, l, plain);
      if (one == kHidden) continue;
      seen.push_back(l);
      s.push_back(one);
      raw.push_back(plain);
    }
    const auto n = static_cast<double>(seen.size());
    double mass = 0, squares = 0, mean_s = 0, mean_raw = 0;
    Vector T = Vector::Zero(3), mean = Vector::Zero(3);
    for (std::size_t j = 0; j < seen.size(); ++j) {
      mass += std::exp(s[j]);
      squares += std::exp(2 * s[j]);
      mean_s += s[j] / n;
      mean_raw += raw[j] / n;
      T += std::exp(s[j]) * x.V.row(seen[j]).transpose();
      mean += x.V.row(seen[j]).transpose() / n;
    }
    double variance = 0, raw_variance = 0;
    Vector linear = mean;
    for (std::size_t j = 0; j < seen.size(); ++j) {
      variance += (s[j] - mean_s) * (s[j] - mean_s) / n;
      raw_variance += (raw[j] - mean_raw) * (raw[j] - mean_raw) / n;
      linear += (raw[j] - mean_raw) * (x.V.row(seen[j]).transpose() - mean) / n;
    }
    const double extra = sink ? std::exp(*sink) : 0.0;
    const double share = mass / (mass + extra);
    const double tail_mass = n * std::exp(mean_raw + raw_variance / 2);
    T /= mass + extra;
    linear *= tail_mass / (tail_mass + extra);
    lin.push_back((T - linear).norm() / T.norm());
    lin_c.push_back((T - linear).norm() / (T - share * mean).norm());
    tau2.push_back(variance);
    ess.push_back(mass * mass / squares);
  }
  return {median(lin), median(lin_c), median(tau2), median(ess)};
}

void expect_figures(const Head& head, const Figures& want) {
  HeadOptions options;
  options.components = {2};
  options.windows = {4, 1000};
  const HeadDiagnosis got = diagnose(head, options);
  EXPECT_TRUE(testing::close(got.gaussian.lin, want.lin, 1e-9));
  EXPECT_TRUE(testing::close(got.gaussian.lin_c, want.lin_c, 1e-9));
  EXPECT_TRUE(testing::close(got.tau2, want.tau2, 1e-9));
  EXPECT_TRUE(testing::close(got.ess, want.ess, 1e-9));
  EXPECT_FALSE(got.verdict.empty());
}

TEST(HeadRules, DecodedQueriesBelongToTheLastKeys) {
  const Arrays x = some_arrays(9, 60);
  const Head head = head_of(x, true);
  EXPECT_EQ(head.prompt_end(0), 52);
  EXPECT_EQ(head.prompt_end(8), 60);
  EXPECT_EQ(default_queries(head).size(), 9u);
  expect_figures(head, brute_force(head, x, [](Index i, Index l, double raw) {
                   return l <= 51 + i ? raw : kHidden;
                 }));
}

TEST(HeadRules, CrossAttentionHasMoreQueriesThanKeys) {
  const Arrays x = some_arrays(80, 30);
  const Head head = head_of(x, false);
  expect_figures(head, brute_force(head, x, [](Index, Index, double raw) { return raw; }));
}

TEST(HeadRules, ASlidingWindowEndsAtItsQuery) {
  for (const Index m : {Index{60}, Index{12}}) {
    const Arrays x = some_arrays(m, 60);
    Head head = head_of(x, true);
    head.rules.window = 17;
    expect_figures(head, brute_force(head, x, [m](Index i, Index l, double raw) {
                     const Index p = 60 - m + i;
                     return l <= p && l > p - 17 ? raw : kHidden;
                   }));
    // It is compared with a prompt of what a query sees.
    EXPECT_THAT(diagnose(head).reason, HasSubstr("17 Gaussian keys"));
  }
}

TEST(HeadRules, ASoftcapBendsScores) {
  const Arrays x = some_arrays(20, 60);
  Head head = head_of(x, false);
  head.rules.softcap = 0.8;
  expect_figures(head, brute_force(head, x, [](Index, Index, double raw) {
                   return 0.8 * std::tanh(raw / 0.8);
                 }));
}

TEST(HeadRules, ASinkLogitIsAKeyOfValueZero) {
  const Arrays x = some_arrays(20, 60);
  Head head = head_of(x, false);
  head.rules.sink = 3.5;
  expect_figures(head, brute_force(
                           head, x, [](Index, Index, double raw) { return raw; }, 3.5));
}

TEST(HeadRules, MasksAddAndHide) {
  const Arrays x = some_arrays(20, 60);
  Head head = head_of(x, false);
  const auto bias = [](Index i, Index l) {
    if (l >= 55 || (i + l) % 7 == 0) return kHidden;  // padding, and holes of each query's own
    return 0.1 * static_cast<double>(l % 5);
  };
  head.rules.bias = [bias](Index i) {
    Vector out(60);
    for (Index l = 0; l < 60; ++l) out(l) = bias(i, l);
    return out;
  };
  expect_figures(
      head, brute_force(head, x, [&](Index i, Index l, double raw) { return raw + bias(i, l); }));
}

// The score -slope (p - l) of ALiBi, with one more coordinate of the keys.
TEST(HeadRules, SlopesOfPositionsAreOneMoreCoordinate) {
  const Arrays x = some_arrays(60, 60);
  const Head plain = head_of(x, true);
  const Head head = with_alibi(plain, 0.07);
  EXPECT_EQ(head.dk, 5);
  HeadOptions options;
  options.components = {};
  const HeadDiagnosis got = diagnose(head, options);
  std::vector<double> tau2, ess;
  for (const Index i : default_queries(plain)) {
    double mass = 0, squares = 0, s1 = 0, s2 = 0;
    for (Index l = 0; l <= i; ++l) {
      const double s = 0.6 * x.Q.row(i).dot(x.K.row(l)) - 0.07 * static_cast<double>(i - l);
      mass += std::exp(s);
      squares += std::exp(2 * s);
      s1 += s / static_cast<double>(i + 1);
      s2 += s * s / static_cast<double>(i + 1);
    }
    ess.push_back(mass * mass / squares);
    tau2.push_back(s2 - s1 * s1);
  }
  EXPECT_TRUE(testing::close(got.ess, median(ess), 1e-9));
  EXPECT_TRUE(testing::close(got.tau2, median(tau2), 1e-9));
}

// Rules that change nothing give what no rules give, by the other walk.
TEST(HeadRules, RulesWithoutEffectChangeNothing) {
  const Arrays x = some_arrays(90, 90);
  const Head plain = head_of(x, true);
  Head ruled = plain;
  ruled.rules.window = 90;
  HeadOptions options;
  options.components = {2, 4};
  options.windows = {8, 16};
  const HeadDiagnosis want = diagnose(plain, options);
  const HeadDiagnosis got = diagnose(ruled, options);
  EXPECT_TRUE(testing::close(got.gaussian.lin_c, want.gaussian.lin_c, 1e-9));
  EXPECT_TRUE(testing::close(got.gaussian_split.lin_c, want.gaussian_split.lin_c, 1e-9));
  EXPECT_TRUE(testing::close(got.control_lin_c, want.control_lin_c, 1e-9));
  EXPECT_TRUE(testing::close(got.uncentred.lin_c, want.uncentred.lin_c, 1e-9));
  EXPECT_TRUE(testing::close(got.score_histogram, want.score_histogram, 1e-12));
  ASSERT_EQ(got.mixtures.size(), want.mixtures.size());
  for (std::size_t i = 0; i < got.mixtures.size(); ++i) {
    EXPECT_TRUE(
        testing::close(got.mixtures[i].in_sample.lin_c, want.mixtures[i].in_sample.lin_c, 1e-8));
    EXPECT_TRUE(testing::close(*got.mixtures[i].split_lin_c, *want.mixtures[i].split_lin_c, 1e-8));
    EXPECT_TRUE(
        testing::close(*got.mixtures[i].control_lin_c, *want.mixtures[i].control_lin_c, 1e-8));
  }
  int compared = 0;
  for (const WindowRow& row : *got.window) {
    for (const WindowRow& other : *want.window) {
      if (other.w != row.w || other.tail != row.tail) continue;
      EXPECT_TRUE(testing::close(row.lin_c, other.lin_c, 1e-8)) << row.w << name(row.tail);
      EXPECT_EQ(row.state, other.state);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 10);
}

// A window as wide as the sliding one is exact, with the rules in its scores.
TEST(HeadRules, AWindowOfAllSeenKeysIsExact) {
  const Arrays x = some_arrays(90, 90);
  Head head = head_of(x, true);
  head.rules = {.window = 12, .softcap = 1.5, .sink = 0.4};
  HeadOptions options;
  options.components = {};
  options.windows = {6, 12};
  const HeadDiagnosis got = diagnose(head, options);
  for (const WindowRow& row : *got.window) {
    const double least = row.w == 12 ? 0 : 1e-3;
    const double most = row.w == 12 ? 1e-12 : 10;
    EXPECT_GE(row.lin, least) << name(row.tail);
    EXPECT_LE(row.lin, most) << name(row.tail);
  }
}

// Median over queries of |T - T_w| / |T| for the last w of the keys of a sliding window, the others
// dropped or behind a Gaussian tail, with loops over keys.
double windowed_error(const Arrays& x, const Head& head, Index w, Tail tail) {
  std::vector<double> out;
  for (const Index i : default_queries(head)) {
    const Index end = head.prompt_end(i), begin = head.prompt_begin(i), cut = end - w;
    const Vector a = 0.6 * x.Q.row(i).transpose();
    const auto exact = [&](Index from) {
      TailValue sum{.log_mass = 0, .value = Vector::Zero(3)};
      double mass = 0;
      for (Index l = from; l < end; ++l) {
        mass += std::exp(x.K.row(l).dot(a));
        sum.value += std::exp(x.K.row(l).dot(a)) * x.V.row(l).transpose();
      }
      return TailValue{.log_mass = std::log(mass), .value = sum.value / mass};
    };
    const Matrix k = x.K.middleRows(begin, cut - begin), v = x.V.middleRows(begin, cut - begin);
    const Vector s = k * a;
    const Vector centred = s.array() - s.mean();
    const auto count = static_cast<double>(s.size());
    const Vector linear = v.transpose() * centred / count;
    TailValue got = exact(cut);
    if (tail == Tail::gaussian) {
      got = merge(got, {.log_mass = std::log(count) + s.mean() + centred.squaredNorm() / count / 2,
                        .value = v.colwise().mean().transpose() + linear});
    }
    const Vector T = exact(begin).value;
    out.push_back((T - got.value).norm() / T.norm());
  }
  return median(out);
}

// Costs are those of the keys that a query sees. Moments of a sliding window are freed of keys again,
// and need them for it.
TEST(HeadRules, ASlidingWindowKeepsItsOwnKeysOnly) {
  const Arrays x = some_arrays(60, 60);
  Head head = head_of(x, true);
  head.rules.window = 17;
  HeadOptions options;
  options.components = {2};
  options.windows = {4, 17, 32};
  const HeadDiagnosis got = diagnose(head, options);
  const Index whole = 17 * 7;
  EXPECT_EQ(got.softmax_numbers(), whole);
  const auto cost = [&](std::size_t i) {
    return std::pair(got.cost[i].state, got.cost[i].multiply_adds);
  };
  EXPECT_EQ(cost(0), std::pair(whole, whole));                         // softmax
  EXPECT_EQ(cost(1), std::pair(Index{17 * 3 + 3}, Index{0}));          // mean
  EXPECT_EQ(cost(2), std::pair(whole + 12, Index{12}));                // uncentred
  EXPECT_EQ(cost(3), std::pair(whole + 15, Index{12}));                // gaussian
  EXPECT_EQ(cost(4), std::pair(whole + 2 * (1 + 29), Index{2 * 29}));  // mixture
  ASSERT_EQ(got.window->size(), 10u) << "a window of 32 keys is longer than the sliding one";
  for (const WindowRow& row : *got.window) {
    const bool short_one = row.w == 4;
    const Index tail = short_one ? tail_state(row.tail, 4, 3) : 0;
    const Index pairs = short_one && row.tail == Tail::none ? 4 : 17;
    EXPECT_EQ(row.state, pairs * 7 + tail) << row.w << name(row.tail);
    EXPECT_EQ(row.multiply_adds, row.w * 7 + (short_one ? tail_multiply_adds(row.tail, 4, 3) : 0));
    if (row.tail != Tail::none && row.tail != Tail::gaussian) continue;
    if (short_one) {
      EXPECT_TRUE(testing::close(row.lin, windowed_error(x, head, 4, row.tail), 1e-9));
    } else {
      EXPECT_LT(row.lin, 1e-12);
    }
  }
  EXPECT_THAT(*got.window_verdict, HasSubstr("28 numbers instead of 17(dₖ + dᵥ) = 119"));
}

TEST(HeadRules, MasksKeepWhatTheyShow) {
  const Arrays x = some_arrays(20, 60);
  Head head = head_of(x, false);
  EXPECT_EQ(kept_keys(head).count, 60);
  const auto masked = [&](const std::function<bool(Index, Index)>& hidden) {
    head.rules.bias = [hidden](Index i) {
      Vector out(60);
      for (Index l = 0; l < 60; ++l) out(l) = hidden(i, l) ? kHidden : 0.5;
      return out;
    };
    return kept_keys(head);
  };
  const KeptKeys padding = masked([](Index, Index l) { return l < 5; });
  EXPECT_EQ(padding.count, 55);
  EXPECT_FALSE(padding.forgotten);
  HeadOptions options;
  options.components = {};
  options.windows = {8};
  EXPECT_EQ(diagnose(head, options).softmax_numbers(), 55 * 7);
  EXPECT_EQ(diagnose(head, options).window->back().state, 8 * 7 + tail_state(Tail::finite, 4, 3));
  const KeptKeys blind = masked([](Index i, Index l) { return l < 5 || i == 12; });
  EXPECT_EQ(blind.count, 55);
  EXPECT_FALSE(blind.forgotten);
  const KeptKeys growing = masked([](Index i, Index l) { return l > 30 + i; });
  EXPECT_EQ(growing.count, 50);
  EXPECT_FALSE(growing.forgotten);
  const KeptKeys halves = masked([](Index i, Index l) { return (i < 10) != (l < 30); });
  EXPECT_EQ(halves.count, 60);
  EXPECT_TRUE(halves.forgotten);
  EXPECT_EQ(diagnose(head, options).window->front().state, 60 * 7);
}

TEST(HeadRules, QueriesThatSeeNothingAreLeftOutOrNamed) {
  const Arrays x = some_arrays(20, 30);
  Head head = head_of(x, false);
  head.rules.bias = [](Index i) { return Vector(Vector::Constant(30, i < 5 ? kHidden : 0.0)); };
  EXPECT_EQ(default_queries(head).front(), 5);
  HeadOptions options;
  options.components = {};
  EXPECT_EQ(diagnose(head, options).queries, 15);
  options.queries = {2};
  EXPECT_THAT(testing::message_of<ArgumentError>([&] { return diagnose(head, options); }),
              HasSubstr("head h: query is 2, expected one that sees a key"));
}

TEST(HeadRules, RulesThatMeanNothingAreErrors) {
  const Arrays x = some_arrays(20, 30);
  Head head = head_of(x, false);
  head.rules.window = 5;
  EXPECT_THAT(testing::message_of<ArgumentError>([&] { return diagnose(head); }),
              HasSubstr("sliding window is 5"));
  head.rules = {.softcap = -1};
  EXPECT_THAT(testing::message_of<ArgumentError>([&] { return diagnose(head); }),
              HasSubstr("softcap is -1"));
  head.rules = {.sink = 1.0};
  EXPECT_THAT(testing::message_of<ArgumentError>([&] { return with_alibi(head, 0.1).n; }),
              HasSubstr("no softcap and no sink logit"));
}

}  // namespace
}  // namespace esscher
