#include "esscher/risk/layer_error.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/exact_prompt.h"
#include "esscher/universal/laplace_jets.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using testing::gradient_check;
using testing::random_matrix;
using testing::random_psd;

SharedMixture some_mixture(Index K, Index D, double spread, const Stream& stream) {
  SharedMixture law{Vector::LinSpaced(K, 1, 2), random_matrix(stream.split(0), K, D, spread),
                    random_psd(stream.split(1), D)};
  law.weights /= law.weights.sum();
  return law;
}

Layer some_layer(const std::vector<ModelKind>& kinds, Index D, Index m, double size,
                 const Stream& stream) {
  Layer out{random_matrix(stream.split(0), m, D, 0.5), {}};
  for (std::size_t h = 0; h < kinds.size(); ++h) {
    const Stream own = stream.split(1 + h);
    out.heads.push_back({kinds[h], random_matrix(own.split(0), D, D, size),
                         random_matrix(own.split(1), m, D, 0.7)});
  }
  return out;
}

// The mean over drawn prompts, in code of its own: softmax and linear heads token by token.
double error_on_prompt(const Layer& layer, const Matrix& tokens, const Vector& z,
                       const Vector& target) {
  Vector out = layer.W * z - target;
  for (const LayerHead& head : layer.heads) {
    const Vector scores = tokens * (head.U * z);
    Vector weights = scores / static_cast<double>(tokens.rows());
    if (head.kind == ModelKind::softmax) {
      weights = (scores.array() - scores.maxCoeff()).exp().matrix();
      weights /= weights.sum();
    }
    out += head.V * (tokens.transpose() * weights);
  }
  return 0.5 * out.squaredNorm();
}

Estimate simulated(const Layer& layer, const TokenLaw& law, Index L, const Vector& z,
                   const Vector& target, int prompts, const Stream& stream) {
  Moments out;
  for (int i = 0; i < prompts; ++i) {
    const Empirical prompt = law.measure().sample(stream.split(static_cast<std::uint64_t>(i)), L);
    out.add(error_on_prompt(layer, prompt.tokens(), z, target));
  }
  return out.estimate(Engine::direct);
}

struct Case {
  TokenLaw law;
  Vector z, target;
};

Case some_case(Index K, Index D, Index m, const Stream& stream) {
  return {TokenLaw(some_mixture(K, D, 1.0, stream.split(0))),
          random_matrix(stream.split(1), D, 1).col(0), random_matrix(stream.split(2), m, 1).col(0)};
}

TEST(LaplaceJets, DerivativesAreThoseOfTheIntegral) {
  for (const double tau : {0.0, 0.05, 0.2, 1.0, 6.0, 40.0}) {
    const double width = 20 + 9 * tau;
    const LaplaceJets jets(tau, -width, width);
    // A fine rule of its own, in g.
    const auto slow = [&](double v) {
      Vector out = Vector::Zero(LaplaceJets::kOrders);
      const double h = std::min(0.05, 0.05 / std::max(tau, 1e-9));
      double total = 0;
      for (double g = -9.5; g <= 9.5; g += h) {
        const double w = std::exp(-g * g / 2), y = std::exp(v + tau * g);
        total += w;
        if (y > 700) {
          out[0] += w;
          continue;
        }
        // D_j by Stirling numbers of the second kind: (y d/dy)^j e^-y = e^-y sum S(j,i) (-y)^i.
        static constexpr double S[7][7] = {{1},
                                           {0, 1},
                                           {0, 1, 1},
                                           {0, 1, 3, 1},
                                           {0, 1, 7, 6, 1},
                                           {0, 1, 15, 25, 10, 1},
                                           {0, 1, 31, 90, 65, 15, 1}};
        out[0] += w * -std::expm1(-y);
        for (int j = 1; j < 7; ++j) {
          double sum = 0;
          for (int i = 1; i <= j; ++i) sum += S[j][i] * std::pow(-y, i);
          out[j] += w * sum * std::exp(-y);
        }
      }
      return Vector(out / total);
    };
    for (const double v : {-width + 0.3, -3.123, -0.7, 0.011, 1.9, width - 0.4}) {
      const Vector got = jets.rows(v, 1).row(0).transpose();
      const Vector want = slow(v);
      for (Index j = 0; j < LaplaceJets::kOrders; ++j) {
        static constexpr double kAllowed[7] = {1e-12, 1e-11, 1e-10, 5e-10, 5e-9, 5e-8, 5e-7};
        EXPECT_NEAR(got[j], want[j], kAllowed[j]) << "tau " << tau << " v " << v << " " << j;
      }
    }
  }
}

TEST(PromptError, OneSoftmaxHeadAgreesWithTheMixtureEngine) {
  for (const Index K : {1, 2, 3}) {
    for (const double size : {0.2, 1.0, 3.0}) {
      const SharedMixture mixture = some_mixture(K, 3, 1.0, Stream(7));
      const TokenLaw law{mixture};
      const Layer layer = some_layer({ModelKind::softmax}, 3, 2, size, Stream(8));
      const Vector z{{0.6, -0.9, 0.4}}, target{{0.3, -0.2}};
      GaussianMixtureLaw parts{mixture.weights, {}};
      for (Index k = 0; k < K; ++k) {
        parts.components.push_back({mixture.means.row(k).transpose(), mixture.cov});
      }
      MixtureErrors other(parts, Attention::from_uv(layer.heads[0].U, layer.heads[0].V), z);
      for (const std::int64_t L : {1L, 2L, 3L, 17L, 1000L, 1000000000L}) {
        const Vector miss = layer.W * z + other.expected_output(L) - target;
        const double want =
            0.5 * (miss.squaredNorm() + other.error_parts(Metric::output, L).variance);
        EXPECT_TRUE(close(prompt_error(layer, law, L, z, target), want, 1e-10))
            << "K " << K << " size " << size << " L " << L;
      }
    }
  }
}

TEST(PromptError, AgreesWithDrawnPrompts) {
  const Case c = some_case(2, 2, 2, Stream(11));
  for (const auto& kinds : {std::vector{ModelKind::softmax}, std::vector{ModelKind::linear},
                            std::vector{ModelKind::linear, ModelKind::linear}}) {
    const Layer layer = some_layer(kinds, 2, 2, 0.8, Stream(12));
    for (const std::int64_t L : {1L, 5L}) {
      EXPECT_TRUE(agrees(simulated(layer, c.law, L, c.z, c.target, 40000, Stream(13)),
                         prompt_error(layer, c.law, L, c.z, c.target)))
          << layer.name() << " L " << L;
    }
  }
}

TEST(PromptError, SingleIndexTokensAgreeWithScoreLawsAndWithPrompts) {
  const Matrix cov{{1.0, 0.3}, {0.3, 0.5}};
  const Vector w{{0.8, -1.1}};
  for (const LinkName link : {LinkName::sign, LinkName::tanh, LinkName::relu}) {
    const SingleIndex tokens(cov, w, Link(link), 0.1);
    const TokenLaw law{tokens};
    for (const double size : {0.3, 1.5}) {
      const Layer layer = some_layer({ModelKind::softmax}, 3, 1, size, Stream(21));
      const Vector z{{0.7, -0.5, 0.0}}, target{{0.4}};
      ExactPrompt other(Prompt::plain(AnyMeasure(tokens)),
                        Attention::from_uv(layer.heads[0].U, layer.heads[0].V), z);
      for (const std::int64_t L : {1L, 2L, 30L, 5000L}) {
        const Vector miss = layer.W * z + other.expected_output(L) - target;
        const double want = 0.5 * (miss.squaredNorm() + other.variance(L));
        EXPECT_TRUE(close(prompt_error(layer, law, L, z, target), want, 1e-9))
            << name(link) << " size " << size << " L " << L;
      }
      EXPECT_TRUE(agrees(simulated(layer, law, 6, z, target, 20000, Stream(22)),
                         prompt_error(layer, law, 6, z, target)));
    }
  }
}

TEST(PromptError, GradientsAgreeWithDifferences) {
  const auto check = [](const Layer& layer, const Case& c, Length L) {
    Layer gradient = layer.zero();
    const double value = prompt_error(layer, c.law, L, c.z, c.target, &gradient);
    EXPECT_EQ(value, prompt_error(layer, c.law, L, c.z, c.target));
    const auto f = [&](const Vector& theta) {
      return prompt_error(layer.with(theta), c.law, L, c.z, c.target);
    };
    EXPECT_TRUE(gradient_check(f, layer.parameters(), gradient.parameters(),
                               {.step = 1e-3, .relative = 1e-7, .rounding = 1e-11}))
        << layer.name() << " L " << L.text();
  };
  const auto S = ModelKind::softmax, I = ModelKind::linear;
  for (const Length L : {Length(1), Length(2), Length(3), Length(40), Length(100000)}) {
    check(some_layer({S}, 2, 2, 0.9, Stream(31)), some_case(2, 2, 2, Stream(32)), L);
    check(some_layer({S}, 3, 1, 1.4, Stream(33)), some_case(3, 3, 1, Stream(34)), L);
    check(some_layer({I}, 2, 2, 0.9, Stream(35)), some_case(2, 2, 2, Stream(36)), L);
    check(some_layer({I, I}, 3, 2, 0.9, Stream(37)), some_case(2, 3, 2, Stream(38)), L);
    Case single{TokenLaw(SingleIndex(Matrix{{1.0, 0.3}, {0.3, 0.5}}, Vector{{0.8, -1.1}},
                                     Link(LinkName::sign), 0.1)),
                Vector{{0.7, -0.5, 0.0}}, Vector{{0.4}}};
    check(some_layer({S}, 3, 1, 0.8, Stream(39)), single, L);
  }
  check(some_layer({S, I, S}, 2, 2, 0.9, Stream(40)), some_case(2, 2, 2, Stream(41)),
        Length::infinity());
}

TEST(PromptError, LongPromptsTendToTheLimit) {
  const Case c = some_case(2, 2, 2, Stream(51));
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    const Layer layer = some_layer({kind}, 2, 2, 0.5, Stream(52));
    const double limit = prompt_error(layer, c.law, Length::infinity(), c.z, c.target);
    const double far = prompt_error(layer, c.law, 1000000000000L, c.z, c.target);
    const double near = prompt_error(layer, c.law, 10, c.z, c.target);
    EXPECT_TRUE(close(far, limit, 1e-9));
    EXPECT_FALSE(close(near, limit, 1e-3)) << "the comparison must see short prompts";
  }
}

TEST(PromptError, WhatHasNoFormulaIsRefused) {
  const Case c = some_case(2, 2, 2, Stream(61));
  const Layer two = some_layer({ModelKind::softmax, ModelKind::linear}, 2, 2, 0.5, Stream(62));
  EXPECT_FALSE(has_prompt_formula(two));
  EXPECT_NE(testing::message_of<CapabilityError>([&] {
              return prompt_error(two, c.law, 10, c.z, c.target);
            }).find("engine = direct"),
            std::string::npos);
}

// Gradients in U, V and W of two and three heads, by differences of the value; the value beside
// them is that without a gradient.
TEST(PromptError, GradientsOfSeveralSoftmaxHeadsAgreeWithDifferences) {
  for (const Index heads : {2, 3}) {
    const Case c = some_case(2, 2, 2, Stream(80 + heads));
    const Layer layer = some_layer(std::vector<ModelKind>(heads, ModelKind::softmax), 2, 2, 0.5,
                                   Stream(90 + heads));
    for (const std::int64_t L : {1, 2, 12, 1000}) {
      Layer slope = layer.zero();
      const double value = prompt_error(layer, c.law, L, c.z, c.target, &slope);
      EXPECT_TRUE(close(value, prompt_error(layer, c.law, L, c.z, c.target), 1e-8)) << L;
      EXPECT_TRUE(testing::gradient_check(
          [&](const Vector& at) { return prompt_error(layer.with(at), c.law, L, c.z, c.target); },
          layer.parameters(), slope.parameters(),
          {.step = 1e-2, .relative = 1e-6, .rounding = 1e-9}))
          << heads << " heads, L " << L;
    }
  }
}

// Two tokens of the plane, two heads: one number decides each head's weights, so that the error is
// an integral over Gaussian differences of tokens. The gradient is that of the sum, by differences
// of it.
TEST(PromptError, GradientsOfTwoHeadsOnTwoTokensByBruteForce) {
  const TokenLaw law(SharedMixture{Vector::Ones(1), Matrix::Zero(1, 2), Matrix::Identity(2, 2)});
  Layer layer{Matrix{{0.2, -0.3}},
              {{ModelKind::softmax, Matrix{{0.8, 0.1}, {-0.2, 0.5}}, Matrix{{0.7, -0.4}}},
               {ModelKind::softmax, Matrix{{-0.3, 0.6}, {0.4, 0.9}}, Matrix{{0.5, 0.8}}}}};
  const Vector z{{0.9, -0.7}}, target = Vector::Ones(1);
  const auto brute = [&](const Layer& at) {
    const Vector a = at.heads[0].U * z, b = at.heads[1].U * z;
    const Matrix &V = at.heads[0].V, &W = at.heads[1].V;
    double sum = 0, weights = 0;
    for (double g = -8; g <= 8; g += 0.2) {
      for (double h = -8; h <= 8; h += 0.2) {
        // The difference of the tokens is d; their half sum, of covariance I/2, is independent of
        // it.
        const Vector d = std::sqrt(2.0) * Vector{{g, h}};
        const double said = (V * d)[0] * std::tanh(a.dot(d) / 2) / 2 +
                            (W * d)[0] * std::tanh(b.dot(d) / 2) / 2 + (at.W * z)[0] - 1;
        const double p = std::exp(-(g * g + h * h) / 2);
        sum += p * (said * said / 2 + (V + W).squaredNorm() / 4);
        weights += p;
      }
    }
    return sum / weights;
  };
  Layer slope = layer.zero();
  EXPECT_TRUE(close(prompt_error(layer, law, 2, z, target, &slope), brute(layer), 1e-8));
  EXPECT_TRUE(testing::gradient_check([&](const Vector& at) { return brute(layer.with(at)); },
                                      layer.parameters(), slope.parameters(),
                                      {.step = 1e-2, .relative = 1e-6, .rounding = 1e-10}));
}

TEST(PromptError, SeveralSoftmaxHeadsAgreeWithDrawnPrompts) {
  const Case c = some_case(2, 3, 2, Stream(63));
  const Layer layer = some_layer({ModelKind::softmax, ModelKind::softmax, ModelKind::softmax}, 3, 2,
                                 0.5, Stream(64));
  for (const Index L : {1, 2, 20}) {
    EXPECT_TRUE(agrees(simulated(layer, c.law, L, c.z, c.target, 20000, Stream(65)),
                       prompt_error(layer, c.law, L, c.z, c.target)))
        << L;
  }
}

// A query of zero gives every token the weight 1/L: scores have no deviation at all.
TEST(PromptError, AQueryOfZeroAverages) {
  const Case c = some_case(3, 2, 2, Stream(71));
  const Vector zero = Vector::Zero(c.z.size());
  const Layer one = some_layer({ModelKind::softmax}, 2, 2, 0.5, Stream(72));
  const Layer two = some_layer({ModelKind::softmax, ModelKind::softmax}, 2, 2, 0.5, Stream(73));
  const Vector mean = c.law.measure().mean();
  for (const Layer& layer : {one, two}) {
    Matrix V = layer.heads[0].V;
    if (layer.heads.size() == 2) V += layer.heads[1].V;
    const double spread = (V * c.law.measure().tilted_cov(zero)).cwiseProduct(V).sum();
    for (const std::int64_t L : {1, 2, 10, 1000, 100000}) {
      const double want =
          (V * mean - c.target).squaredNorm() / 2 + spread / 2 / static_cast<double>(L);
      EXPECT_TRUE(close(prompt_error(layer, c.law, L, zero, c.target), want, 1e-9)) << L;
    }
  }
}

// Tokens (1, 1) and (-1, -1): a prompt is the number of its ones, which is binomial.
TEST(PromptError, AtomsByBruteForce) {
  const TokenLaw law(
      SharedMixture{Vector::Constant(2, 0.5), Matrix{{1, 1}, {-1, -1}}, Matrix::Zero(2, 2)});
  const Layer layer{Matrix::Zero(1, 2),
                    {{ModelKind::softmax, Matrix{{0.9, 0}, {0, 0}}, Matrix{{0, 1.4}}}}};
  const Vector z{{1, 0}}, target = Vector::Ones(1);
  for (const int L : {1, 2, 10, 100, 1000}) {
    double want = 0;
    for (int ones = 0; ones <= L; ++ones) {
      const double log_p = std::lgamma(L + 1.0) - std::lgamma(ones + 1.0) -
                           std::lgamma(L - ones + 1.0) - L * std::log(2.0);
      const double up = ones * std::exp(0.9), down = (L - ones) * std::exp(-0.9);
      const double miss = 1.4 * (up - down) / (up + down) - 1;
      want += std::exp(log_p) * miss * miss / 2;
    }
    EXPECT_TRUE(close(prompt_error(layer, law, L, z, target), want, 1e-9)) << L;
  }
}

// Sixty atoms on a line whose scores reach 300: at one u few of them change, the others are beyond
// or have not begun. Prompts of two and three tokens are enumerated.
TEST(PromptError, SharpScoresOfManyAtomsByBruteForce) {
  constexpr int K = 60;
  SharedMixture atoms{Vector(K), Matrix(K, 2), Matrix::Zero(2, 2)};
  for (int k = 0; k < K; ++k) {
    atoms.weights[k] = 1 + k % 7;
    atoms.means.row(k) << (k * 37 % K - 29.5) / 6, std::sin(k);  // in no order
  }
  atoms.weights /= atoms.weights.sum();
  const TokenLaw law(atoms);
  for (const double u : {0.5, 60.0}) {
    const Layer layer{Matrix::Zero(1, 2),
                      {{ModelKind::softmax, Matrix{{u, 0}, {0, 0}}, Matrix{{0.3, 1.4}}}}};
    const Vector z{{1, 0}}, target = Vector::Ones(1);
    const auto miss = [&](const std::vector<int>& tokens) {
      double total = 0, sum = 0, top = -HUGE_VAL;
      for (const int k : tokens) top = std::max(top, u * atoms.means(k, 0));
      for (const int k : tokens) {
        const double omega = std::exp(u * atoms.means(k, 0) - top);
        total += omega;
        sum += omega * (0.3 * atoms.means(k, 0) + 1.4 * atoms.means(k, 1));
      }
      return sum / total - 1;
    };
    double two = 0, three = 0;
    for (int i = 0; i < K; ++i) {
      for (int j = 0; j < K; ++j) {
        const double p = atoms.weights[i] * atoms.weights[j];
        two += p * miss({i, j}) * miss({i, j}) / 2;
        for (int k = 0; k < K; ++k) {
          const double gap = miss({i, j, k});
          three += p * atoms.weights[k] * gap * gap / 2;
        }
      }
    }
    EXPECT_TRUE(close(prompt_error(layer, law, 2, z, target), two, 1e-9)) << u;
    EXPECT_TRUE(close(prompt_error(layer, law, 3, z, target), three, 1e-9)) << u;
    Layer slope = layer.zero();
    (void)prompt_error(layer, law, 3, z, target, &slope);
    EXPECT_TRUE(testing::gradient_check(
        [&](const Vector& at) { return prompt_error(layer.with(at), law, 3, z, target); },
        layer.parameters(), slope.parameters(),
        {.step = 1e-2, .relative = 1e-6, .rounding = 1e-10}))
        << u;
  }
}

// The distance to the limit falls like 1/L.
TEST(PromptError, SeveralSoftmaxHeadsTendToTheLimit) {
  const Case c = some_case(2, 2, 2, Stream(68));
  const Layer layer = some_layer({ModelKind::softmax, ModelKind::softmax}, 2, 2, 0.5, Stream(69));
  const double limit = prompt_error(layer, c.law, Length::infinity(), c.z, c.target);
  const auto scaled_gap = [&](std::int64_t L) {
    return static_cast<double>(L) * (prompt_error(layer, c.law, L, c.z, c.target) - limit);
  };
  EXPECT_TRUE(close(scaled_gap(10000), scaled_gap(100000), 1e-3));
  EXPECT_FALSE(close(scaled_gap(10), scaled_gap(100000), 1e-2)) << "short prompts must be seen";
}

// Heads with one U are one head whose V is the sum of theirs.
TEST(PromptError, ThreeHeadsWithOneTiltAreOne) {
  const Case c = some_case(3, 2, 2, Stream(66));
  const Layer one = some_layer({ModelKind::softmax}, 2, 2, 0.8, Stream(67));
  Layer three = one;
  three.heads.assign(3, one.heads[0]);
  three.heads[0].V *= 0.2;
  three.heads[1].V *= -0.5;
  three.heads[2].V *= 1.3;
  for (const std::int64_t L : {1, 7, 300, 10000}) {
    EXPECT_TRUE(close(prompt_error(three, c.law, L, c.z, c.target),
                      prompt_error(one, c.law, L, c.z, c.target), 1e-8))
        << L;
  }
}

TEST(Layer, ParametersReadBack) {
  const Layer layer = some_layer({ModelKind::softmax, ModelKind::linear}, 3, 2, 0.9, Stream(71));
  const Vector theta = layer.parameters();
  EXPECT_EQ(theta.size(), 6 + 2 * (9 + 6));
  EXPECT_EQ(layer.with(theta).parameters(), theta);
  EXPECT_EQ(layer.with(2 * theta).heads[1].V, 2 * layer.heads[1].V);
  EXPECT_EQ(layer.name(), "mixed");
  EXPECT_THROW((void)layer.with(theta.head(4)), DimensionError);
  EXPECT_NE(testing::message_of<DimensionError>([&] {
              layer.check(2, 2);
              return 0;
            }).find("W columns"),
            std::string::npos);
}

}  // namespace
}  // namespace esscher
