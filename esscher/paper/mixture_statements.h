// The statements of [GBB26] (docs/references.md) about prompts of Gaussian mixtures, in our words, and
// three of our own about finite prompts. Each is made in the file of its name; mixtures.cc puts them in
// order. Numbers and verdicts are functions of their own, tested without a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "esscher/paper/judged.h"
#include "esscher/paper/section.h"

namespace esscher::paper {

Statement gated_experts();             // a head on a mixture is a sum of gated affine experts
Statement classification_optima();     // what a head learns from two classes
Statement denoising_heads();           // how many heads the best denoiser needs
Statement denoising_clusters();        // when iterating the denoiser forms clusters
Statement denoising_adapts();          // one layer denoises mixtures it has not seen
Statement denoising_finite_prompts();  // ours: what finite prompts lose, and the cooler layer

// Gated experts. The test runs on random mixtures; a Gaussian of the same moments must fail it.
struct ExpertNumbers {
  std::int64_t cases = 0;
  double worst_ratio = 1;     // softmax over the formula, furthest from 1
  double gaussian_ratio = 1;  // the Gaussian of the same mean and covariance over the formula
};
Checks expert_checks(const ExpertNumbers& n);
Verdict judge_experts(const ExpertNumbers& n);

// Classification of N(m, 1) and N(-m, 1), m = 1.
struct ClassificationNumbers {
  double bayes = 0, bayes_error = 0;   // least risk
  double plus = 0, minus = 0;          // risk at (U, V) and at (-U, -V), over the least one
  double flat = 0;                     // risk at another member of the family, over the least one
  double half = 0;                     // risk at U/2, over the least one: no optimum
  double saddle = 0, saddle_norm = 0;  // at 0: minus the smallest Hessian eigenvalue; gradient norm
  double saddle_expected = 0;
  double rate = 0, rate_expected = 0;  // of the excess along the flow; twice the smallest curvature
  double early_rate = 0;               // near the saddle: must not agree with it
  double leak = 0;                     // share of a gradient outside the symmetric layers
  double leak_skew = 0;                // the same where the classes have no such symmetry
  double conserved = 0;                // K K' - Q Q' at the end of a flow over that at its start
  double conserved_steps = 0;          // the same by long gradient steps: must not agree
};
Checks classification_checks(const ClassificationNumbers& n);
Verdict judge_classification(const ClassificationNumbers& n);

// Denoising at L = infinity.
struct OneHead {
  double ratio = 0;     // gamma / xi
  double excess = 0;    // least excess of one head without residual
  double affine = 0;    // excess of the best affine map
  bool judged = false;  // has an independent value
};
struct DenoisingNumbers {
  std::int64_t cases = 0;
  double residual_ratio = 1;  // layer with residual over the posterior mean, furthest from 1
  double two_heads_ratio = 1;
  double swapped_ratio = 1;  // the same layer for a task with gamma and xi exchanged
  double bayes = 0, bayes_error = 0;
  double affine = 0, affine_expected = 0;  // risks
  std::vector<OneHead> heads = {};
};
Checks denoising_checks(const DenoisingNumbers& n);
Verdict judge_denoising(const DenoisingNumbers& n);

// Clusters: separations in units of the deviation of the noise, where iterates leave the centre.
struct ClusterNumbers {
  std::vector<double> thresholds = {};  // clean points: 1
  double noisy_threshold = 0;           // spread clean points, in units of xi: must not be 1
  double noisy_expected = 0;            // sqrt(1 + gamma^2/xi^2)
  double fixed_point = 0;               // at a separation of 1.5, over m
  double fixed_expected = 0;            // root of x = tanh(1.5^2 x)
};
Checks cluster_checks(const ClusterNumbers& n);
Verdict judge_clusters(const ClusterNumbers& n);

// Means that are drawn anew for every prompt.
struct AdaptsNumbers {
  double layer = 0, layer_error = 0;  // risk over that of the predictor who knows the means
  double affine = 0, affine_error = 0;
  double swapped = 0;  // gamma and xi exchanged
};
Checks adapts_checks(const AdaptsNumbers& n);
Verdict judge_adapts(const AdaptsNumbers& n);

// Finite prompts of the denoising task.
struct LengthPoint {
  std::int64_t L = 0;
  double excess = 0, error = 0;  // of the layer that is best at L = infinity
};
struct CoolPoint {
  std::int64_t L = 0;
  double factor = 0;  // on U, of the best cool layer
  double excess = 0;
};
struct FiniteNumbers {
  std::vector<LengthPoint> at = {};  // lengths increasing
  std::vector<CoolPoint> cool = {};
  double crossing = 0;  // real L where the limit's layer is as good as the best affine map
};
// The exponent of the excess near log L = ell by Laplace's method: with mu = m / sqrt S and
// f(x) = (x - mu)^2/2 + (ell/x - x/2)^2/2, it is (ell/x - x/2)/x at the x with the least f. It tends to
// (sqrt 5 - 1)/2 as ell grows.
double laplace_exponent(double ell, double mu);
Checks finite_checks(const FiniteNumbers& n);
Verdict judge_finite(const FiniteNumbers& n);

}  // namespace esscher::paper
