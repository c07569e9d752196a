#include "esscher/prompt/group_integrals.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/sphere.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/universal/free_energy.h"
#include "esscher/universal/needle.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

// One token of an enumerated prompt.
struct Atom {
  double log_weight;
  Vector x;
};

struct Truth {
  Vector mean;
  double square = 0, weights2 = 0, log_total = 0, entropy = 0;
  Vector weights;  // token by token
};

void add_prompt(const std::vector<Atom>& prompt, double probability, Truth& out) {
  double Z = 0;
  for (const Atom& atom : prompt) Z += std::exp(atom.log_weight);
  Vector mean = Vector::Zero(out.mean.size());
  for (std::size_t l = 0; l < prompt.size(); ++l) {
    const double w = std::exp(prompt[l].log_weight) / Z;
    mean += w * prompt[l].x;
    out.weights2 += probability * w * w;
    if (w > 0) out.entropy -= probability * w * std::log(w);
    out.weights[static_cast<Index>(l)] += probability * w;
  }
  out.mean += probability * mean;
  out.square += probability * mean.squaredNorm();
  out.log_total += probability * std::log(Z);
}

// All prompts of tokens that take the atoms of `laws[l]` with log-weights added.
Truth enumerate(const std::vector<ScoreLaw>& laws, const std::vector<double>& biases,
                const std::vector<Atom>& given) {
  const Index dv = laws.front().width();
  Truth out{.mean = Vector::Zero(dv),
            .weights = Vector::Zero(static_cast<Index>(laws.size() + given.size()))};
  std::vector<Atom> prompt(laws.size());
  prompt.insert(prompt.end(), given.begin(), given.end());
  const std::function<void(std::size_t, double)> choose = [&](std::size_t l, double probability) {
    if (l == laws.size()) return add_prompt(prompt, probability, out);
    for (Index i = 0; i < laws[l].size(); ++i) {
      prompt[l] = {laws[l].s[i] + biases[l], laws[l].first.row(i).transpose() / laws[l].p[i]};
      choose(l + 1, probability * laws[l].p[i]);
    }
  };
  choose(0, 1);
  return out;
}

void expect_truth(const GroupMoments& got, const Truth& want) {
  EXPECT_TRUE(close(got.mean, want.mean, 1e-12, 1));
  EXPECT_TRUE(close(got.square, want.square, 1e-12, 1));
  EXPECT_TRUE(close(got.weights2, want.weights2, 1e-12));
  EXPECT_TRUE(close(got.log_total, want.log_total, 1e-12, 1));
  EXPECT_TRUE(close(got.entropy, want.entropy, 1e-11, 1));
  EXPECT_LT(got.error, 1e-12);
}

ScoreLaw law_of(const AnyMeasure& mu, double scale) {
  const Vector a = random_matrix(Stream(1), mu.dim(), 1, scale);
  return score_law(mu, {a, random_matrix(Stream(2), 2, mu.dim()), Vector{{0.3, -0.2}}});
}

std::vector<AnyMeasure> discrete_measures() {
  return {Rademacher(2), Categorical(Vector{{0.2, 0.5, 0.3}}),
          Empirical(random_matrix(Stream(3), 3, 2))};
}

TEST(GroupIntegrals, TwoAndThreeTokensByEnumeration) {
  for (const AnyMeasure& mu : discrete_measures()) {
    for (const double scale : {0.01, 1.0, 8.0}) {
      const ScoreLaw law = law_of(mu, scale);
      GroupIntegrals integrals({law}, 2);
      for (const std::int64_t L : {1, 2, 3}) {
        const auto n = static_cast<std::size_t>(L);
        const Truth want = enumerate(std::vector<ScoreLaw>(n, law), std::vector<double>(n, 0), {});
        const GroupMoments got = integrals.at({{.count = L}}, {});
        expect_truth(got, want);
        EXPECT_TRUE(close(got.weights[0], 1, 1e-12));
      }
    }
  }
}

TEST(GroupIntegrals, TwoLawsWithBiasesAndGivenTokensByEnumeration) {
  const ScoreLaw one = law_of(Rademacher(2), 1.0), two = law_of(Categorical(Vector{{0.7, 0.3}}), 2);
  const std::vector<Atom> given = {{1.5, Vector{{2.0, 1.0}}}, {-3.0, Vector{{0.0, -1.0}}}};
  const GivenTokens tokens{Vector{{1.5, -3.0}}, Matrix{{2.0, 1.0}, {0.0, -1.0}}};
  const Truth want = enumerate({one, one, two}, {0.5, 0.5, -1.0}, given);
  GroupIntegrals integrals({one, two}, 2);
  const GroupMoments got = integrals.at(
      {{.law = 0, .bias = 0.5, .count = 2}, {.law = 1, .bias = -1.0, .count = 1}}, tokens);
  expect_truth(got, want);
  EXPECT_TRUE(close(got.weights[0], want.weights[0] + want.weights[1], 1e-12));
  EXPECT_TRUE(close(got.weights[1], want.weights[2], 1e-12));
  EXPECT_TRUE(close(got.given, want.weights.tail(2), 1e-12));
}

TEST(GroupIntegrals, SlopesByEnumeration) {
  const ScoreLaw law = law_of(Rademacher(2), 1.0);
  for (const double slope : {0.05, 0.3, 2.0}) {
    const Truth want = enumerate({law, law, law}, {0.2 - slope, 0.2 - 2 * slope, 0.2 - 3 * slope},
                                 {{0.4, Vector{{1.0, 1.0}}}});
    GroupIntegrals integrals({law}, 2);
    const GroupMoments got = integrals.at({{.bias = 0.2, .count = 3, .from = 1}},
                                          {Vector{{0.4}}, Matrix{{1.0, 1.0}}}, slope);
    expect_truth(got, want);
  }
}

// Many tokens: a slope in one piece and token by token.
TEST(GroupIntegrals, SlopesAreGroupsOfOneToken) {
  const ScoreLaw law = law_of(Sphere(3, 1), 1.2);
  GroupIntegrals integrals({law}, 2);
  for (const double slope : {0.03, 0.25}) {
    std::vector<GroupSegment> single;
    for (int l = 0; l < 40; ++l) single.push_back({.bias = -slope * l, .count = 1});
    const GroupMoments want = integrals.at(single, {});
    const GroupMoments got = integrals.at({{.count = 40}}, {}, slope);
    EXPECT_TRUE(close(got.mean, want.mean, 1e-11, 1e-3));
    EXPECT_TRUE(close(got.square, want.square, 1e-11));
    EXPECT_TRUE(close(got.weights2, want.weights2, 1e-11));
    EXPECT_TRUE(close(got.log_total, want.log_total, 1e-11));
  }
}

// E sum omega^2 at tau = 1 and slope -log 0.8, known from simulation and another quadrature.
TEST(GroupIntegrals, AlibiCheckValue) {
  const ScoreLaw law = score_law(Gaussian(Matrix::Identity(1, 1)),
                                 {Vector::Ones(1), Matrix::Ones(1, 1), Vector::Zero(1)});
  GroupIntegrals integrals({law}, 1);
  const GroupMoments got = integrals.at({{.count = 1000000}}, {}, -std::log(0.8));
  EXPECT_NEAR(got.weights2, 0.188038, 5e-7);
}

TEST(GroupIntegrals, GaussiansAgreeWithTheirOwnKernel) {
  const Matrix G = testing::random_psd(Stream(5), 3), V = random_matrix(Stream(6), 2, 3);
  const Vector m = random_matrix(Stream(7), 3, 1);
  const Attention attention = Attention::from_uv(Matrix::Identity(3, 3), V);
  for (const double scale : {1e-6, 0.1, 1.0, 3.0, 10.0}) {
    const Vector a = random_matrix(Stream(8), 3, 1, scale);
    const Gaussian mu(m, G);
    GroupIntegrals integrals({score_law(mu, {a, V, V * mu.tilted_mean(a)})}, 2);
    for (const std::int64_t L : {1L, 2L, 10L, 1000L, 1000000000L, 1000000000000000L}) {
      const GroupMoments got = integrals.at({{.count = L}}, {});
      const ErrorParts want = error_parts(Metric::output, GaussianLaw{m, G}, attention, a, L);
      const double H = 1 / effective_sample_size(GaussianLaw{m, G}, attention, a, L);
      EXPECT_TRUE(close(got.square, want.total(), 1e-10)) << scale << " " << L;
      EXPECT_TRUE(close(got.mean.squaredNorm(), want.bias2, 2e-9 + 2e-15 / scale))
          << scale << " " << L;
      EXPECT_TRUE(close(got.weights2, H, 1e-10)) << scale << " " << L;
      const double tau = score_tau({m, G}, a);
      EXPECT_TRUE(
          close(got.log_total, a.dot(m) + free_energy(static_cast<double>(L), tau).F, 1e-10, 1));
      const double c = a.dot(m) + 2;
      const GroupMoments needle =
          integrals.at({{.count = L}}, {Vector::Constant(1, c), Matrix::Zero(1, 2)});
      EXPECT_TRUE(
          close(needle.given[0], needle_weight(static_cast<double>(L), tau, 2), 1e-9, 1e-6));
    }
  }
}

TEST(GroupIntegrals, SplitAndReorderedGroupsAreOnePrompt) {
  const ScoreLaw sphere = law_of(Sphere(4, 2), 1.0),
                 gauss = law_of(Gaussian(Matrix::Identity(2, 2)), 1.0);
  GroupIntegrals integrals({sphere, gauss}, 2);
  const GroupMoments whole =
      integrals.at({{.law = 0, .count = 70}, {.law = 1, .bias = 1, .count = 30}}, {});
  const GroupMoments parts =
      integrals.at({{.law = 1, .bias = 1, .count = 11},
                    {.law = 0, .count = 70},
                    {.law = 1, .bias = 1, .count = 19},
                    {.law = 0, .bias = -std::numeric_limits<double>::infinity(), .count = 5},
                    {.law = 0, .count = 0}},
                   {});
  EXPECT_TRUE(close(parts.mean, whole.mean, 1e-13));
  EXPECT_TRUE(close(parts.square, whole.square, 1e-13));
  EXPECT_TRUE(close(parts.weights[0] + parts.weights[2], whole.weights[1], 1e-13));
  EXPECT_EQ(parts.weights[3], 0);
  EXPECT_EQ(parts.weights[4], 0);
}

TEST(GroupIntegrals, SinksFromNothingToEverything) {
  const ScoreLaw law = law_of(Uniform(3), 1.0);
  GroupIntegrals integrals({law}, 2);
  const double infinity = std::numeric_limits<double>::infinity();
  const GroupMoments plain = integrals.at({{.count = 9}}, {});
  const auto with_sink = [&](double logit) {
    return integrals.at({{.count = 9}}, {Vector::Constant(1, logit), Matrix::Ones(1, 2)});
  };
  EXPECT_TRUE(close(with_sink(-infinity).mean, plain.mean, 1e-14));
  EXPECT_TRUE(close(with_sink(-1e4).square, plain.square, 1e-14));
  EXPECT_EQ(with_sink(-infinity).given[0], 0);
  const GroupMoments all = with_sink(1e4);
  EXPECT_TRUE(close(all.given[0], 1, 1e-12));
  EXPECT_TRUE(close(all.square, 2, 1e-12));
  EXPECT_TRUE(close(all.log_total, 1e4, 1e-12));
  EXPECT_THROW((void)integrals.at({}, {}), ArgumentError);
  EXPECT_THROW((void)integrals.at({{.count = 9}}, {}, 1e-5), CapabilityError);
}

}  // namespace
}  // namespace esscher
