#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/sum.h"
#include "esscher/prompt/errors.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::agree;
using testing::agrees;
using testing::random_matrix;

Attention some_attention(std::uint64_t seed, Index d) {
  return Attention::from_uv(random_matrix(Stream(seed), d, d, 0.5),
                            random_matrix(Stream(seed + 1), 2, d));
}

// Every law with a score law: exact against tokens that are drawn.
TEST(PromptErrors, ExactAgreesWithDirectForEveryLaw) {
  const std::vector<AnyMeasure> laws = {
      Sphere(3, 1.5),
      Ball(3, 2),
      Rademacher(3),
      Uniform(3),
      Laplace(3, 0.3),
      Categorical(Vector{{0.2, 0.5, 0.3}}),
      Empirical(random_matrix(Stream(5), 6, 3)),
      Affine(Vector{{1.0, 0.0, -1.0}}, random_matrix(Stream(6), 3, 4), Rademacher(4)),
      Sum({Sphere(3, 1), Gaussian(0.3 * Matrix::Identity(3, 3))}),
      Product({Uniform(1), Sphere(2, 2)}),
      Mixture(Vector{{0.4, 0.6}}, {Ball(3, 1), Gaussian(Matrix::Identity(3, 3))}),
      Dirac(Vector{{1.0, -0.5, 2.0}}),
      Sum({Dirac(Vector{{1.0, -0.5, 2.0}}), Rademacher(3)}),
      Elliptical(Vector{{0.3, 0.0, -0.2}}, testing::random_psd(Stream(7), 3),
                 {Vector{{0.3, 1.5}}, Vector{{0.6, 0.4}}}),
      Elliptical(testing::random_psd(Stream(7), 3), gamma_scales(2, 3)),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{1.0, -0.6}}, Link(LinkName::tanh),
                  0.1),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{1.0, 0.4}}, Link(LinkName::sign)),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{-0.5, 0.4}}, Link(LinkName::relu),
                  0.2),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{0.7, 0.4}}, Link(LinkName::sin)),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{0.7, 0.4}}, Link(LinkName::erf), 0.1),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{0.7, 0.4}}, Link(LinkName::probit)),
      SingleIndex(testing::random_psd(Stream(8), 2), Vector{{0.7, 0.4}},
                  Link::polynomial(0.5, 1, 0.05))};
  std::uint64_t seed = 10;
  for (const AnyMeasure& mu : laws) {
    const Attention attention = some_attention(seed, 3);
    const Vector z = random_matrix(Stream(seed + 2), 3, 1).cwiseMin(1.5).cwiseMax(-1.5);
    seed += 10;
    const std::vector<Metric> metrics = {Metric::output, Metric::grad_v};
    const std::vector<std::int64_t> lengths = {1, 7, 60};
    const auto exact = query_errors(metrics, mu, attention, z, lengths);
    const auto drawn = query_errors(metrics, mu, attention, z, lengths,
                                    {.engine = Engine::direct, .replicates = 4000});
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      for (std::size_t l = 0; l < lengths.size(); ++l) {
        EXPECT_EQ(exact[k][l].std_error, 0);
        EXPECT_TRUE(agrees({drawn[k][l].value, drawn[k][l].std_error, 4000, Engine::direct},
                           exact[k][l].value))
            << mu.name() << " at L = " << lengths[l];
      }
    }
  }
}

std::vector<Prompt> prompts() {
  const Gaussian narrow(Vector{{0.5, 0.0}}, 0.5 * Matrix::Identity(2, 2));
  const AnyMeasure mixture =
      Mixture(Vector{{0.5, 0.5}}, {narrow, Gaussian(Vector{{-1.0, 1.0}}, Matrix::Identity(2, 2))});
  Prompt groups = Prompt::plain(narrow);
  groups.groups[0].share = 0.25;
  groups.groups.push_back({.mu = mixture, .share = 0.75, .bias = -0.7});
  groups.groups.push_back({.mu = narrow, .name = "few", .count = 2, .bias = 1});
  Prompt given = Prompt::plain(mixture);
  given.given = Matrix{{2.0, 0.0}, {-1.0, 1.0}};
  given.include_query = true;
  given.sink_logits = {0.5, -std::numeric_limits<double>::infinity()};
  Prompt table = given;
  table.bias = {.kind = BiasKind::table, .values = {0.3, 1.0, -0.5, 0.0}};
  Prompt window = given;
  window.bias = {.kind = BiasKind::window, .width = 6};
  Prompt alibi = groups;
  alibi.include_query = true;
  alibi.bias = {.kind = BiasKind::alibi, .slope = 0.1};
  return {groups, given, table, window, alibi};
}

TEST(PromptErrors, ThreeEnginesAgreeOnEveryKindOfPrompt) {
  const Attention attention = some_attention(3, 2);
  const Vector z{{0.8, -1.3}};
  const std::vector<std::int64_t> lengths = {5, 24};
  for (const Prompt& prompt : prompts()) {
    const std::vector<std::string> names = part_names(prompt);
    const auto exact = query_errors({Metric::output}, prompt, attention, z, lengths)[0];
    for (const Engine engine : {Engine::direct, Engine::sampled}) {
      if (engine == Engine::sampled && prompt.bias.kind == BiasKind::alibi) continue;
      const auto drawn = query_errors({Metric::output}, prompt, attention, z, lengths,
                                      {.engine = engine, .replicates = 8000})[0];
      for (std::size_t l = 0; l < lengths.size(); ++l) {
        EXPECT_TRUE(agrees({drawn[l].value, drawn[l].std_error, 8000, engine}, exact[l].value))
            << names.front() << " " << lengths[l];
        ASSERT_EQ(drawn[l].weights.size(), names.size());
        for (std::size_t k = 0; k < names.size(); ++k) {
          // A weight lies in [0,1], so that its mean over 8000 prompts has at most this error.
          const double w = exact[l].weights[k], error = std::sqrt(w * (1 - w) / 8000) + 1e-12;
          EXPECT_TRUE(agrees({drawn[l].weights[k], error, 8000, engine}, w)) << names[k];
        }
        EXPECT_NEAR(drawn[l].weights2, exact[l].weights2, 0.05 * exact[l].weights2);
      }
    }
  }
}

// A needle among plain tokens moves gradients too: direct is the only engine for these.
TEST(PromptErrors, GradientsOfPromptsAreDirect) {
  const Prompt given = prompts()[1];
  const Attention attention = some_attention(3, 2);
  const Vector z{{0.8, -1.3}};
  const auto message = testing::message_of<CapabilityError>([&] {
    return query_errors({Metric::grad_u}, given, attention, z, {9}, {.engine = Engine::exact});
  });
  EXPECT_NE(message.find("direct"), std::string::npos);
  const auto far = query_errors({Metric::grad_u}, given, attention, z, {2000},
                                {.engine = Engine::direct, .replicates = 64})[0][0];
  const auto near = query_errors({Metric::grad_u}, given, attention, z, {20},
                                 {.engine = Engine::direct, .replicates = 64})[0][0];
  EXPECT_LT(far.value, 0.2 * near.value);
}

TEST(PromptErrors, LengthsBelowTheGivenTokensAreNamed) {
  const Prompt given = prompts()[1];
  for (const Engine engine : {Engine::exact, Engine::direct}) {
    EXPECT_EQ(
        testing::message_of<ArgumentError>([&] {
          return query_errors({Metric::output}, given, some_attention(3, 2), Vector::Ones(2), {2},
                              {.engine = engine});
        }),
        "prompt: L is 2, expected at least 3, the number of tokens that are given or counted");
  }
}

}  // namespace
}  // namespace esscher
