#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/limit_size.h"
#include "esscher/concentration/detail/study_state.h"
#include "esscher/concentration/square_law.h"
#include "esscher/concentration/tau_law.h"
#include "esscher/estimate/tails.h"
#include "esscher/measure/stationary.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_gaussian.h"

namespace esscher {
namespace {

constexpr Index kFewQueries = 32, kManyQueries = 256;

// Exponents and shapes of one curve; nothing where points are too few or an error is zero.
std::optional<MetricFit> fit_of(Metric metric, const std::vector<std::int64_t>& lengths,
                                const std::vector<StudyRow>& rows, const Matrix& cov, double dof,
                                double limit) {
  Vector values(static_cast<Index>(rows.size()));
  for (Index l = 0; l < values.size(); ++l) values[l] = rows[static_cast<std::size_t>(l)].value;
  if (lengths.size() < 3 || !(values.minCoeff() > 0)) return std::nullopt;
  const bool noise_free = is_noise_free(cov);
  MetricFit fit{.metric = metric,
                .noise = noise_free ? CurveNoise::none : CurveNoise::sampled,
                .power = fit_power(lengths, values, cov, dof),
                .local = local_exponents(lengths, values, cov),
                .shapes = {},
                .limit = limit};
  if (noise_free) return fit;
  const auto usable = std::count_if(lengths.begin(), lengths.end(), [](auto L) { return L >= 2; });
  if (usable >= 4) fit.shapes = compare_shapes(lengths, values, cov);
  return fit;
}

// Rows of a store are those of the cells of this study, or the run is of another one.
template <class T>
const T& present(const std::optional<T>& value, const char* column) {
  if (!value) throw FileError(std::string("rows of a study: column ") + column + " is missing");
  return *value;
}

}  // namespace

double Study::State::frozen(std::int64_t L) const {
  if (plan.average) return plan.average->frozen_fraction(L);
  if (!plan.mu) return kUnknown;
  double count = 0;
  for (Index q = 0; q < plan.queries.size(); ++q) {
    const double tau =
        score_tau(*plan.mu, problem.attention.tilt(plan.queries.z.row(q).transpose()));
    count += tau * tau > std::log(static_cast<double>(L)) ? 1 : 0;
  }
  return count / static_cast<double>(plan.queries.size());
}

Study::State::Curve Study::State::average_curve(Metric metric,
                                                std::span<const PointRow> rows) const {
  Curve curve;
  for (const PointRow& row : rows) {
    if (row.metric != metric) continue;
    curve.rows.push_back({.L = row.L,
                          .metric = metric,
                          .value = row.value,
                          .ci = {row.value, row.value},
                          .asymptotic = row.asymptotic,
                          .ess = present(row.ess, "ess"),
                          .bias2 = row.bias2,
                          .variance = present(row.variance, "variance"),
                          .frozen = present(row.frozen, "frozen")});
  }
  return curve;
}

Study::State::QueryTable Study::State::query_table(Metric metric,
                                                   std::span<const PointRow> rows) const {
  const Index Q = plan.queries.size(), nL = static_cast<Index>(options.lengths.size());
  const Matrix none = Matrix::Constant(Q, nL, kUnknown);
  QueryTable table{.value = none,
                   .error = none,
                   .weights2 = none,
                   .bias2 = none,
                   .asymptotic = none,
                   .parts = {},
                   .prompts = Matrix::Zero(nL, nL)};
  std::map<std::int64_t, Index> column;
  for (Index l = 0; l < nL; ++l) column[options.lengths[static_cast<std::size_t>(l)]] = l;
  const double share = 1 / static_cast<double>(Q * Q);
  for (const PointRow& row : rows) {
    if (row.metric != metric) continue;
    const Index q = present(row.query, "query"), l = column.at(row.L);
    table.value(q, l) = row.value;
    table.error(q, l) = row.std_error;
    table.weights2(q, l) = present(row.weights2, "weights2");
    table.bias2(q, l) = row.bias2;
    table.asymptotic(q, l) = row.asymptotic;
    if (row.parts) {
      table.parts.resize(row.parts->size(), none);
      for (std::size_t k = 0; k < row.parts->size(); ++k) table.parts[k](q, l) = (*row.parts)[k];
    }
    if (!row.cov) continue;
    for (Index i = 0; i <= l; ++i) {
      const double x = row.cov->at(static_cast<std::size_t>(i));
      table.prompts(i, l) += share * x;
      if (i < l) table.prompts(l, i) += share * x;
    }
  }
  return table;
}

// Queries that were drawn or form a net move together in `independent`; given ones have the law of
// their prompts, unless they have no noise at all.
TwoLevel Study::State::average_of(const VectorView& values, const VectorView& errors,
                                  const VectorView& independent, const SquareLaw& law) const {
  if (plan.queries.level != Queries::fixed) return plan.queries.interval(independent);
  const Index replicates = static_cast<Index>(options.replicates);
  if (law.means.size() == 0) return two_level(values, errors, replicates, Queries::fixed);
  return mean_of_squares(values, errors, replicates, law);
}

// Why the interval of an average over drawn queries cannot be trusted; empty if it can. The errors
// are weighted as they enter the average. Errors of Gaussian tokens grow like e^{tau^2} over Gaussian
// queries, so their tail index 1/(2 lambda) is known; measured coverage: docs/calibration.md.
std::string Study::State::query_flag(const VectorView& errors) const {
  if (plan.queries.groups == 0) {
    if (errors.size() < kFewQueries) {
      return "fewer than " + std::to_string(kFewQueries) +
             " queries do not show how their errors are spread";
    }
    const double index = 0.5 / lambda();
    if (index < (errors.size() < kManyQueries ? 4 : 3)) {
      return "the errors of Gaussian queries have tail index 1/(2 lambda) = " + brief(index, 3) +
             ": rare queries carry the average";
    }
  }
  return tail_report(errors).reason;
}

Study::State::Curve Study::State::query_curve(Metric metric, const QueryTable& table) const {
  const QuerySet& set = plan.queries;
  const bool fixed = set.level == Queries::fixed;
  const bool no_constant = query_average(problem).infinite;
  const Matrix value = set.column_shares(table.value), weights2 = set.column_shares(table.weights2);
  const Matrix bias2 = set.column_shares(table.bias2),
               asymptotic = set.column_shares(table.asymptotic);
  const Matrix weighted = set.weights.asDiagonal() * table.value;  // what tails are read from
  const Matrix independent = set.independent(value);
  const bool noisy = fixed && plan.choice.engine != Engine::exact;
  const std::vector<ErrorLaw> laws =
      noisy && problem.is_plain() ? error_laws(metric, problem, set.z) : std::vector<ErrorLaw>();
  const SquareLaw squares = square_law(laws);
  Curve curve;
  for (Index l = 0; l < value.cols(); ++l) {
    const TwoLevel t = average_of(value.col(l), table.error.col(l), independent.col(l), squares);
    StudyRow r{.L = options.lengths[static_cast<std::size_t>(l)],
               .metric = metric,
               .engine = plan.made_by(),
               .value = t.mean,
               .std_error = t.std_error,
               .ci = t.ci,
               .asymptotic = no_constant ? HUGE_VAL : asymptotic.col(l).mean(),
               .ess = 1 / weights2.col(l).mean(),
               .bias2 = bias2.col(l).mean()};
    // The estimate is unbiased, so noise may put it outside what a part can be.
    if (!std::isnan(r.bias2)) r.bias2 = std::clamp(r.bias2, 0.0, r.value);
    r.variance = r.value - r.bias2;
    r.frozen = frozen(r.L);
    if (noisy && !laws.empty()) r.flag = average_flag(laws, r.L);
    if (!fixed) r.flag = query_flag(weighted.col(l));
    r.heavy = !r.flag.empty();
    r.weights.resize(static_cast<Index>(table.parts.size()));
    for (std::size_t k = 0; k < table.parts.size(); ++k) {
      r.weights[static_cast<Index>(k)] = set.average(table.parts[k].col(l));
    }
    curve.rows.push_back(std::move(r));
  }
  // Cov(log D_i, log D_j): by scramblings, by queries when they are drawn, by prompts when given.
  const Matrix cov = fixed ? table.prompts : covariance_of_means(independent);
  const Vector inverse = value.colwise().mean().array().max(1e-300).inverse();
  curve.cov = inverse.asDiagonal() * cov * inverse.asDiagonal();
  curve.dof = static_cast<double>(fixed ? set.size() * std::max<Index>(1, options.replicates - 1)
                                        : independent.rows() - 1);
  return curve;
}

double Study::State::lambda() const {
  if (!plan.mu || !plan.nu) return kUnknown;
  const Matrix A = problem.attention.U().transpose() * plan.mu->cov * problem.attention.U();
  return TauLaw(A, plan.nu->mean, plan.nu->cov).lambda();
}

RegimeReport Study::State::regime() const {
  std::vector<double> constants;
  if (plan.mu && plan.nu) {
    std::optional<GaussianAverage> average = plan.average;
    if (!average) average.emplace(options.metrics, *plan.mu, problem.attention, *plan.nu);
    for (std::size_t k = 0; k < options.metrics.size(); ++k) {
      constants.push_back(average->constant(k));
    }
    return regime_report(lambda(), std::move(constants));
  }
  const QueryAverage tails = query_average(problem);
  if (tails.infinite) {
    constants.assign(options.metrics.size(), HUGE_VAL);
    RegimeReport report = regime_report(tails.lambda, std::move(constants), false);
    return is_dependent(problem.mu) ? with_dependence(std::move(report), HUGE_VAL) : report;
  }
  const auto averaged = [this](Metric metric, const auto& constant) {
    Vector at_query(plan.queries.size());
    for (Index q = 0; q < at_query.size(); ++q) {
      at_query[q] = constant(metric, Vector(plan.queries.z.row(q).transpose()));
    }
    return plan.queries.average(at_query);
  };
  for (Metric metric : options.metrics) {
    constants.push_back(averaged(metric, [this](Metric m, const Vector& z) {
      return asymptotic_constant(m, problem.tokens(), problem.attention, z);
    }));
  }
  RegimeReport report = regime_report(tails.lambda, std::move(constants), false);
  if (!is_dependent(problem.mu)) return report;
  const auto independent = [this](Metric m, const Vector& z) {
    return independent_constant(m, problem.mu, problem.attention, z);
  };
  return with_dependence(std::move(report), averaged(options.metrics[0], independent));
}

std::int64_t Study::State::middle_length() const {
  return options.lengths[options.lengths.size() / 2];
}

Vector Study::State::fresh_query_values() const {
  constexpr Index kMaxShown = 400;
  const Index shown = plan.average ? kMaxShown : std::min<std::int64_t>(kMaxShown, options.queries);
  const Matrix z = drawn_queries(*problem.nu, shown, options.seed).z;
  Vector values(shown);
  parallel_for(shown, [&](std::int64_t q) {
    const Matrix at = z.row(q);
    const Metric metric = options.metrics[0];
    const bool sharp = choose_engine(Engine::automatic, problem.tokens(), problem.attention, at,
                                     reads_covariance(metric))
                           .engine != Engine::exact;
    values[q] =
        sharp ? kUnknown
              : query_errors({metric}, problem.tokens(), problem.attention, at.row(0).transpose(),
                             {middle_length()}, {.engine = Engine::exact})[0][0]
                    .value;
  });
  return values;
}

StudyResult Study::assemble(std::span<const PointRow> rows) const {
  std::vector<StudyResult> parts;
  for (const auto& state : states_) parts.push_back(state->assemble(rows));
  StudyResult result = std::move(parts.front());
  if (parts.size() == 1) return result;
  parts.front() = result;
  result.how = choice_.reason;
  result.metrics = metrics_;
  result.limits.clear();
  result.rows.clear();
  result.fits.clear();
  result.regime.constants.clear();
  for (const Metric metric : metrics_) {
    for (const StudyResult& part : parts) {
      const auto found = std::find(part.metrics.begin(), part.metrics.end(), metric);
      if (found == part.metrics.end()) continue;
      const auto k = static_cast<std::size_t>(found - part.metrics.begin());
      const auto of_metric = [metric](const auto& item) { return item.metric == metric; };
      result.limits.push_back(part.limits[k]);
      result.regime.constants.push_back(part.regime.constants.at(k));
      std::copy_if(part.rows.begin(), part.rows.end(), std::back_inserter(result.rows), of_metric);
      std::copy_if(part.fits.begin(), part.fits.end(), std::back_inserter(result.fits), of_metric);
    }
  }
  return result;
}

StudyResult Study::State::assemble(std::span<const PointRow> rows) const {
  const State& s = *this;
  StudyResult result;
  result.how = s.plan.choice.reason;
  result.metrics = s.options.metrics;
  result.regime = s.regime();
  if (!s.problem.is_plain()) {
    result.parts = part_names(*s.problem.prompt);
    const std::string none = no_limit_reason(*s.problem.prompt);
    if (!none.empty()) {
      result.regime.text = "the prompt has no limit, because " + none +
                           "; errors are about its saturation value and do not vanish";
    }
  }
  result.query_length = s.middle_length();
  // Neither a closed form nor a net shows how single queries are spread.
  if (s.plan.average || s.plan.queries.groups > 0) result.query_values = s.fresh_query_values();
  for (const Metric metric : s.options.metrics) {
    State::Curve curve;
    if (s.plan.average) {
      curve = s.average_curve(metric, rows);
    } else {
      const State::QueryTable table = s.query_table(metric, rows);
      curve = s.query_curve(metric, table);
      if (result.query_values.size() == 0) {
        result.query_values = table.value.col(table.value.cols() / 2);
      }
    }
    result.limits.push_back(limit_size(metric, result.limits.size(), s.problem, s.plan));
    if (auto fit = fit_of(metric, s.options.lengths, curve.rows, curve.cov, curve.dof,
                          result.regime.gamma)) {
      result.fits.push_back(*std::move(fit));
    }
    std::move(curve.rows.begin(), curve.rows.end(), std::back_inserter(result.rows));
  }
  return result;
}

}  // namespace esscher
