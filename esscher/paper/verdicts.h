// What each verdict of the report is a function of. A statement's file turns its rows into these
// numbers, `*_checks` says what of them is judged against which value (judged.h), the verdict
// function gives the verdict with its reason, and the page is put around both. Every number that is
// NaN makes a verdict fail.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "esscher/paper/judged.h"
#include "esscher/paper/shared_decay.h"
#include "esscher/report/page.h"
#include "esscher/risk/model_kind.h"
#include "esscher/task/regression.h"

namespace esscher::paper {

// Tolerances besides the errors that the figures carry. Flows end where quadrature nodes put the
// minimum, which moves the end by 1 to 3 %.
inline constexpr double kFlowTolerance = 0.03;
// Predicted exponents hold in the limit; at the lengths of the paper they are this far from it.
inline constexpr double kRateTolerance = 0.1;
inline constexpr double kExactTolerance = 1e-6;
inline constexpr double kConstantTolerance = 0.01;  // of L D(L) at the longest prompt

// Lemma 2.1. The lemma is tested on random Gaussians, and the same test on +-1 tokens must fail.
struct LemmaNumbers {
  std::int64_t cases = 0;
  double worst_ratio = 1;   // softmax over the closed form, furthest from 1
  double worst_third = 4;   // E (1 + u)^3 of standardised outputs u, 4 for a Gaussian
  double worst_fourth = 3;  // E u^4, 3 for a Gaussian
  double coin_ratio = 1;    // T[mu](z) / z of +-1 tokens, furthest from 1
  double coin_fourth = 3;   // E u^4 of their outputs
};
inline constexpr double kLemmaError = 1e-11;
inline constexpr double kLemmaShape = 1e-9;
Checks lemma_checks(const LemmaNumbers& n);
Verdict judge_lemma_2_1(const LemmaNumbers& n);

// Almost-sure convergence, for one law of tokens. `errors` are distances to the limit divided by the
// deviation of the central limit theorem, at lengths of independent blocks.
struct GrowingPrompts {
  std::string tokens = {};
  double last = 0;           // largest error at the end
  double clt = 0;            // deviation predicted there
  double worst = 0;          // largest error / deviation from kGrowingFrom on
  std::int64_t worst_L = 0;  // where
  // Mean over blocks of tokens of L |error of the block|^2 / constant, which is 1 in the limit, and
  // its standard error.
  double block_ratio = 0;
  double block_error = 0;
  // The same with the limit of another law of the same mean and covariance: must not agree.
  double false_ratio = 0;
  double false_error = 0;
};
inline constexpr double kGrowingDeviations = 6;
inline constexpr std::int64_t kGrowingFrom = 1000;
inline constexpr double kBlockTolerance = 0.02;
Checks almost_sure_checks(std::span<const GrowingPrompts> laws);
Verdict judge_almost_sure(std::span<const GrowingPrompts> laws, int prompts, std::int64_t end);

// Propositions 3.1 and 3.4: what is judged of the curves.
struct DecayNumbers {
  std::vector<Decay> curves = {};
  std::vector<Judged> known = {};           // further figures: known answers, tilted moments
  std::vector<Judged> known_controls = {};  // such figures that must not agree
  double first = 0;                         // D(1), where the printed bound is 0
};
Checks decay_checks(const DecayNumbers& n);
Verdict judge_prop_3_1(const DecayNumbers& n);
Verdict judge_prop_3_4(const DecayNumbers& n);
// Where the exact exponents are furthest from gamma.
std::string exponent_caption(std::span<const Decay> curves);
// Which of the curves were simulated.
std::string gradient_caption(std::span<const Decay> curves);

// Stability: gaps of gradients along the path, by length, lengths increasing.
struct GapPoint {
  std::int64_t L = 0;
  double t = 0;
  double gap = 0;
  double error = 0;
  double gradient = 0;  // of the infinite prompt there
  std::optional<IndependentValue> expected = {};
};
struct GapCurve {
  Features features = Features::gaussian;
  std::vector<GapPoint> sup = {};     // largest over time, one per length
  std::vector<GapPoint> judged = {};  // points with an independent value
};
inline constexpr double kGapFloor =
    0.25;  // points with a gap above this share of the sup are judged
inline constexpr double kGapTolerance = 0.05;
Checks stability_checks(std::span<const GapCurve> curves);
Verdict judge_stability(std::span<const GapCurve> curves);
// "Between the last two lengths it falls like L^{−0.42} with Gaussian features, ..": from the numbers.
std::string gap_fall_text(std::span<const GapCurve> curves);

// A risk at the end of training above a limit, beside the value that is expected.
struct EndPoint {
  std::int64_t L = 0;
  double excess = 0;
  double error = 0;
  double expected = 0;
  double expected_error = 0;
};

// Each end against its expected value, a fall from point to point, and the exponent between the last
// two lengths: against that of the expected values, and against 1 from kRateFrom on.
inline constexpr std::int64_t kRateFrom = 10000;
void add_ends(Checks& checks, const std::string& which, std::span<const EndPoint> at,
              Source source);

// Theorem 4.3: the limiting risk above that of the infinite prompt, which is the smallest risk
// there is in both tasks.
struct TaskExcess {
  std::string task = {};
  std::vector<EndPoint> at = {};  // lengths increasing
  double start = 0;               // the same before training, at the last length: must not agree
};
Checks theorem_4_3_checks(std::span<const TaskExcess> tasks);
Verdict judge_theorem_4_3(std::span<const TaskExcess> tasks);

// Theorem 5.1.
struct LengthForEps {
  double eps = 0;
  std::optional<std::int64_t> length = {};  // none if no length was long enough
  double error = 0;                         // standard error of the length, from sets of nodes
  IndependentValue expected = {};
};
struct Theorem51Numbers {
  double bayes = 0;           // of the infinite prompt
  double reference_risk = 0;  // of the infinite-prompt flow
  double product_error = 0;   // |bA - Sigma^-1| / |Sigma^-1| of it
  double start_error = 0;     // the same of the start: must not agree
  std::vector<EndPoint> trained = {};
  std::vector<double> bayes_at = {};  // Bayes risk at these lengths
  std::vector<LengthForEps> lengths = {};
};
inline constexpr double kProductTolerance = 1e-4;
Checks theorem_5_1_checks(const Theorem51Numbers& n);
Verdict judge_theorem_5_1(const Theorem51Numbers& n);
// Of the risks along training: where the infinite prompt ends, and whether the axis from `floor` on
// shows it.
std::string paths_caption(double reference_risk, double floor);

// Transfer from linear attention.
struct LinearAndSoftmax {
  std::int64_t L = 0;
  double linear = 0;  // limiting risk
  double closed = 0;  // the same in closed form, from tests/paper/independent.py
  double noisy = 0;   // with label noise
  double noisy_closed = 0;
  double untrained = 0;  // linear risk at Sigma^-1 instead of Gamma_L^-1: must not agree
  double softmax = 0;
  double softmax_error = 0;
  double softmax_expected = 0;
  double softmax_expected_error = 0;
  [[nodiscard]] double gap() const { return softmax - linear; }
};
Checks transfer_checks(std::span<const LinearAndSoftmax> at);
Verdict judge_transfer(std::span<const LinearAndSoftmax> at);

// The authors' experiment: ends of flows from the theorem's start, above the label noise.
struct TheoremStart {
  std::string preset = {};
  ModelKind model = ModelKind::softmax;
  std::vector<EndPoint> at = {};  // lengths increasing
};
Checks experiment_checks(std::span<const TheoremStart> curves);
// `report` tells of the default start, which is not judged.
Verdict judge_experiment(std::span<const TheoremStart> curves, const std::string& report);

}  // namespace esscher::paper
