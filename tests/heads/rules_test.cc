// Heads with rules against softmax written out key by key, and the layouts of files.
#include "esscher/heads/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "esscher/base/error.h"
#include "esscher/estimate/quantile.h"
#include "esscher/heads/diagnose.h"
#include "esscher/heads/load.h"
#include "esscher/io/npy.h"
#include "esscher/io/safetensors.h"
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

// Files in every layout say the same.
class Layouts : public ::testing::Test {
 protected:
  static constexpr Index kB = 2, kH = 4, kG = 2, kN = 6, kD = 3;

  // Number (b,h,n,d) of a tensor, stored in the order of the letters of `layout`.
  static Array stored(const std::string& layout, Index heads, double start, DType dtype) {
    std::map<char, Index> extent = {{'b', kB}, {'h', heads}, {'n', kN}, {'d', kD}};
    std::vector<std::int64_t> shape;
    for (const char c : layout) shape.push_back(extent[c]);
    const auto total = static_cast<std::size_t>(kB * heads * kN * kD);
    std::vector<float> values(total);
    for (Index b = 0; b < kB; ++b) {
      for (Index h = 0; h < heads; ++h) {
        for (Index n = 0; n < kN; ++n) {
          for (Index d = 0; d < kD; ++d) {
            std::map<char, Index> at = {{'b', b}, {'h', h}, {'n', n}, {'d', d}};
            Index place = 0;
            for (const char c : layout) place = place * extent[c] + at[c];
            values[static_cast<std::size_t>(place)] = static_cast<float>(
                start + static_cast<double>(((b * heads + h) * kN + n) * kD + d));
          }
        }
      }
    }
    Array out = array_of(values, shape);
    if (dtype == DType::bf16) {  // the upper halves of the floats
      auto bytes = std::make_shared<std::vector<std::byte>>();
      for (std::size_t i = 0; i < total; ++i) {
        bytes->push_back(out.data[4 * i + 2]);
        bytes->push_back(out.data[4 * i + 3]);
      }
      out.dtype = DType::bf16;
      out.data = *bytes;
      out.owner = bytes;
    }
    return out;
  }

  static std::filesystem::path file(const std::string& layout, DType dtype, bool named) {
    const auto path = std::filesystem::path(::testing::TempDir()) /
                      (layout + std::string(name(dtype)) + (named ? "n" : "u") + ".safetensors");
    const std::map<std::string, Array> tensors = {{"x.Q", stored(layout, kH, 1, dtype)},
                                                  {"x.K", stored(layout, kG, 2, dtype)},
                                                  {"x.V", stored(layout, kG, 3, dtype)}};
    write_file(path,
               encode_safetensors(tensors, named ? Metadata{{"layout", layout}} : Metadata{}));
    return path;
  }
};

TEST_F(Layouts, BatchesHeadsAndGroupsComeOutTheSame) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const char* layout : {"bhnd", "bnhd"}) {
      const std::vector<Head> heads = load_heads(file(layout, dtype, true));
      ASSERT_EQ(heads.size(), 8u);
      EXPECT_EQ(heads[5].name, "x.1.1");
      for (Index b = 0; b < kB; ++b) {
        for (Index h = 0; h < kH; ++h) {
          const Head& head = heads[static_cast<std::size_t>(b * kH + h)];
          ASSERT_EQ(head.n, kN);
          ASSERT_EQ(head.dk, kD);
          for (Index n = 0; n < kN; ++n) {
            const double q = 1.0 + static_cast<double>(((b * kH + h) * kN + n) * kD + 2);
            const double k = 2.0 + static_cast<double>(((b * kG + h / 2) * kN + n) * kD + 2);
            EXPECT_EQ(head.Q(n, 1)(0, 2), q) << layout;
            EXPECT_EQ(head.K(n, 1)(0, 2), k) << layout;
          }
        }
      }
    }
  }
}

TEST_F(Layouts, FourDimensionsAreNeverGuessed) {
  const auto path = file("bnhd", DType::f32, false);
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.Q: shape [2,6,4,3], expected a named layout: bhnd for [b,h,n,d], "
                        "bnhd for [b,n,h,d]"));
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::bnhd}).size(), 8u);
  // Read the other way round, there are more queries than keys.
  EXPECT_THAT(
      testing::message_of<FileError>(
          [&] { return load_heads(path, {.causal = true, .layout = HeadLayout::bhnd}); }),
      HasSubstr("Q [2,6,4,3], K [2,6,2,3], V [2,6,2,3] in the layout bhnd: 4 queries of a causal "
                "head, expected at most its 2 keys"));
  EXPECT_THAT(
      testing::message_of<FileError>([&] { return load_heads(path, {.layout = HeadLayout::hnd}); }),
      HasSubstr("shape [2,6,4,3], expected [n,d] or stacked heads in the layout hnd"));
}

TEST_F(Layouts, MoreHeadsThanTokensMustBeMeant) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "three.safetensors";
  const Array x = array_of(std::vector<float>(60, 1.0f), {10, 2, 3});
  write_file(path, encode_safetensors({{"Q", x}, {"K", x}, {"V", x}}));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("shape [10,2,3], expected a named layout: hnd for 10 heads of 2 tokens, "
                        "nhd for 2 heads of 10 tokens"));
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::nhd}).size(), 2u);
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::hnd}).size(), 10u);
}

TEST_F(Layouts, RulesComeFromTheFile) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "rules.safetensors";
  const Array x = array_of(std::vector<float>(24, 1.0f), {2, 4, 3});
  Array mask = array_of(std::vector<float>(4, 1.0f), {4});
  const auto flags = std::make_shared<std::vector<std::byte>>(4, std::byte{1});
  (*flags)[3] = std::byte{0};
  mask.dtype = DType::boolean;
  mask.data = *flags;
  mask.owner = flags;
  const std::map<std::string, Array> tensors = {
      {"x.Q", x},
      {"x.K", x},
      {"x.V", x},
      {"x.mask", mask},
      {"x.causal", array_of(std::vector<float>{1.0f}, {1})},
      {"x.sliding", array_of(std::vector<float>{3.0f}, {1})},
      {"x.sink", array_of(std::vector<float>{0.5f, -2.0f}, {2})},
      {"x.softcap", array_of(std::vector<float>{50.0f}, {1})}};
  write_file(path, encode_safetensors(tensors));
  const std::vector<Head> heads = load_heads(path);
  EXPECT_EQ(heads[1].rules.window, 3);
  EXPECT_EQ(heads[1].rules.sink, -2.0);
  EXPECT_EQ(heads[0].rules.softcap, 50.0);
  EXPECT_EQ(heads[0].rules.bias(2)(3), kHidden);
  EXPECT_EQ(heads[0].rules.bias(2)(0), 0.0);
  auto rows = tensors;
  rows["x.mask"] = array_of(std::vector<float>(20, 0.0f), {5, 4});
  write_file(path, encode_safetensors(rows));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.0.mask: shape [5,4], expected 1 or 4 queries"));
  auto wrong = tensors;
  wrong["x.mask"] = array_of(std::vector<float>(15, 0.0f), {5, 3});
  write_file(path, encode_safetensors(wrong));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.0.mask: shape [5,3], expected the 4 keys last"));
}

}  // namespace
}  // namespace esscher
