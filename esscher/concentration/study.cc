#include "esscher/concentration/study.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/study_state.h"
#include "esscher/measure/affine.h"
#include "esscher/prompt/errors.h"

namespace esscher {
namespace {

constexpr Index kBlock = 16;  // queries per cell

void check_options(const StudyOptions& o) {
  const auto bad = [](std::string_view what, const std::string& value, std::string_view expected) {
    throw_argument("study", what, value, expected);
  };
  if (o.lengths.empty()) bad("lengths", "empty", "at least one length");
  for (std::size_t i = 0; i < o.lengths.size(); ++i) {
    if (o.lengths[i] < 1 || (i > 0 && o.lengths[i] <= o.lengths[i - 1])) {
      bad("lengths", std::to_string(o.lengths[i]), "increasing integers >= 1");
    }
  }
  if (o.metrics.empty()) bad("metrics", "empty", "at least one metric");
  if (o.queries < 2) bad("queries", std::to_string(o.queries), "at least 2");
  if (o.replicates < 1) bad("replicates", std::to_string(o.replicates), "at least 1");
}

// How queries are averaged, as the end of the sentence that names the engine.
std::string query_text(const QueryPlan& plan, const StudyOptions& options) {
  if (plan.average) return ", and queries are averaged in closed form";
  const QuerySet& set = plan.queries;
  std::string text = "; queries are given";
  if (set.groups > 0) {
    text = "; queries are averaged by " + std::to_string(set.groups) +
           " independent scramblings of " + std::to_string(set.size() / set.groups) +
           " Sobol points";
  } else if (set.level == Queries::random) {
    text = "; queries are drawn from their law";
  }
  if (plan.choice.engine != Engine::exact && options.replicates < 2) {
    text += "; one prompt per query cannot tell bias from variance, replicates >= 2 can";
  }
  return text;
}

std::vector<std::string> keys_of(const QueryPlan& plan, const StudyOptions& options) {
  std::vector<std::string> keys;
  if (plan.average) {
    for (std::int64_t L : options.lengths) keys.push_back("L=" + std::to_string(L));
    return keys;
  }
  for (Index q = 0; q < plan.queries.size(); q += kBlock) {
    keys.push_back("queries=" + std::to_string(q));
  }
  return keys;
}

QueryPlan plan_of(const Problem& problem, const StudyOptions& options,
                  const std::vector<Metric>& metrics) {
  return plan_queries(problem, {.metrics = metrics,
                                .engine = options.engine,
                                .queries = options.queries,
                                .seed = options.seed,
                                .longest = options.lengths.back()});
}

// The metrics that one engine serves together, those of the first metric first. Gradients in U, K
// and Q may have another engine than the others.
std::vector<std::vector<Metric>> metrics_by_engine(const Problem& problem,
                                                   const StudyOptions& options) {
  const std::vector<Metric>& all = options.metrics;
  const bool first = reads_covariance(all.front());
  std::vector<Metric> same, other;
  for (const Metric metric : all) {
    (reads_covariance(metric) == first ? same : other).push_back(metric);
  }
  if (options.engine != Engine::automatic || other.empty()) return {all};
  const auto served_by = [&](bool covariance) {
    const Matrix none(0, problem.mu.dim());
    return choose_engine(options.engine, problem.tokens(), problem.attention, none, covariance)
        .engine;
  };
  if (served_by(first) == served_by(!first)) return {all};
  // Scores that reach too far for exact nodes leave one engine for all.
  const Engine engine = plan_of(problem, options, same).choice.engine;
  if (engine == plan_of(problem, options, other).choice.engine) return {all};
  return {same, other};
}

std::string names_of(const std::vector<Metric>& metrics, const char* between) {
  std::string out;
  for (const Metric metric : metrics) {
    out += (out.empty() ? "" : between) + std::string(name(metric));
  }
  return out;
}

}  // namespace

Study::Study(Problem problem, StudyOptions options) : metrics_(options.metrics) {
  check_options(options);
  check_problem("study", problem);
  for (std::vector<Metric>& metrics : metrics_by_engine(problem, options)) {
    StudyOptions part = options;
    part.metrics = std::move(metrics);
    add_part(problem, std::move(part));
  }
  choice_ = states_.front()->plan.choice;
  if (states_.size() == 1) return;
  choice_.reason.clear();
  for (const auto& state : states_) {
    choice_.reason += (choice_.reason.empty() ? "" : "; ") +
                      names_of(state->options.metrics, " and ") + ": " + state->plan.choice.reason;
  }
}

void Study::add_part(const Problem& problem, StudyOptions options) {
  QueryPlan plan = plan_of(problem, options, options.metrics);
  if (!problem.nu && plan.choice.engine != Engine::exact && options.replicates < 2) {
    throw_argument("study", "replicates", "1",
                   "at least 2 for given queries: one prompt shows no spread");
  }
  plan.choice.reason += query_text(plan, options);
  std::vector<std::string> keys = keys_of(plan, options);
  states_.push_back(std::make_shared<const State>(State{.problem = problem,
                                                        .options = std::move(options),
                                                        .plan = std::move(plan),
                                                        .keys = std::move(keys)}));
}

std::vector<Study> Study::parts() const {
  std::vector<Study> out;
  for (const auto& state : states_) {
    Study part;
    part.metrics_ = state->options.metrics;
    part.choice_ = state->plan.choice;
    part.states_ = {state};
    out.push_back(std::move(part));
  }
  return out;
}

// Keys name the metrics where there are two parts, so that neither takes the cells of the other.
Cells<PointRow> Study::cells() const {
  std::vector<std::string> keys;
  std::vector<std::pair<std::size_t, std::size_t>> place;
  for (std::size_t p = 0; p < states_.size(); ++p) {
    const State& state = *states_[p];
    const std::string start =
        states_.size() > 1 ? names_of(state.options.metrics, "+") + " " : std::string();
    for (std::size_t i = 0; i < state.keys.size(); ++i) {
      keys.push_back(start + state.keys[i]);
      place.emplace_back(p, i);
    }
  }
  return {.keys = std::move(keys),
          .compute = [states = states_, place = std::move(place)](std::size_t cell) {
            const auto [p, i] = place.at(cell);
            const State& state = *states[p];
            return state.plan.average ? state.compute_average(i) : state.compute_queries(i);
          }};
}

std::vector<PointRow> Study::State::compute_average(std::size_t i) const {
  const GaussianAverage& average = *plan.average;
  const std::int64_t L = options.lengths.at(i);
  const auto errors = average.at(L);
  const double ess = average.effective_sample_size(L);
  std::vector<PointRow> rows;
  for (std::size_t k = 0; k < errors.size(); ++k) {
    rows.push_back({.L = L,
                    .metric = options.metrics[k],
                    .value = errors[k].value,
                    .engine = Engine::exact,
                    .asymptotic = average.constant(k) / static_cast<double>(L),
                    .ess = ess,
                    .bias2 = errors[k].bias2,
                    .variance = errors[k].variance,
                    .frozen = frozen(L)});
  }
  return rows;
}

std::vector<PointRow> Study::State::query_rows(Index q) const {
  const Vector z = plan.queries.z.row(q).transpose();
  const Stream prompts = Stream(options.seed).split(kPromptStream);
  const auto table =
      query_errors(options.metrics, problem.tokens(), problem.attention, z, options.lengths,
                   {.engine = plan.choice.engine,
                    .replicates = options.replicates,
                    .stream = prompts.split(static_cast<std::uint64_t>(q))});
  std::vector<PointRow> rows;
  for (std::size_t k = 0; k < table.size(); ++k) {
    const double constant =
        asymptotic_constant(options.metrics[k], problem.tokens(), problem.attention, z);
    for (std::size_t l = 0; l < options.lengths.size(); ++l) {
      const QueryError& e = table[k][l];
      PointRow& row = rows.emplace_back(
          PointRow{.L = options.lengths[l],
                   .metric = options.metrics[k],
                   .query = q,
                   .value = e.value,
                   .std_error = e.std_error,
                   .engine = plan.choice.engine,
                   .asymptotic = constant / static_cast<double>(options.lengths[l]),
                   .weights2 = e.weights2,
                   .bias2 = e.bias2});
      // Drawn queries show how lengths move together; for given ones prompts have to.
      if (!problem.nu && !e.cov.empty()) row.cov = e.cov;
      if (plan.queries.groups > 0) row.weight = plan.queries.weights[q];
      if (!e.weights.empty()) row.parts = e.weights;
    }
  }
  return rows;
}

std::vector<PointRow> Study::State::compute_queries(std::size_t i) const {
  const Index first = static_cast<Index>(i) * kBlock;
  const Index count = std::min(kBlock, plan.queries.size() - first);
  std::vector<std::vector<PointRow>> parts(static_cast<std::size_t>(count));
  parallel_for(count,
               [&](std::int64_t j) { parts[static_cast<std::size_t>(j)] = query_rows(first + j); });
  std::vector<PointRow> rows;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(rows));
  return rows;
}

StudyResult study(const Problem& problem, const StudyOptions& options) {
  const Study s(problem, options);
  return s.assemble(compute_here(s.cells()));
}

std::vector<SigmaPoint> sigma_sweep(const Problem& problem, const StudyOptions& options,
                                    const std::vector<double>& scales) {
  if (!problem.is_plain()) {
    throw CapabilityError(
        "sigma_sweep: tokens are scaled as one law, a prompt of several parts has no such scale");
  }
  StudyOptions last = options;
  std::erase_if(last.lengths, [&](std::int64_t L) { return L < options.lengths.back() / 100; });
  if (last.lengths.size() < 3) {
    throw_argument("sigma_sweep", "lengths",
                   std::to_string(last.lengths.size()) + " in the last two decades",
                   "at least 3, to measure an exponent");
  }
  const Index d = problem.mu.dim();
  const double unit = problem.mu.sub_gaussian();
  std::vector<SigmaPoint> points;
  for (double scale : scales) {
    if (!(scale > 0)) throw_argument("sigma_sweep", "scale", to_text(scale), "a number > 0");
    const double sigma = scale * unit;
    Problem scaled = problem;
    scaled.mu = Affine(Vector::Zero(d), scale * Matrix::Identity(d, d), problem.mu);
    const StudyResult r = study(scaled, last);
    for (const MetricFit& fit : r.fits) {
      points.push_back({.scale = scale,
                        .sigma = sigma,
                        .metric = fit.metric,
                        .lambda = r.regime.lambda,
                        .gamma = r.regime.gamma,
                        .exponent = -fit.power.slope,
                        .std_error = fit.noise == CurveNoise::none ? 0 : fit.power.std_error,
                        .c2 = std::isfinite(sigma) ? -fit.power.slope * sigma * sigma : kUnknown});
    }
  }
  return points;
}

}  // namespace esscher
