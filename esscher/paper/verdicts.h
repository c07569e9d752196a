// What each verdict of the report is a function of. A statement's file turns its rows into these
// numbers, the verdict function judges them and says why, and the page is put around both. Every
// number that is NaN makes a verdict fail.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/paper/shared_decay.h"
#include "esscher/report/page.h"
#include "esscher/risk/model_kind.h"
#include "esscher/task/regression.h"

namespace esscher::paper {

// Lemma 2.1. The lemma is tested on random Gaussians, and the same test on +-1 tokens must fail.
struct LemmaNumbers {
  std::int64_t cases = 0;
  double worst_error = 0;    // relative, softmax against the closed form
  double worst_shape = 0;    // |skewness| or |excess kurtosis| of outputs
  double coin_gap = 0;       // largest |T[mu](z) - z| of +-1 tokens, which is not small
  double coin_kurtosis = 0;  // excess kurtosis of their outputs, which is not 0
};
inline constexpr double kLemmaError = 1e-11;
inline constexpr double kLemmaShape = 1e-9;
inline constexpr double kLemmaCoin = 1e-3;
Verdict judge_lemma_2_1(const LemmaNumbers& n);

// Almost-sure convergence, for one law of tokens: errors in deviations of the central limit theorem.
struct GrowingPrompts {
  std::string tokens = {};
  double last = 0;           // largest error at the end
  double clt = 0;            // deviation predicted there
  double worst = 0;          // largest error / deviation from kGrowingFrom on
  std::int64_t worst_L = 0;  // where
};
inline constexpr double kGrowingDeviations = 6;
inline constexpr std::int64_t kGrowingFrom = 1000;
Verdict judge_almost_sure(std::span<const GrowingPrompts> laws, int prompts, std::int64_t end);

// A number that is known from elsewhere.
struct KnownAnswer {
  double sigma = 0;
  std::string quantity = {};
  double expected = 0;
  double relative = 0;  // half a unit of the last digit given, or six standard errors
  double measured = 0;
  [[nodiscard]] bool agrees() const;
};

inline constexpr double kConstantError = 0.01;

// Proposition 3.1.
struct Prop31Numbers {
  CommonFit fit = {};
  double constant_error = 0;  // largest |L D(L) / limit - 1| at the end, in the fast regime
  std::string constant_at = {};
  double first = 0;  // D(1), where the printed bound is 0
  std::vector<KnownAnswer> known = {};
};
Verdict judge_prop_3_1(const Prop31Numbers& n);

// Assumption 3.3 and Proposition 3.4.
struct Prop34Numbers {
  std::size_t moments = 0;           // how many were estimated
  std::string infinite_moment = {};  // one that is not finite
  CommonFit fit_v = {}, fit_u = {};
  double constant_error = 0;
  std::string constant_at = {};
};
Verdict judge_prop_3_4(const Prop34Numbers& n);

// Stability: the largest gap of gradients along the path, by length, lengths increasing.
struct GradientGap {
  std::int64_t L = 0;
  double gap = 0;
  double std_error = 0;
  double t = 0;         // where it is largest
  double gradient = 0;  // the largest gradient of the path
};
struct GapCurve {
  Features features = Features::gaussian;
  std::vector<GradientGap> sup = {};
};
Verdict judge_stability(std::span<const GapCurve> curves);

// Theorem 4.3: the limiting risk above that of the infinite prompt, which is the smallest risk
// there is in both tasks.
struct Excess {
  std::int64_t L = 0;
  double value = 0;
  double std_error = 0;
};
struct TaskExcess {
  std::string task = {};
  std::vector<Excess> at = {};  // lengths increasing
};
Verdict judge_theorem_4_3(std::span<const TaskExcess> tasks);

// Theorem 5.1.
struct TrainedRisk {
  std::int64_t L = 0;
  double risk = 0;
  double std_error = 0;
  double bayes = 0;  // Bayes risk at this length
};
struct LengthForEps {
  double eps = 0;
  std::optional<std::int64_t> length = {};  // none if no length was long enough
};
struct Theorem51Numbers {
  double bayes = 0;            // of the infinite prompt
  double reference_gap = 0;    // |risk of the infinite-prompt flow - bayes|
  double reference_error = 0;  // |bA - Sigma^-1| / |Sigma^-1| of it
  std::vector<TrainedRisk> trained = {};
  std::vector<LengthForEps> lengths = {};
  std::int64_t shortest = 1;  // where the search for L(eps) begins
};
Verdict judge_theorem_5_1(const Theorem51Numbers& n);

// Transfer from linear attention.
struct LinearAndSoftmax {
  std::int64_t L = 0;
  double linear = 0;       // limiting risk
  double closed = 0;       // the same in closed form
  double limit_error = 0;  // |bA - Gamma_L^-1| / |Gamma_L^-1| of linear attention
  double softmax = 0;
  [[nodiscard]] double gap() const;
  [[nodiscard]] double closed_error() const;  // relative
};
Verdict judge_transfer(std::span<const LinearAndSoftmax> at);

// The authors' experiment. Mean squared errors of trained heads at one length.
struct TestError {
  std::int64_t L = 0;
  double mse = 0;
  double std_error = 0;
  double bayes = 0;
  double bayes_error = 0;
  bool diverged = false;
};
struct ExperimentNumbers {
  std::string preset = {};
  std::vector<TestError> softmax = {}, linear = {};  // lengths increasing
  double infinite = 0;                               // mse trained at L = infinity
};
Verdict judge_experiment(std::span<const ExperimentNumbers> presets);

}  // namespace esscher::paper
