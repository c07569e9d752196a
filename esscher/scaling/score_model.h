// The scores of one query, as a function of what they are multiplied by: either Gaussian scores
// N(0, tau^2), or scores <f a, z'> of tokens of any law under a layer, a = U z. With the factor f and
//
//   Lambda(t) = log E e^{t s},   s the score of one token after multiplication
//
// the phase of a prompt of n tokens is decided by two comparisons [checked, Gaussian: c = tau/sqrt(log n)]:
//
//   frozen       Lambda'(1) - Lambda(1) >= log n       c >= sqrt 2: a few tokens carry the weight
//   averaging    Lambda'(2) < log n + Lambda(1)        c < sqrt(2/3): E sum omega^2 is that of the bulk
//   intermediate between: rare prompts with one dominant token carry E sum omega^2
//
// The first is the entropy of the tilted law against that of n tokens; in the second, the score that
// carries E e^{2s} must weigh less than all tokens together.
#pragma once

#include <optional>

#include "esscher/attention/attention.h"
#include "esscher/base/enum_names.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

enum class Phase { averaging, intermediate, frozen };

constexpr auto enum_names(Phase) {
  return EnumNames<Phase, 3>{"phase",
                             {{{Phase::averaging, "averaging"},
                               {Phase::intermediate, "intermediate"},
                               {Phase::frozen, "frozen"}}}};
}

struct LayerScores {
  AnyMeasure mu;
  Attention attention;
  Vector z;  // [d]
};

// What is known of n softmax weights; absent where the engine that has it does not reach.
struct WeightNumbers {
  double H = 0;            // E sum omega^2
  double shrink = 0;       // (E S - E s) / (S_inf - E s), S = sum omega s
  double entropy = 0;      // E[-sum omega log omega]
  double free_energy = 0;  // E log sum e^s
  std::optional<double> error =
      {};  // D(n) of the layer, or E(S - S_inf)^2 / tau^2 of Gaussian scores
};

class ScoreModel {
 public:
  // N(0, tau^2), tau > 0.
  static ScoreModel gaussian(double tau);
  // CapabilityError if the measure has no score law (measure/score_law.h), or scores with long tails.
  static ScoreModel layer(LayerScores scores);

  [[nodiscard]] bool is_gaussian() const { return !layer_.has_value(); }
  [[nodiscard]] const std::optional<LayerScores>& layer() const { return layer_; }
  // The longest prompt: any length for Gaussian scores, kMaxLayerLength for a layer.
  [[nodiscard]] double longest() const;

  // Mean and deviation of a score at factor f.
  [[nodiscard]] double mean(double f) const;
  [[nodiscard]] double deviation(double f) const;
  // Lambda(t) and Lambda'(t) at factor f; infinity outside the domain of the law.
  [[nodiscard]] double log_mgf(double f, double t) const;
  [[nodiscard]] double slope(double f, double t) const;

  // n >= 1 tokens.
  [[nodiscard]] WeightNumbers weights(double f, double n) const;
  // E weight of one more token whose score is f (E s + gap), gap in units of scores at f = 1.
  [[nodiscard]] double needle(double f, double n, double gap) const;

 private:
  ScoreModel() = default;
  double tau_ = 1;
  std::optional<LayerScores> layer_ = {};
};

inline constexpr double kMaxLayerLength = 1e15;

Phase phase(const ScoreModel& scores, double f, double log_n);
// What the scores at factor f must be multiplied by to reach the frozen phase, and to leave the
// averaging one; infinity if no factor up to 1e6 does.
double freezing_multiple(const ScoreModel& scores, double f, double log_n);
double averaging_multiple(const ScoreModel& scores, double f, double log_n);

}  // namespace esscher
