#include "esscher/risk/temperature.h"

#include <algorithm>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <functional>

#include "esscher/base/error.h"
#include "esscher/estimate/moments.h"
#include "esscher/risk/batch.h"
#include "esscher/risk/detail/on_nodes.h"

namespace esscher {
namespace {

constexpr int kReach = 13;     // factors from 2^-13 to 2^13
constexpr int kScanNodes = 8;  // log2 of the nodes that find the valley
constexpr Index kPromptsAtOnce = 32;
// Sets of nodes: those of risk() are stream.split(1), of Bayes split(2).
constexpr std::uint64_t kSearch = 3, kFresh = 4, kScan = 5;

using AlongFactor = std::function<double(double f)>;

// R_L(f) on fixed nodes, draws or prompts, chosen for factors up to `sharpest`.
AlongFactor risk_along(const LinearRegressionTask& task, const std::vector<Readout>& heads,
                       ModelKind kind, Length length, const RiskOptions& options, double sharpest) {
  if (heads.size() == 1) {
    const std::vector<Readout> near = at_factor(heads, sharpest);
    const bool is_on_nodes =
        choose_risk(task, 1, kind, length, options.engine).method == RiskMethod::quadrature;
    const RiskFunction at =
        is_on_nodes ? detail::risk_on_nodes(task, length.count(), options, near, Scrambling::nested)
                    : risk_function(task, kind, length, options, near);
    return [=](double f) { return at(at_factor(heads, f).front(), nullptr); };
  }
  const RiskChoice choice = choose_risk(task, heads.size(), kind, length, options.engine);
  const Batch batch(task, kind, choice.engine, length, kPromptsAtOnce, true);
  const std::int64_t batches =
      std::max<std::int64_t>(1, options.draws / (kPromptsAtOnce * options.scramblings));
  return [=, stream = options.stream](double f) {
    const std::vector<Readout> scaled = at_factor(heads, f);
    Moments losses;
    for (std::int64_t i = 0; i < batches; ++i) {
      losses.add(batch(scaled, stream.split(static_cast<std::uint64_t>(i))).loss);
    }
    return losses.mean();
  };
}

RiskOptions on_set(RiskOptions options, std::uint64_t which, Index set) {
  options.stream = options.stream.split(which).split(static_cast<std::uint64_t>(set));
  return options;
}

// R_L(f) = R_L(0) + b f + a f^2 from three of its points.
BestFactor vertex(const AlongFactor& risk) {
  const double zero = risk(0), one = risk(1), minus = risk(-1);
  const double a = 0.5 * (one + minus) - zero, b = 0.5 * (one - minus);
  if (!(a > 0 && b < 0)) return {};
  return {.factor = -b / (2 * a)};
}

// The power of two with the smallest risk; nothing at the ends of the scan.
std::optional<double> valley(const AlongFactor& risk) {
  int best = -kReach;
  double lowest = HUGE_VAL;
  for (int i = -kReach; i <= kReach; ++i) {
    const double value = risk(std::ldexp(1.0, i));
    if (!(value < lowest)) continue;
    lowest = value;
    best = i;
  }
  if (std::abs(best) == kReach) return std::nullopt;
  return std::ldexp(1.0, best);
}

double minimum_near(const AlongFactor& risk, double f) {
  const auto at = [&](double x) { return risk(std::exp(x)); };
  const double x = std::log(f), reach = 2 * std::log(2.0);
  constexpr int kBits = 30;  // half of a double's, all that values tell of a minimum
  return std::exp(boost::math::tools::brent_find_minima(at, x - reach, x + reach, kBits).first);
}

bool has_closed_form(const TemperatureProblem& p, Length length) {
  return choose_risk(p.task, p.heads.size(), p.kind, length, p.risk.engine).method ==
         RiskMethod::closed_form;
}

void check(const TemperatureProblem& p) {
  if (p.heads.empty()) throw_argument("temperature", "heads", "none", "at least one head");
  if (!p.scheduled.empty() && p.scheduled.size() != p.lengths.size()) {
    throw_argument("temperature", "scheduled", std::to_string(p.scheduled.size()) + " factors",
                   "one for each of " + std::to_string(p.lengths.size()) + " lengths");
  }
  for (const std::vector<double>* list : {&p.scheduled, &p.factors}) {
    for (const double f : *list) {
      if (!(f > 0 && std::isfinite(f))) {
        throw_argument("temperature", "factor", to_text(f), "a number > 0");
      }
    }
  }
}

void set_risk(TemperatureRow& row, const Estimate& risk) {
  row.risk = risk.value;
  row.std_error = risk.std_error;
  row.engine = risk.engine;
  row.heavy = risk.heavy;
}

// `p` has the shifted task.
void set_best(TemperatureRow& row, const TemperatureProblem& p) {
  const BestFactor best = best_factor(p.task, p.heads, p.kind, row.L, p.risk);
  row.limit_factor = best_factor(p.task, p.heads, p.kind, Length::infinity(), p.risk).factor;
  const Estimate before = risk(p.task, at_factor(p.heads, row.scheduled), p.kind, row.L, p.risk);
  row.risk_before = before.value;
  if (!best.factor) return;
  const double f = *best.factor;
  row.factor = f;
  row.factor_std_error = best.std_error;
  row.temperature = 1 / f;
  set_risk(row, risk(p.task, at_factor(p.heads, f), p.kind, row.L, p.risk));
  if (has_closed_form(p, row.L)) {
    row.gain = *row.risk_before - *row.risk;
    row.gain_std_error = 0;
    return;
  }
  Moments gains;
  for (Index i = 0; i < p.risk.scramblings; ++i) {
    const AlongFactor at = risk_along(p.task, p.heads, p.kind, row.L, on_set(p.risk, kFresh, i),
                                      std::max(f, row.scheduled));
    gains.add(at(row.scheduled) - at(f));
  }
  row.gain = gains.mean();
  row.gain_std_error = gains.std_error();
}

std::vector<TemperatureRow> rows_of(const TemperatureProblem& p, const std::string& shift,
                                    std::size_t place) {
  const Length L = p.lengths[place];
  const double scheduled = p.scheduled.empty() ? 1 : p.scheduled[place];
  std::vector<TemperatureRow> rows;
  for (const double f : p.factors) {
    TemperatureRow row{.shift = shift,
                       .L = L,
                       .factor = scheduled * f,
                       .temperature = 1 / (scheduled * f),
                       .scheduled = scheduled};
    set_risk(row, risk(p.task, at_factor(p.heads, scheduled * f), p.kind, L, p.risk));
    rows.push_back(std::move(row));
  }
  TemperatureRow best{
      .what = TemperatureRowKind::best, .shift = shift, .L = L, .scheduled = scheduled};
  set_best(best, p);
  rows.push_back(std::move(best));
  return rows;
}

}  // namespace

std::vector<Readout> at_factor(std::vector<Readout> heads, double f) {
  for (Readout& head : heads) head.U *= f;
  return heads;
}

BestFactor best_factor(const LinearRegressionTask& task, const std::vector<Readout>& heads,
                       ModelKind kind, Length length, const RiskOptions& options) {
  const RiskChoice choice = choose_risk(task, heads.size(), kind, length, options.engine);
  if (choice.method == RiskMethod::closed_form) {
    return vertex(risk_along(task, heads, kind, length, options, 1));
  }
  RiskOptions scan = on_set(options, kScan, 0);
  scan.log2_nodes = std::min(scan.log2_nodes, kScanNodes);
  scan.draws = std::min<std::int64_t>(scan.draws, 1000);
  // risk() weighs its control variate at every factor; fixed nodes do not, and their error there
  // grows like the square of the factor.
  const std::optional<double> near =
      valley([&](double f) { return risk(task, at_factor(heads, f), kind, length, scan).value; });
  if (!near) return {};
  Moments minima;
  for (Index i = 0; i < options.scramblings; ++i) {
    minima.add(minimum_near(
        risk_along(task, heads, kind, length, on_set(options, kSearch, i), 2 * *near), *near));
  }
  return {.factor = minima.mean(), .std_error = minima.std_error()};
}

Cells<TemperatureRow> temperature_cells(const TemperatureProblem& problem) {
  check(problem);
  struct Place {
    LinearRegressionTask task;
    std::string shift;
    std::size_t length = 0;
  };
  std::vector<Place> places;
  Cells<TemperatureRow> cells;
  const auto add = [&](const LinearRegressionTask& task, const std::string& shift) {
    for (std::size_t i = 0; i < problem.lengths.size(); ++i) {
      places.push_back({task, shift, i});
      cells.keys.push_back("shift=" + shift + "/L=" + problem.lengths[i].text());
    }
  };
  add(problem.task, "none");
  for (const TaskShift& shift : problem.shifts) add(shifted(problem.task, shift), shift.text());
  cells.compute = [problem, places = std::move(places)](std::size_t i) {
    const Place& at = places.at(i);
    TemperatureProblem there = problem;
    there.task = at.task;
    return rows_of(there, at.shift, at.length);
  };
  return cells;
}

}  // namespace esscher
