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
#include "esscher/config/train.h"
#include "esscher/risk/bayes.h"
#include "esscher/risk/closed_form.h"
#include "esscher/training/flow_rows.h"
#include "esscher/training/twin_rows.h"

namespace esscher::paper {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kBayesReplicates = 1000;

// A preset with its changes, and the claims found so far.
class Subject {
 public:
  Subject(std::string_view name, const ClaimOptions& options) : name_(name), options_(options) {}

  [[nodiscard]] Config config(std::vector<std::string> more = {}) const {
    Config config = load_preset(name_);
    for (const std::string& change : options_.assignments) config.set(change);
    for (const std::string& change : more) config.set(change);
    config.check_known();
    return config;
  }
  [[nodiscard]] FlowRecord flow(std::vector<std::string> more = {}) const {
    const Config changed = config(std::move(more));
    const FlowProblem problem = read_flow_problem(changed.root(), options_.seed);
    return assemble_flow(compute_here(flow_cells(problem)));
  }
  [[nodiscard]] LinearRegressionTask task(std::vector<std::string> more = {}) const {
    return read_task(config(std::move(more)).root());
  }
  // The risk of the heads that training ends with; `steps` of the short version.
  [[nodiscard]] Estimate trained(std::int64_t steps, std::vector<std::string> more = {}) const {
    if (!options_.full) more.push_back("train.steps=" + std::to_string(steps));
    const TrainPlan plan = read_train(config(std::move(more)).root(), options_.seed);
    Trainer trainer(plan.config);
    trainer.run(plan.steps);
    RiskOptions options = plan.config.risk;
    options.draws = 20000;
    return risk(plan.config.task, trainer.heads(), plan.config.model, plan.config.length, options);
  }
  [[nodiscard]] Length length() const { return read_length(config().root()); }

  void equal(std::string claim, double found, double expected, double tolerance) {
    add(std::move(claim), found, "=", expected, tolerance, std::abs(found - expected) <= tolerance);
  }
  void below(std::string claim, double found, double expected) {
    add(std::move(claim), found, "<", expected, 0, found < expected);
  }
  void above(std::string claim, double found, double expected) {
    add(std::move(claim), found, ">", expected, 0, found > expected);
  }
  void no_number(std::string claim) {
    add(std::move(claim), kNone, "", kNone, 0, false);
    rows_.back().verdict = ClaimVerdict::no_number;
  }
  [[nodiscard]] std::vector<ClaimRow> rows() && { return std::move(rows_); }

 private:
  void add(std::string claim, double found, const char* relation, double expected, double tolerance,
           bool holds) {
    rows_.push_back({.preset = std::string(name_),
                     .claim = std::move(claim),
                     .found = found,
                     .expected = expected,
                     .relation = relation,
                     .tolerance = tolerance,
                     .verdict = holds ? ClaimVerdict::holds : ClaimVerdict::fails});
  }

  std::string_view name_;
  const ClaimOptions& options_;
  std::vector<ClaimRow> rows_;
};

// b U of the end [d,d]: what linear attention applies to the correlation of labels and features.
Matrix effective(const FlowRow& row, Index d) { return row.r(d) * row.U.topLeftCorner(d, d); }

void ends_at_gamma(Subject& s, const FlowRecord& flow, const LinearRegressionTask& task, Length L) {
  const Readout best = block_optimum(task, L);
  const Index d = task.dim;
  const Matrix expected = best.r(d) * best.U.topLeftCorner(d, d);
  const Matrix found = effective(flow.summary, d);
  s.below("the flow ends at b A = Gamma_N^-1: relative distance",
          (found - expected).norm() / expected.norm(), 1e-4);
}

void audit(Subject& s) {
  CompareProblem problem = read_compare_problem(s.config({"sweep.lengths=[10,100]"}).root(), 0);
  problem.kinds = {ModelKind::linear};
  const CompareResult found = assemble_twins(compute_here(twin_cells(problem)));
  const LinearRegressionTask task = s.task();
  s.below("at L = infinity the flow ends with risk 0", found.twins.at(0).limiting_risk.value(),
          1e-9);
  for (std::size_t i = 1; i < found.twins.size(); ++i) {
    const Length L = found.twins[i].L.value();
    const double expected = linear_risk(task, block_optimum(task, L), L);
    s.equal("linear attention ends at the risk of Gamma_N, L = " + L.text(),
            found.twins[i].limiting_risk.value(), expected, 1e-6);
  }
  s.equal("gaps of gradients fall like 1/L: ratio from L = 10 to 100",
          found.twins.at(1).sup_gradient_gap.value() / found.twins.at(2).sup_gradient_gap.value(),
          10, 0.5);
  s.no_number("the audit tables of d = 4 are not part of this preset");
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
  s.no_number("moments of self-attention over d = 50 and their horizon are not computed here");
}

void boursier(Subject& s) {
  const LinearRegressionTask task = s.task();
  const double bayes = bayes_risk(task, s.length(), kBayesReplicates, Stream(0)).value;
  for (const char* kind : {"softmax", "linear"}) {
    const Estimate end = s.trained(30000, {std::string("model.kind=\"") + kind + "\""});
    const std::string who = std::string(kind) + " attention ends";
    s.above(who + " above ridge", end.value, bayes);
    s.below(who + " below the risk of no prediction", end.value,
            0.5 * (task.task_variance * task.query_cov.trace() + task.noise_variance));
  }
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

void he(Subject& s) {
  const Estimate one = s.trained(6000, {"model.heads=1"}), two = s.trained(6000, {"model.heads=2"});
  s.below("two heads reach a lower risk than one, beyond 5 standard errors",
          two.value + 5 * std::hypot(one.std_error, two.std_error), one.value);
  s.no_number("the example w = 0.13, mu = 3.45 of its notebook is not compared");
}

// The deviation is the noise of the draws: 0.29, 0.17 and 0.076 at 1000, 4000 and 16000 of them.
void von_oswald(Subject& s) {
  const FlowRecord flow = s.flow({"flow.draws=16000"});
  const Index d = s.task().dim;
  const Matrix U = flow.summary.U.topLeftCorner(d, d);
  const double scale = U.trace() / static_cast<double>(d);
  s.below("U is a multiple of the identity: largest deviation over its size",
          (U - scale * Matrix::Identity(d, d)).cwiseAbs().maxCoeff() / std::abs(scale), 0.1);
}

void zfb(Subject& s) {
  const FlowRecord flow = s.flow();
  const LinearRegressionTask task = s.task();
  ends_at_gamma(s, flow, task, s.length());
  const Readout end = flow.summary.readout();
  const double base = linear_risk(task, end, s.length());
  s.equal("a task shift of factor 4 multiplies the risk by 4",
          linear_risk(s.task({"task.task_variance=4"}), end, s.length()) / base, 4, 1e-9);
  s.above("under covariate shift the risk stays with 10^6 tokens",
          linear_risk(s.task({"task.prompt_cov=2.0", "task.query_cov=2.0"}), end, Length(1000000)),
          0.1);
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
  if (!separate) return;
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
}

using Check = std::function<void(Subject&)>;

const std::map<std::string_view, Check>& checks() {
  static const std::map<std::string_view, Check> all = {
      {"ahn-2306.00297", one_layer},
      {"audit-d4", audit},
      {"bohbot-rates", bohbot},
      {"boursier-boyer", boursier},
      {"boursier-boyer-released", released},
      {"garg-2208.01066", one_layer},
      {"he-2503.12734", he},
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
