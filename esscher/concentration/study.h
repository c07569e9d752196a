// How far is a prompt of length L from its limit: D(L) = E_{z ~ nu} E_prompt |X_hat_L - X|^2 over a
// grid of lengths, for outputs and gradients, with errors, rates and the predicted regime.
//
//   StudyResult r = study({mu, attention, nu}, {.lengths = {10, 100, 1000}});
//
// Gaussian tokens and Gaussian queries: no sampling at all (gaussian_average.h). Otherwise queries
// are drawn from nu (or given as points), each with its own prompts, and errors count both levels.
// Mixture tokens and Gaussian queries sample no token, and queries by scrambled nets (queries.h).
//
// Engine::automatic is chosen for each metric. Where output and grad_v are exact and gradients in U, K
// and Q are not, a study has two parts, each with queries of its own, and every row says its engine.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "esscher/attention/metric.h"
#include "esscher/base/cells.h"
#include "esscher/base/estimate.h"
#include "esscher/concentration/limit_size.h"
#include "esscher/concentration/problem.h"
#include "esscher/concentration/regime.h"
#include "esscher/estimate/rate.h"
#include "esscher/prompt/engine.h"

namespace esscher {

struct StudyOptions {
  std::vector<std::int64_t> lengths;  // increasing, >= 1
  std::vector<Metric> metrics = {Metric::output, Metric::grad_v, Metric::grad_u};
  Engine engine = Engine::automatic;
  std::int64_t queries = 512;  // drawn from nu, where it has to be sampled; nets may take more
  // Prompts per query, where they have to be sampled; one shows neither bias nor variance, and is
  // refused for given queries, where it would show no error either.
  std::int64_t replicates = 8;
  std::uint64_t seed = 0;
};

// What a cell of a study computes: the error at one length, averaged over all queries in closed
// form, or at one query.
struct PointRow {
  std::int64_t L = 0;
  Metric metric = Metric::output;
  std::optional<std::int64_t> query = {};
  double value = 0;
  double std_error = 0;
  Engine engine = Engine::exact;
  double asymptotic = 0;
  std::optional<double> ess = {};
  std::optional<double> weights2 = {};
  double bias2 = 0;
  std::optional<double> variance = {};
  std::optional<double> frozen = {};
  std::optional<std::vector<double>> cov = {};
  std::optional<double> weight = {};
  std::optional<std::vector<double>> parts = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("metric", row.metric, "", "what is compared with its limit");
    column("query", row.query, "", "number of the query; absent for the average over all queries");
    column("value", row.value, "", "mean-square error");
    column("std_error", row.std_error, "", "its standard error over prompts");
    column("engine", row.engine, "", "how prompts were averaged");
    column("asymptotic", row.asymptotic, "", "constant / L; infinite where there is no constant");
    column("ess", row.ess, "tokens", "effective sample size 1 / E sum omega^2, all queries");
    column("weights2", row.weights2, "", "E sum omega^2 at the query");
    column("bias2", row.bias2, "", "squared bias; nan from one prompt");
    column("variance", row.variance, "", "value - bias2, all queries");
    column("frozen", row.frozen, "", "fraction of queries with L < e^(tau^2)");
    column("cov", row.cov, "",
           "covariances of value with those at shorter lengths and itself; given queries only");
    column("weight", row.weight, "", "weight of the query in a net");
    column("parts", row.parts, "", "expected softmax weight of every part of the prompt");
  }
};

struct StudyRow {
  std::int64_t L = 0;
  Metric metric = Metric::output;
  Engine engine = Engine::exact;
  double value = 0;
  double std_error = 0;   // 0: neither queries nor prompts were sampled
  Interval ci = {};       // 95 %
  double asymptotic = 0;  // constant / L; infinite in the slow regime
  double ess = 0;         // 1 / E sum omega^2 over queries and prompts
  double bias2 = 0;       // squared bias, averaged over queries; NaN from one prompt per query
  double variance = 0;
  double frozen = 0;   // fraction of queries with L < e^{tau^2}; NaN unless scores are Gaussian
  bool heavy = false;  // the interval cannot be trusted: see flag
  std::string flag = {};
  // Expected softmax weight of every part of the prompt, StudyResult::parts; empty without them.
  Vector weights = {};

  // E_z[M1/tau^2] = 1 - E_z[H] of Gaussian tokens, which alone have a frozen fraction: the factor
  // by which a finite prompt shrinks the operator; else NaN.
  [[nodiscard]] double shrink() const { return std::isfinite(frozen) ? 1 - 1 / ess : frozen; }

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("metric", row.metric, "", "what is compared with its limit");
    column("engine", row.engine, "", "how prompts were averaged");
    column("value", row.value, "", "D(L), the mean-square error over queries and prompts");
    column("std_error", row.std_error, "", "its standard error; 0 where nothing was sampled");
    std::vector<double> ci = {row.ci.lo, row.ci.hi};
    column("ci", ci, "", "95 % interval of value: lower end, upper end");
    column("asymptotic", row.asymptotic, "", "constant / L; inf in the slow regime");
    column("ess", row.ess, "tokens", "effective sample size 1 / E sum omega^2");
    column("bias2", row.bias2, "", "squared bias; nan from one prompt per query");
    column("variance", row.variance, "", "value - bias2");
    double shrink = row.shrink();
    column("shrink", shrink, "", "factor of the mean output of Gaussian tokens; else nan");
    column("frozen", row.frozen, "", "fraction of queries with L < e^(tau^2); nan unless Gaussian");
    column("heavy", row.heavy, "", "whether rare queries or prompts carry the average");
    std::optional<std::string> flag;
    if (row.heavy) flag = row.flag;
    column("flag", flag, "", "why the interval cannot be trusted; absent if it can");
    if constexpr (!std::is_const_v<Row>) {
      if (ci.size() == 2) row.ci = {ci[0], ci[1]};
      row.flag = flag.value_or("");
    }
  }
};

// Whether the points of a curve were sampled. Points without noise have no interval: what differs
// from a straight line there is the curve itself.
enum class CurveNoise { none, sampled };

constexpr auto enum_names(CurveNoise) {
  return EnumNames<CurveNoise, 2>{"noise of a curve",
                                  {{{CurveNoise::none, "none"}, {CurveNoise::sampled, "sampled"}}}};
}

struct MetricFit {
  Metric metric = Metric::output;
  CurveNoise noise = CurveNoise::sampled;
  PowerFit power;
  std::vector<LocalExponent> local;  // one or more
  std::vector<ShapeFit> shapes;      // empty without noise, and for fewer than 4 lengths >= 2
  double limit = std::numeric_limits<double>::quiet_NaN();  // of the exponent; NaN if not known

  // For output only: a constant does not read back to the last bit.
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("metric", row.metric, "", "what is compared with its limit");
    column("noise", row.noise, "", "whether the points of the curve were sampled");
    column("slope", row.power.slope, "", "slope of log D over log L, over all lengths");
    std::optional<double> std_error;
    std::optional<std::vector<double>> ci;
    if (row.noise == CurveNoise::sampled) {
      std_error = row.power.std_error;
      ci = {row.power.ci.lo, row.power.ci.hi};
    }
    column("std_error", std_error, "", "standard error of the slope; absent without noise");
    column("ci", ci, "", "95 % interval of the slope: lower end, upper end; absent without noise");
    double constant = std::exp(row.power.log_c);
    column("constant", constant, "", "c of D(L) = c L^slope");
    std::optional<LocalExponent> first, last;
    if (!row.local.empty()) first = row.local.front(), last = row.local.back();
    double first_exponent = first ? first->exponent : row.limit;
    double last_exponent = last ? last->exponent : row.limit;
    column("first_exponent", first_exponent, "", "exponent between the two shortest lengths");
    column("last_exponent", last_exponent, "", "exponent between the two longest lengths");
    column("limit_exponent", row.limit, "", "what the exponent tends to; nan if not known");
    column("local", row.local, "", "exponents between neighbouring lengths");
    column("shapes", row.shapes, "", "shapes of decay, compared; none without noise");
  }
};

struct StudyResult {
  std::string how;  // which engine and why, which randomness is left
  std::vector<Metric> metrics;
  std::vector<LimitSize> limits;  // per metric
  std::vector<StudyRow> rows;     // metric by metric, lengths increasing
  std::vector<MetricFit> fits;
  RegimeReport regime;
  std::vector<std::string> parts;  // names of the parts of the prompt; empty if tokens are iid
  // Per-query errors of the first metric at the middle length: their distribution over nu. NaN
  // where the scores of a query are too sharp for the exact engine.
  std::int64_t query_length = 0;
  Vector query_values;
};

// Where the first metric of a study reaches a tolerance.
enum class ReachStatus {
  certified,     // D(L) <= eps < D(L-1), both evaluated
  interpolated,  // between two lengths of the study, by the power law through them
  extrapolated,  // beyond them, by constant / L
  shorter,       // the shortest length of the study is enough already
  beyond,        // beyond the study, and there is no constant to extrapolate with
};

constexpr auto enum_names(ReachStatus) {
  return EnumNames<ReachStatus, 5>{"status of a reached tolerance",
                                   {{{ReachStatus::certified, "certified"},
                                     {ReachStatus::interpolated, "interpolated"},
                                     {ReachStatus::extrapolated, "extrapolated"},
                                     {ReachStatus::shorter, "shorter"},
                                     {ReachStatus::beyond, "beyond"}}}};
}

struct Reach {
  Metric metric = Metric::output;
  double fraction = 0;  // root-mean-square error as a fraction of the limit
  ReachStatus status = ReachStatus::beyond;
  std::optional<std::int64_t> length = {};  // absent: beyond
  // Interpolated: where the ends of the 95 % intervals reach it; absent outside of the study.
  std::optional<std::int64_t> low = {}, high = {};

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("metric", row.metric, "", "what is compared with its limit");
    column("fraction", row.fraction, "", "root-mean-square error as a fraction of the limit");
    column("status", row.status, "", "how the length was found");
    column("length", row.length, "tokens", "the length; absent if it lies beyond the study");
    column("low", row.low, "tokens", "lower end of its 95 % interval, if it was sampled");
    column("high", row.high, "tokens", "upper end of its 95 % interval, if it was sampled");
  }
};

// In three steps, so that a run store can do the middle one: cells() are pure functions of problem
// and options, their rows are computed here or there, assemble() makes the result of all rows in
// the order of the cells.
class Study {
 public:
  Study(Problem problem, StudyOptions options);

  // The engine of the first metric, and the reasons of all.
  [[nodiscard]] const EngineChoice& choice() const { return choice_; }
  // This study as studies of one engine each, the one of the first metric first.
  [[nodiscard]] std::vector<Study> parts() const;
  [[nodiscard]] const std::vector<Metric>& metrics() const { return metrics_; }
  [[nodiscard]] Cells<PointRow> cells() const;
  [[nodiscard]] StudyResult assemble(std::span<const PointRow> rows) const;
  // The length from which the root-mean-square error of the first metric is at most `fraction` of
  // the limit: evaluated where errors are averaged in closed form, else read off the curve.
  [[nodiscard]] Reach reach(double fraction, const StudyResult& result) const;

 private:
  struct State;
  Study() = default;
  void add_part(const Problem& problem, StudyOptions options);

  std::vector<Metric> metrics_;
  EngineChoice choice_;
  std::vector<std::shared_ptr<const State>> states_;  // that of the first metric first
};

StudyResult study(const Problem& problem, const StudyOptions& options);

// The exponent against sigma, the sub-Gaussian constant of the tokens: mu is multiplied by each
// scale, and the exponent is measured on the last two decades of lengths. c2 = exponent * sigma^2 is
// the c_2 of Propositions 3.1 and 3.4; it is NaN where sigma is infinite.
struct SigmaPoint {
  double scale = 0;
  double sigma = 0;
  Metric metric = Metric::output;
  double lambda = 0;
  double gamma = 0;  // predicted
  double exponent = 0;
  double std_error = 0;
  double c2 = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("scale", row.scale, "", "factor of the tokens");
    column("sigma", row.sigma, "", "sub-Gaussian constant of the scaled tokens");
    column("metric", row.metric, "", "what is compared with its limit");
    column("lambda", row.lambda, "",
           "largest eigenvalue of the law of tau^2; nan unless tails are Gaussian");
    column("gamma", row.gamma, "", "predicted exponent");
    column("exponent", row.exponent, "", "measured exponent");
    column("std_error", row.std_error, "", "its standard error; 0 where nothing was sampled");
    column("c2", row.c2, "", "exponent times sigma^2");
  }
};
std::vector<SigmaPoint> sigma_sweep(const Problem& problem, const StudyOptions& options,
                                    const std::vector<double>& scales);

}  // namespace esscher
