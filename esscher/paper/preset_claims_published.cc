// Claims that compare with numbers and curves of a source: the audit suite's tables, the moments of
// Bohbot et al., the proportional limit of Lu et al.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/parallel.h"
#include "esscher/concentration/output_moments.h"
#include "esscher/concentration/study.h"
#include "esscher/config/sweep.h"
#include "esscher/estimate/moments.h"
#include "esscher/paper/detail/preset_subject.h"
#include "esscher/paper/pretraining.h"
#include "esscher/risk/closed_form.h"

namespace esscher::paper {
namespace {

// ---- The audit suite prints means over 8 prompts and 36 queries (concentration_aggregate.csv), divided
// by the number of entries: 4 of an output, 64 of a Jacobian in U or V.

struct AuditRegime {
  const char* name;
  const char* cov;  // measure.cov, as TOML
  const char* U;    // of its table bayes_transfer: 0.18 times the inverse of the covariance
  std::array<double, 7> output, grad_u, grad_v;  // at L = 16, 32, .. 1024
  std::array<double, 5> risk;                    // at L = 16, 64, .. 4096
};

constexpr AuditRegime kAudit[] = {
    {"isotropic",
     "1.0",
     "0.18",
     {0.0102086, 0.0106764, 0.00253793, 0.00148603, 0.000711565, 0.00028896, 0.00013267},
     {0.0205846, 0.00788462, 0.00544911, 0.00264943, 0.00106743, 0.000662544, 0.000426751},
     {0.0133957, 0.00975857, 0.00241951, 0.00204445, 0.000871013, 0.000497226, 0.000154885},
     {0.296768, 0.0726995, 0.0177941, 0.00465758, 0.00112747}},
    {"Toeplitz 0.5",
     "{kind=\"kcm\", rho=0.5}",
     "[[0.24,-0.12,0,0],[-0.12,0.3,-0.12,0],[0,-0.12,0.3,-0.12],[0,0,-0.12,0.24]]",
     {0.0120246, 0.00526267, 0.00327815, 0.0015829, 0.000737141, 0.000337012, 0.00027191},
     {0.0152216, 0.0092314, 0.00692369, 0.00264777, 0.00103903, 0.000590815, 0.000328473},
     {0.0163593, 0.00649782, 0.00420788, 0.00182857, 0.000834024, 0.000435631, 0.000254961},
     {0.296793, 0.082418, 0.0192033, 0.00499141, 0.00127862}},
    {"rotated, condition 8",
     "[[0.9117108878644161,-0.05641173101934999,0.04943914119788794,-0.21203221643323145],"
     "[-0.05641173101934999,0.9923039827277882,0.7506863387718731,0.3590794549325228],"
     "[0.04943914119788794,0.7506863387718731,1.031858877595042,0.3761498049539603],"
     "[-0.21203221643323145,0.3590794549325228,0.3761498049539603,0.8141262518127541]]",
     "[[0.2189915710770607,0.03186338098308761,-0.05933497419846734,0.07039525081526701],"
     "[0.03186338098308761,0.41805517405052295,-0.290382550999721,-0.04192423563336195],"
     "[-0.05933497419846734,-0.290382550999721,0.41786547480943625,-0.08044272575310633],"
     "[0.07039525081526701,-0.04192423563336195,-0.08044272575310633,0.2950877800629802]]",
     {0.010456, 0.00315617, 0.00386412, 0.00146589, 0.00117744, 0.000475266, 0.000252851},
     {0.0115004, 0.00840414, 0.00349589, 0.00228958, 0.000923324, 0.000603115, 0.000263457},
     {0.0127248, 0.00451338, 0.00433521, 0.0023895, 0.0010901, 0.000798773, 0.00029043},
     {0.307056, 0.0794609, 0.0200131, 0.00501739, 0.00123768}}};

StudyResult audited(const Subject& s, const std::vector<std::string>& changes) {
  const Config config = s.config(changes);
  return study(read_problem(config.root()), read_sweep(config.root(), 0));
}

std::string cov_of(const AuditRegime& regime) { return std::string("measure.cov=") + regime.cov; }

// The mean of printed/exact must be 1 within three standard errors, taken from the spread of the ratios.
void one_on_average(Subject& s, const std::string& claim, const Moments& ratios) {
  s.equal(claim + ": printed over exact, " + std::to_string(ratios.count()) + " entries",
          ratios.mean(), 1, 3 * ratios.std_error());
}

}  // namespace

void audit_suite(Subject& s) {
  Moments output, grad_u, grad_v, risks;
  double flattest = -HUGE_VAL, steepest = HUGE_VAL;
  for (const AuditRegime& regime : kAudit) {
    const StudyResult exact = audited(s, {cov_of(regime)});
    for (const MetricFit& fit : exact.fits) {
      flattest = std::max(flattest, fit.power.slope);
      steepest = std::min(steepest, fit.power.slope);
    }
    const std::size_t n = regime.output.size();
    for (std::size_t i = 0; i < n; ++i) {
      output.add(4 * regime.output[i] / exact.rows.at(i).value);
      grad_u.add(64 * regime.grad_u[i] / exact.rows.at(n + i).value);
      grad_v.add(64 * regime.grad_v[i] / exact.rows.at(2 * n + i).value);
    }
    const StudyResult transfer =
        audited(s, {cov_of(regime), std::string("attention.U=") + regime.U, "attention.V=1.0",
                    "sweep.lengths=[16,64,256,1024,4096]", "sweep.metrics=[\"output\"]"});
    for (std::size_t i = 0; i < regime.risk.size(); ++i) {
      risks.add(regime.risk[i] / transfer.rows.at(i).value);
    }
  }
  one_on_average(s, "mean squared errors of the output", output);
  one_on_average(s, "mean squared errors of the Jacobian in U", grad_u);
  one_on_average(s, "mean squared errors of the Jacobian in V", grad_v);
  one_on_average(s, "risks of softmax at the linear solution", risks);
  s.above("nine slopes from L = 16 to 1024 lie above the steepest printed one", steepest, -1.109);
  s.below("and below the flattest", flattest, -0.832);
}

// ---- Bohbot et al.

namespace {

constexpr double kHeadDim = 50;  // their horizon leaves 1/sqrt(d) of the scores out

MomentResult moments_at(const Subject& s, double scale) {
  const std::string factor = std::to_string(scale / std::sqrt(kHeadDim));
  Subject::Changes changes{"attention.score_scale=" + factor};
  if (!s.is_full()) {
    changes.insert(changes.end(), {"sweep.lengths=[250,500,1000,2000]", "sweep.replicates=32"});
  }
  const Config config = s.config(changes);
  const StudyOptions sweep = read_sweep(config.root(), s.seed());
  return output_moments(
      read_problem(config.root()),
      {.lengths = sweep.lengths, .replicates = sweep.replicates, .seed = s.seed()});
}

}  // namespace

void bohbot_moments(Subject& s) {
  const MomentResult smooth = moments_at(s, 0.05), sharp = moments_at(s, 50);
  const double H = std::sqrt(kHeadDim) * sharp.horizon;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string who = std::string(name(smooth.fits[i].moment)) + " of the outputs";
    s.equal(who + " converges like 1/√n at the smallest of 12 scales: slope", smooth.fits[i].slope,
            -0.5, 6 * smooth.fits[i].std_error);
    s.above(who + " converges more slowly at the largest: slope, less 3 standard errors",
            sharp.fits[i].slope - 3 * sharp.fits[i].std_error, smooth.fits[i].slope);
    s.below(who + " converges with more than the exponent 1/(2(1 + H²)) at their H there: slope",
            sharp.fits[i].slope, -0.5 / (1 + H * H));
  }
}

// ---- Lu et al.

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Twice the risk of the best linear head on a task of this dimension.
double finite_size(Index d, double alpha, double rho) {
  LinearRegressionTask task = LinearRegressionTask::isotropic(d);
  task.prompt_cov /= static_cast<double>(d);
  task.query_cov /= static_cast<double>(d);
  task.noise_variance = rho;
  task.query_noise = true;
  const Length L(std::llround(alpha * static_cast<double>(d)));
  return 2 * linear_risk(task, block_optimum(task, L), L);
}

Estimate mean_fit(const Pretraining& setting, int repeats, std::uint64_t seed) {
  std::vector<double> errors(static_cast<std::size_t>(repeats));
  parallel_for(repeats, [&](std::int64_t i) {
    errors[static_cast<std::size_t>(i)] =
        fitted_error(setting, Stream(seed).split(static_cast<std::uint64_t>(i)));
  });
  Moments all;
  for (const double error : errors) all.add(error);
  return all.estimate(Engine::direct);
}

// How far fits in dimension d are from the limit, relative to it.
Estimate relative_gap(Index d, double tau, double kappa, int repeats, std::uint64_t seed) {
  const Estimate fit =
      mean_fit({.dim = d, .alpha = 10, .tau = tau, .kappa = kappa, .rho = 0.01}, repeats, seed);
  const double limit = proportional_error(tau, 10, kappa > 0 ? kappa : kInfinity, 0.01);
  return {fit.value / limit - 1, fit.std_error / limit, fit.n, fit.engine};
}

}  // namespace

void proportional_limit(Subject& s) {
  const LinearRegressionTask task = s.task();
  const double d = static_cast<double>(task.dim), L = static_cast<double>(s.length().count());
  const double rho = task.noise_variance, x = (1 + rho) * d / L;
  s.equal("the flow ends at ρ + (x + 1/L)/(1 + x + 1/L): twice its risk", 2 * s.flow().summary.risk,
          rho + (x + 1 / L) / (1 + x + 1 / L), 1e-6);
  const auto gap = [&](Index dim) {
    return finite_size(dim, L / d, rho) - proportional_error(1e9, L / d, kInfinity, rho);
  };
  s.equal(
      "the exact error at finite size approaches e_ICL like 1/d: gap of d = 50 over that of 100",
      gap(50) / gap(100), 2, 0.02);
  const int repeats = s.is_full() ? 64 : 16;
  for (const double kappa : {0.0, 0.5}) {
    const std::string tasks = kappa > 0 ? ", κ = 0.5" : ", fresh tasks";
    for (const double tau : {0.5, 2.0}) {
      const Estimate small = relative_gap(8, tau, kappa, repeats, s.seed());
      const Estimate large = relative_gap(16, tau, kappa, repeats, s.seed());
      const std::string who =
          "fits to τ = " + std::string(tau < 1 ? "0.5" : "2") + tasks +
          " approach e_ICL: relative gap at d = 16, and 3 errors, against d = 8";
      s.below(who, std::abs(large.value) + 3 * large.std_error, small.value);
    }
  }
  const auto at = [&](double tau) {
    return mean_fit({.dim = 16, .alpha = 10, .tau = tau, .rho = 0.01}, repeats, s.seed()).value;
  };
  s.above("double descent: the error peaks at τ = 1, over twice that at τ = 0.5", at(1.0),
          2 * at(0.5));
}

}  // namespace esscher::paper
