// How far is a prompt of length L from its limit: D(L) = E_{z ~ nu} E_prompt |X_hat_L - X|^2 over a
// grid of lengths, for outputs and gradients, with errors, rates and the predicted regime.
//
//   StudyResult r = study({mu, attention, nu}, {.lengths = {10, 100, 1000}});
//
// Gaussian tokens and Gaussian queries: no sampling at all (gaussian_average.h). Otherwise queries
// are drawn from nu (or given as points), each with its own prompts, and errors count both levels.
// Mixture tokens and Gaussian queries sample no token, and queries by scrambled nets
// (query_nodes.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/estimate/rate.h"
#include "esscher/estimate/tails.h"
#include "esscher/json/json.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

// The law of queries, or queries given as points [n,d]; one of the two.
struct Problem {
  AnyMeasure mu;
  Attention attention;
  std::optional<AnyMeasure> nu = {};
  Matrix points = {};
};

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

struct StudyRow {
  std::int64_t L = 0;
  Metric metric = Metric::output;
  Engine engine = Engine::exact;
  double value = 0;
  double std_error = 0;   // 0: neither queries nor prompts were sampled
  Interval ci;            // 95 %
  double asymptotic = 0;  // constant / L; infinite in the slow regime
  double ess = 0;         // 1 / E sum omega^2 over queries and prompts
  double bias2 = 0;       // squared bias, averaged over queries; NaN from one prompt per query
  double variance = 0;
  double frozen = 0;   // fraction of queries with L < e^{tau^2}; NaN unless scores are Gaussian
  bool heavy = false;  // the interval cannot be trusted: see flag
  std::string flag;

  // E_z[M1/tau^2] = 1 - E_z[H] of Gaussian tokens, which alone have a frozen fraction: the factor
  // by which a finite prompt shrinks the operator; else NaN.
  [[nodiscard]] double shrink() const { return std::isfinite(frozen) ? 1 - 1 / ess : frozen; }
};

struct MetricFit {
  Metric metric = Metric::output;
  PowerFit power;
  std::vector<LocalExponent> local;
  std::vector<ShapeFit> shapes;  // empty for fewer than 4 lengths >= 2
};

// lambda = lambda_max(Sz^{1/2} U'GU Sz^{1/2}) for Gaussian tokens and queries, else NaN. Below 1/2
// D(L) ~ constant/L (a theorem), above D(L) ~ L^-gamma (a prediction).
struct RegimeReport {
  double lambda = 0;
  double gamma = 1;
  std::vector<double> constants;  // per metric; infinity where there is none
  std::string text;
};

struct StudyResult {
  std::string how;             // which engine and why, which randomness is left
  std::vector<StudyRow> rows;  // metric by metric, lengths increasing
  std::vector<MetricFit> fits;
  RegimeReport regime;
  // Per-query errors of the first metric at the middle length: their distribution over nu.
  std::int64_t query_length = 0;
  Vector query_values;
};

// In three steps, so that a run store can do the middle one: keys() name cells, compute(i) is a
// pure function of (problem, options, i), assemble(rows of all cells in order) makes the result.
class Study {
 public:
  Study(Problem problem, StudyOptions options);
  ~Study();
  Study(Study&&) noexcept;

  [[nodiscard]] const std::vector<std::string>& keys() const;
  [[nodiscard]] std::vector<Json> compute(std::size_t i) const;
  [[nodiscard]] StudyResult assemble(const std::vector<Json>& rows) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

StudyResult study(const Problem& problem, const StudyOptions& options);

// {"how","rows":[..],"fits":[..],"regime":{..},"frozen":..}
Json to_json(const StudyResult& result);

// The exponent against the scale of the tokens: mu is scaled by each sigma and the exponent
// measured on the last two decades of lengths. c2 = exponent * sigma^2 is the c_2 of
// Propositions 3.1 and 3.4.
struct SigmaPoint {
  double sigma = 0;
  Metric metric = Metric::output;
  double lambda = 0;
  double gamma = 0;  // predicted
  double exponent = 0;
  double std_error = 0;
  double c2 = 0;
};
Json to_json(const std::vector<SigmaPoint>& points);
std::vector<SigmaPoint> sigma_sweep(const Problem& problem, const StudyOptions& options,
                                    const std::vector<double>& sigmas);

}  // namespace esscher
