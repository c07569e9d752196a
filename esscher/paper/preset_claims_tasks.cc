// Claims about tasks beyond regression: task pools, single-index labels, classification, denoising.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "esscher/concentration/study.h"
#include "esscher/config/layer.h"
#include "esscher/config/sweep.h"
#include "esscher/estimate/moments.h"
#include "esscher/paper/detail/preset_subject.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/layer_risk.h"

namespace esscher::paper {
namespace {

LayerProblem problem_of(const Subject& s, const Subject::Changes& changes = {}) {
  return read_layer_problem(s.config(changes).root(), s.seed());
}

Estimate risk_of(const LayerProblem& p, Length L) { return layer_risk(p.task, p.layer, L, p.risk); }

ReferenceRisks references_of(const LayerProblem& p, Length L) {
  return reference_risks(p.task, L, p.risk);
}

// ---- Raventos et al.

// The mean over eight pools of the risk of the pool's own Bayes predictor.
Estimate pool_bayes(const Subject& s, int size, Length L) {
  Moments risks;
  for (int pool = 0; pool < 8; ++pool) {
    LayerProblem p = problem_of(s, {"task.pool_size=" + std::to_string(size),
                                    "task.pool_seed=" + std::to_string(100 + pool)});
    p.risk.draws = 500;
    risks.add(references_of(p, L).bayes.value);
  }
  return risks.estimate(Engine::direct);
}

}  // namespace

void task_pools(Subject& s) {
  const LayerProblem p = problem_of(s);
  const Length L = p.lengths.back(), early(4);
  LinearRegressionTask all = LinearRegressionTask::isotropic(p.task.token_dim - 1);
  all.noise_variance = 0.25;
  all.query_noise = true;
  const auto ridge = [&](Length at) { return bayes_risk(all, at, 4000, Stream(s.seed())).value; };
  const Estimate bayes = references_of(p, L).bayes;
  s.below("the Bayes predictor of the pool, plus 3 standard errors, is below ridge at " + L.text() +
              " examples",
          bayes.value + 3 * bayes.std_error, ridge(L));
  const Estimate few = pool_bayes(s, 16, early), many = pool_bayes(s, 1024, early);
  s.below("it rises to ridge: gap of 1024 tasks at 4 examples, plus 3 errors, against that of 16",
          ridge(early) - many.value + 3 * many.std_error, ridge(early) - few.value);
  s.above("one layer of linear attention stays above ridge", risk_of(p, L).value, ridge(L));
  s.no_number(
      "how many tasks GPT-2 needs before it follows ridge: that is a statement about eight trained "
      "layers, and the curves are not printed as numbers");
}

// ---- single-index labels; the layer is U = u I and v on the label

namespace {

struct Scalars {
  double u, v;
};

Scalars scalars_of(const Layer& layer) {
  const LayerHead& head = layer.heads.at(0);
  return {head.U(0, 0), head.V(0, head.V.cols() - 1)};
}

// Quadrature over nodes is compared with a formula.
double tolerance(const Estimate& found) { return std::max(6 * found.std_error, 1e-6); }

}  // namespace

void sign_labels(Subject& s) {
  using std::numbers::pi;
  const LayerProblem p = problem_of(s);
  const auto [u, v] = scalars_of(p.layer);
  const Estimate found = risk_of(p, Length::infinity());
  const double by_hand =
      0.5 - v * 2 / pi * std::atan(u) + v * v / pi * std::asin(u * u / (1 + u * u));
  s.equal("an infinite prompt predicts v erf(u h/√2): risk by hand", found.value, by_hand,
          tolerance(found));
  s.below("that is below every linear head, (1 - 2/pi)/2", found.value, 0.5 - 1 / pi);
  s.no_number("no source prints a risk for this task");
}

void hermite_labels(Subject& s) {
  const LayerProblem p = problem_of(s);
  const Estimate found = risk_of(p, Length::infinity());
  s.equal("an infinite prompt predicts v u² h²/√2: risk at v u² = 2/3", found.value, 1.0 / 6,
          tolerance(found));
  LayerProblem linear = p;
  linear.layer.heads.at(0).kind = ModelKind::linear;
  const Estimate blind = risk_of(linear, Length::infinity());
  s.equal("a linear head sees nothing of an even link: its risk", blind.value, 0.5,
          tolerance(blind));
  s.no_number("no source prints a risk for this task");
}

// ---- Gabet et al.

namespace {

// The layer of the preset is the best prediction from an infinite prompt, and no map of the query is.
void is_bayes_in_the_limit(Subject& s, const std::string& who) {
  const LayerProblem p = problem_of(s);
  const Estimate found = risk_of(p, Length::infinity());
  const ReferenceRisks best = references_of(p, Length::infinity());
  s.equal(who + " is Bayes at L = ∞: risk", found.value, best.bayes.value,
          std::max(6 * std::hypot(found.std_error, best.bayes.std_error), 1e-9));
  s.above("the best affine map of the query is not", best.affine.value, 1.01 * best.bayes.value);
}

void numbers_are_ours(Subject& s) {
  s.no_number("the text of the source was not at hand; the numbers of this preset are ours");
}

}  // namespace

void classified(Subject& s) {
  is_bayes_in_the_limit(s, "the head U = 1, V = 1");
  const OptimumProblem search = {.task = problem_of(s).task,
                                 .lengths = {Length::infinity()},
                                 .restarts = 2,
                                 .risk = problem_of(s).risk};
  const double bayes = references_of(problem_of(s), Length::infinity()).bayes.value;
  s.equal("descents from small layers end there: risk",
          layer_optimum(search, Length::infinity()).risk, bayes, 1e-6);
  numbers_are_ours(s);
}

void denoised_by_one(Subject& s) {
  is_bayes_in_the_limit(s, "one head without a residual");
  const LayerProblem other = problem_of(s, {"task.gamma=0.5"});
  const double S = 1.25, bayes = references_of(other, Length::infinity()).bayes.value;
  double least = HUGE_VAL;  // over V, at the gates of the posterior
  for (double v = 0.1; v <= 1.5; v += 0.01) {
    LayerProblem p = other;
    p.layer.heads.at(0).U(0, 0) = 1 / S;
    p.layer.heads.at(0).V(0, 0) = v;
    least = std::min(least, risk_of(p, Length::infinity()).value);
  }
  s.above("with γ = ξ/2 its least risk over V is above Bayes by more than 1 %", least,
          1.01 * bayes);
  numbers_are_ours(s);
}

void denoised_by_two(Subject& s) {
  is_bayes_in_the_limit(s, "a layer of two heads");
  numbers_are_ours(s);
}

void denoised_with_residual(Subject& s) {
  is_bayes_in_the_limit(s, "one layer for all means");
  const LayerProblem p = problem_of(s);
  const Length L(10000);
  s.below("10000 tokens are enough for it to beat the best affine map: risk there",
          risk_of(p, L).value, references_of(p, L).affine.value);
  numbers_are_ours(s);
}

// ---- Smart et al.: the limit of a head against the posterior mean of the clean point

namespace {

constexpr Index kQueries = 500;

struct Denoiser {
  Problem problem;
  Matrix z;  // queries [n,d]
};

Denoiser denoiser_of(const Subject& s) {
  Problem problem = read_problem(s.config().root());
  Matrix z = problem.nu.value().sample(Stream(s.seed(), 7), kQueries).tokens();
  return {std::move(problem), std::move(z)};
}

// |limit - best|^2 over |best|^2, both summed over queries.
template <class Best>
double departure(const Denoiser& d, const Best& best) {
  double off = 0, all = 0;
  for (Index i = 0; i < d.z.rows(); ++i) {
    const Vector z = d.z.row(i).transpose(), wanted = best(z);
    off += (d.problem.attention(d.problem.mu, z) - wanted).squaredNorm();
    all += wanted.squaredNorm();
  }
  return off / all;
}

// E|T z - x|^2 of a linear limit T, where z is x and noise of variance 1.
double linear_error(const Denoiser& d) {
  const Index n = d.z.cols();
  Matrix T(n, n);
  for (Index i = 0; i < n; ++i) {
    T.col(i) = d.problem.attention(d.problem.mu, Vector::Unit(n, i));
  }
  const Matrix G = d.problem.mu.tilted_cov(Vector::Zero(n));
  return (T * (G + Matrix::Identity(n, n)) * T.transpose() - 2 * T * G + G).trace();
}

// D(500) of the preset with these changes.
double distance_at_500(const Subject& s, Subject::Changes changes = {}) {
  changes.emplace_back("sweep.lengths=[500,1000,2000]");
  const Config config = s.config(changes);
  return study(read_problem(config.root()), read_sweep(config.root(), s.seed())).rows.at(0).value;
}

void no_printed_losses(Subject& s) {
  s.no_number("the source draws its losses after training and does not print them");
}

}  // namespace

void denoised_subspace(Subject& s) {
  const Denoiser d = denoiser_of(s);
  const auto best = [](const Vector& z) {
    Vector x = Vector::Zero(z.size());
    x.head(8) = 2.0 / 3 * z.head(8);
    return x;
  };
  s.below("the limit is the posterior mean 2/3 P z: relative squared distance", departure(d, best),
          1e-20);
  s.equal("its error per coordinate is the released code's expected error 8/16 * 2/(2 + 1)",
          linear_error(d) / 16, 1.0 / 3, 1e-12);
  const double soft = distance_at_500(s);
  const double sharp = distance_at_500(s, {"attention.U=1.0", "attention.V=0.3333333333333333"});
  s.below("small scores lose nothing in the limit and gain at 500 tokens: D(500) against U = I",
          soft, sharp);
  s.below("there the head is below no prediction: its error per coordinate", soft / 16 + 1.0 / 3,
          1.0);
  no_printed_losses(s);
}

void denoised_sphere(Subject& s) {
  const Denoiser d = denoiser_of(s);
  const auto best = [](const Vector& z) {
    const double kappa = z.norm() / 0.1;  // the posterior is von Mises and Fisher's law
    const double ratio = std::cyl_bessel_i(4.5, kappa) / std::cyl_bessel_i(3.5, kappa);
    return Vector(ratio / z.norm() * z);
  };
  s.below("the limit is the posterior mean, a ratio of Bessel functions: relative squared distance",
          departure(d, best), 1e-18);
  Moments kept;  // E|x - m|^2 = 1 - E|m|^2 on a sphere of radius 1
  for (Index i = 0; i < d.z.rows(); ++i) {
    kept.add(d.problem.attention(d.problem.mu, d.z.row(i).transpose()).squaredNorm());
  }
  const Estimate part = kept.estimate(Engine::direct);
  s.above(
      "its error per coordinate of R¹⁶, less 3 errors, is on the axis that the released code "
      "draws, from 0.026",
      (1 - part.value - 3 * part.std_error) / 16, 0.026);
  s.below("and below that of no prediction, 1/16", (1 - part.value + 3 * part.std_error) / 16,
          1.0 / 16);
  s.below("at 500 tokens the head is nearer to its limit than the query to the clean point: D(500)",
          distance_at_500(s), 9 * 0.1);
  no_printed_losses(s);
}

void denoised_clusters(Subject& s) {
  const Denoiser d = denoiser_of(s);
  // own z + sum_k w_k m_k with w = softmax(z_k/noise); means are the first eight axes.
  const auto gated = [](const Vector& z, double own, double clusters, double noise) {
    const Eigen::ArrayXd w = ((z.head(8).array() - z.head(8).maxCoeff()) / noise).exp();
    Vector x = own * z;
    x.head(8) += clusters * (w / w.sum()).matrix();
    return x;
  };
  s.below(
      "the limit is 0.2 z and the released code's prediction for clusters without variance: "
      "relative squared distance",
      departure(d, [&](const Vector& z) { return gated(z, 0.02 / 0.1, 1, 0.1); }), 1e-20);
  const auto best = [&](const Vector& z) { return gated(z, 0.02 / 0.12, 0.1 / 0.12, 0.12); };
  s.below("it is near the posterior mean: relative squared distance", departure(d, best), 0.1);
  s.below("at 500 tokens the head is nearer to its limit than the query to the clean point: D(500)",
          distance_at_500(s), 16 * 0.1);
  no_printed_losses(s);
}

}  // namespace esscher::paper
