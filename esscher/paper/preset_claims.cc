#include "esscher/paper/preset_claims.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "esscher/concentration/study.h"
#include "esscher/config/icl.h"
#include "esscher/config/presets.h"
#include "esscher/config/sweep.h"
#include "esscher/paper/detail/preset_subject.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/twin_rows.h"

namespace esscher::paper {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kBayesReplicates = 1000;

// b U of the end [d,d]: what linear attention applies to the correlation of labels and features.
Matrix effective(const FlowRow& row, Index d) {
  return row.readout().r(d) * row.U.topLeftCorner(d, d);
}

void ends_at_gamma(Subject& s, const FlowRecord& flow, const LinearRegressionTask& task, Length L) {
  const Readout best = block_optimum(task, L);
  const Index d = task.dim;
  const Matrix expected = best.r(d) * best.U.topLeftCorner(d, d);
  const Matrix found = effective(flow.summary, d);
  s.below("the flow ends at b A = Γ_N⁻¹: relative distance",
          (found - expected).norm() / expected.norm(), 1e-4);
}

void audit(Subject& s) {
  CompareProblem problem = read_compare_problem(s.config({"sweep.lengths=[10,100]"}).root(), 0);
  problem.kinds = {ModelKind::linear};
  const CompareResult found = assemble_twins(compute_here(twin_cells(problem)));
  const LinearRegressionTask task = s.task();
  s.below("at L = ∞ the flow ends with risk 0", found.twins.at(0).limiting_risk.value(), 1e-9);
  for (std::size_t i = 1; i < found.twins.size(); ++i) {
    const Length L = found.twins[i].L.value();
    const double expected = linear_risk(task, block_optimum(task, L), L);
    s.equal("linear attention ends at the risk of Γ_N, L = " + L.text(),
            found.twins[i].limiting_risk.value(), expected, 1e-6);
  }
  s.equal("gaps of gradients fall like 1/L: ratio from L = 10 to 100",
          found.twins.at(1).sup_gradient_gap.value() / found.twins.at(2).sup_gradient_gap.value(),
          10, 0.5);
}

double slope(const Subject& s, const std::vector<std::string>& more) {
  const Config config = s.config(more);
  return study(read_problem(config.root()), read_sweep(config.root(), 0)).fits.at(0).power.slope;
}

void bohbot(Subject& s) {
  const std::string far = "sweep.lengths={from=100000,to=10000000,per_decade=2}";
  s.equal("the mean squared error falls like 1/n in the bulk: slope", slope(s, {far}), -1, 0.02);
  s.above("it falls more slowly at sharper scores: slope at four times the covariance",
          slope(s, {far, "measure.cov=1.0"}), -0.9);
  s.no_number("the slopes at each scale, which the source draws");
}

void boursier(Subject& s) {
  const LinearRegressionTask task = s.task();
  const double bayes = bayes_risk(task, s.length(), kBayesReplicates, Stream(0)).value;
  for (const char* kind : {"softmax", "linear"}) {
    const Estimate end = s.trained(30000, {std::string("model.kind=\"") + kind + "\""}).risk;
    const std::string who = std::string(kind) + " attention ends";
    s.above(who + " above ridge", end.value, bayes);
    s.below(who + " below the risk of no prediction", end.value,
            0.5 * (task.task_variance * task.query_cov.trace() + task.noise_variance));
  }
  s.no_number("the losses at each length, which the source draws");
}

void released(Subject& s) {
  const Matrix G = s.task().prompt_cov;
  Vector v = Vector::Ones(G.rows());
  for (int i = 0; i < 100; ++i)
    v = (G * v).normalized();  // power iteration: G has positive entries
  s.equal("the prompt is coloured twice: largest eigenvalue of its covariance", v.dot(G * v), 5.0,
          0.05);
  boursier(s);
}

// The parabola through a risk at 0, m and 2 m: where it is lowest, and how low.
struct Lowest {
  double at, value;
};

Lowest lowest(double m, double zero, double one, double two) {
  const double curvature = zero - 2 * one + two, slope = 3 * zero - 4 * one + two;
  return {m * slope / (2 * curvature), zero - slope * slope / (8 * curvature)};
}

// Two opposite heads (w I, mu) and (-w I, -mu) predict mu p with p that of mu = 1, so that the risk is
// a parabola in mu.
double best_factor(const LinearRegressionTask& task, double w, Length L) {
  Readout head = Readout::zero(task.dim + 1);
  head.U.topLeftCorner(task.dim, task.dim) = w * Matrix::Identity(task.dim, task.dim);
  const double m = 1 / (2 * w);  // a step of gradient descent, to first order in w
  const auto at = [&](double mu) {
    Readout plus = head, minus = head;
    plus.r(task.dim) = mu;
    minus.r(task.dim) = -mu;
    minus.U = -minus.U;
    const std::vector<Readout> heads{plus, minus};
    return risk(task, heads, ModelKind::softmax, L, {.draws = 50000}).value;
  };
  return lowest(m, at(0), at(m), at(2 * m)).at;
}

// The least risk of one step of gradient descent from w = 0: a linear head with U = I on the features
// that reads mu times the label.
double best_step(const Subject& s) {
  const Index d = s.task().dim;
  Readout head = Readout::zero(d + 1);
  head.U.topLeftCorner(d, d).setIdentity();
  const auto at = [&](double mu) {
    head.r(d) = mu;
    return s.risk_of({head}).value;
  };
  return lowest(1, at(0), at(1), at(2)).value;
}

// What He et al. see in the heads (U_h, r_h) of one model. With w_h the mean of the diagonal of U_h, mu_h
// the last entry of r_h, and |mu_h| for the weight of a head, because heads that do nothing have no shape:
//
//   off_diagonal  sum |mu| |U - w I| / sum |mu| |U|          U [d,d], the part of the features
//   unequal       deviation of |w| over its mean
//   features      |r_1 .. r_d| over |mu|, in mean squares     what is read beside the label
//   sum           |sum mu| / sum |mu|
//   product       sum w mu / 2                                its notebook: w = 0.13, mu = 3.45
struct HeadShapes {
  double off_diagonal, unequal, features, sum, product;
};

HeadShapes shapes_of(const std::vector<Readout>& heads, Index d) {
  double weight = 0, off = 0, size = 0, mean = 0, square = 0, read = 0, label = 0, sum = 0;
  HeadShapes out{};
  for (const Readout& head : heads) {
    const Matrix U = head.U.topLeftCorner(d, d);
    const double w = U.trace() / static_cast<double>(d), mu = head.r(d), share = std::abs(mu);
    weight += share;
    off += share * (U - w * Matrix::Identity(d, d)).norm();
    size += share * U.norm();
    mean += share * std::abs(w);
    square += share * w * w;
    read += head.r.head(d).squaredNorm();
    label += mu * mu;
    sum += mu;
    out.product += w * mu / 2;
  }
  mean /= weight;
  out.off_diagonal = off / size;
  out.unequal = std::sqrt(std::max(0.0, square / weight - mean * mean)) / mean;
  out.features = std::sqrt(read / label);
  out.sum = std::abs(sum) / weight;
  return out;
}

void he(Subject& s) {
  constexpr std::int64_t kSteps = 20000;
  constexpr double kW = 0.13, kMu = 3.45;  // printed in its notebook
  const Index d = s.task().dim;
  const auto model = [&](int heads) {
    return s.trained(kSteps, {"model.heads=" + std::to_string(heads)});
  };
  const Estimate one = model(1).risk;
  s.above("1 head stays above ridge", one.value,
          bayes_risk(s.task(), s.length(), kBayesReplicates, Stream(0)).value);
  double two = kNone;
  for (const int heads : {2, 4, 8}) {
    const Subject::Trained found = model(heads);
    const HeadShapes shape = shapes_of(found.heads, d);
    const std::string who = std::to_string(heads) + " heads";
    s.below(who + " reach a lower risk than one, beyond 5 standard errors",
            found.risk.value + 5 * std::hypot(one.std_error, found.risk.std_error), one.value);
    if (heads == 2) two = found.risk.value;
    // All are judged on the same prompts, so that their risks differ by what they learned.
    if (heads > 2) s.equal(who + " reach the risk of 2", found.risk.value, two, 0.01 * two);
    s.below(who + ": KQ is a multiple of the identity: share of the rest", shape.off_diagonal, 0.3);
    s.below(who + ": and the same one up to its sign: relative deviation", shape.unequal, 0.3);
    s.below(who + ": OV reads the last entry only: share of the others", shape.features, 0.3);
    s.below(who + ": OV of all heads sums to zero: relative sum", shape.sum, 0.05);
    s.equal(who + ": half the sum of w mu is that of its notebook, 0.13 x 3.45", shape.product,
            kW * kMu, 0.02);
  }
  s.equal("at w = 0.13 the best factor of two opposite heads is mu = 3.45, as in its notebook",
          best_factor(s.task(), kW, s.length()), kMu, 0.15);
  s.no_number("the losses at lengths 10 to 100, which the source draws");
}

// All risks are means over the same draws, so that they differ by what the heads do.
void von_oswald(Subject& s) {
  const Subject::Trained found = s.trained(5000);
  const HeadShapes shape = shapes_of(found.heads, s.task().dim);
  s.below("KQ is a multiple of the identity: share of the rest", shape.off_diagonal, 0.1);
  s.below("PV reads the label only: share of the features", shape.features, 0.1);
  const double step = best_step(s);
  s.equal("training ends at the loss of one step of gradient descent: risk", found.risk.value, step,
          0.02 * step);
  s.no_number("losses and cosines beside a step of gradient descent, which the source draws");
}

void ahn(Subject& s) {
  const LinearRegressionTask task = s.task();
  const Readout best = block_optimum(task, s.length());
  const Readout end = s.trained(8000).heads.at(0);
  const Index d = task.dim;
  const Matrix expected = best.r(d) * best.U.topLeftCorner(d, d);
  const Matrix found = end.r(d) * end.U.topLeftCorner(d, d);
  s.below("training ends at b A = Γ_N⁻¹, a preconditioned step: relative distance",
          (found - expected).norm() / expected.norm(), 0.05);
  const double least = linear_risk(task, best, s.length());
  s.equal("and at the risk of that step", linear_risk(task, end, s.length()), least, 0.01 * least);
  ends_at_gamma(s, s.flow({"model.init={kind=\"balanced\"}"}), task, s.length());
  s.above("one layer of linear attention stays above ridge", least,
          bayes_risk(task, s.length(), kBayesReplicates, Stream(0)).value);
  s.no_number("distances to the identity over training, which the source draws");
}

void zfb(Subject& s) {
  const FlowRecord flow = s.flow();
  const LinearRegressionTask task = s.task();
  ends_at_gamma(s, flow, task, s.length());
  const Readout end = flow.summary.readout();
  const double base = linear_risk(task, end, s.length());
  s.equal("a task shift of factor 4 multiplies the risk by 4",
          linear_risk(s.task({"task.task_variance=4"}), end, s.length()) / base, 4, 1e-9);
  s.above("under covariate shift the risk stays with 10⁶ tokens",
          linear_risk(s.task({"task.prompt_cov=2.0", "task.query_cov=2.0"}), end, Length(1000000)),
          0.1);
  s.no_number("risks under shifts, for which the source has formulas");
}

// When each eigendirection is half learned: times of b U_ii, in the order of the coordinates.
std::vector<double> half_times(const FlowRecord& flow, Index d) {
  const Matrix end = effective(flow.summary, d);
  std::vector<double> times(static_cast<std::size_t>(d), kNone);
  for (const FlowRow& row : flow.path) {
    const Matrix now = effective(row, d);
    for (Index i = 0; i < d; ++i) {
      double& t = times[static_cast<std::size_t>(i)];
      if (std::isnan(t) && now(i, i) >= 0.5 * end(i, i)) t = row.t;
    }
  }
  return times;
}

void zhang_saxe(Subject& s, bool separate) {
  const FlowRecord flow = s.flow();
  const LinearRegressionTask task = s.task();
  ends_at_gamma(s, flow, task, s.length());
  if (!separate) {
    s.no_number("the loss curves, which the source draws");
    return;
  }
  const std::vector<double> t = half_times(flow, task.dim);
  for (std::size_t i = 0; i + 1 < t.size(); ++i) {
    s.above("directions are learned in the order of their eigenvalues: half time of number " +
                std::to_string(i + 2) + " against number " + std::to_string(i + 1),
            t[i + 1], t[i]);
  }
  s.no_number("how far apart the stairs are; at this start they overlap");
}

void one_layer(Subject& s) {
  const FlowRecord flow = s.flow();
  ends_at_gamma(s, flow, s.task(), s.length());
  s.above("one layer of linear attention stays above ridge", flow.summary.risk,
          bayes_risk(s.task(), s.length(), kBayesReplicates, Stream(0)).value);
  s.no_number("the errors of its models, which the source draws");
}

using Check = std::function<void(Subject&)>;

const std::map<std::string_view, Check>& checks() {
  static const std::map<std::string_view, Check> all = {
      {"ahn-2306.00297", ahn},
      {"audit-d4", audit},
      {"audit-suite", audit_suite},
      {"bohbot-moments", bohbot_moments},
      {"bohbot-rates", bohbot},
      {"boursier-boyer", boursier},
      {"boursier-boyer-released", released},
      {"bruno-2605.08505", sphere_scale_is_critical},
      {"chen-2510.05554", equiangular_scale},
      {"gabet-classification", classified},
      {"gabet-denoising-one", denoised_by_one},
      {"gabet-denoising-two", denoised_by_two},
      {"gabet-residual", denoised_with_residual},
      {"garg-2208.01066", one_layer},
      {"he-2503.12734", he},
      {"lu-2405.11751", proportional_limit},
      {"raventos-2306.15063", task_pools},
      {"single-index-hermite2", hermite_labels},
      {"single-index-sign", sign_labels},
      {"smart-clusters", denoised_clusters},
      {"smart-linear", denoised_subspace},
      {"smart-sphere", denoised_sphere},
      {"von-oswald", von_oswald},
      {"zfb-shifts", zfb},
      {"zhang-saxe-merged", [](Subject& s) { zhang_saxe(s, false); }},
      {"zhang-saxe-separate", [](Subject& s) { zhang_saxe(s, true); }}};
  return all;
}

}  // namespace

std::vector<ClaimRow> check_preset(std::string_view name, const ClaimOptions& options) {
  (void)load_preset(name);  // names the others if there is none of that name
  Subject subject(name, options);
  const auto found = checks().find(name);
  if (found == checks().end()) {
    subject.no_number("nobody has written down what its source claims");
  } else {
    found->second(subject);
  }
  return std::move(subject).rows();
}

}  // namespace esscher::paper
