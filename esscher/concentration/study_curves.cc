#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/study_state.h"
#include "esscher/concentration/query_nodes.h"
#include "esscher/concentration/tau_law.h"
#include "esscher/estimate/two_level.h"
#include "esscher/prompt/errors.h"

namespace esscher {
namespace {

double read(const Json& row, const char* key) {
  const Json& x = row.at(key);
  return x.is_null() ? kUnknown : x.get<double>();
}

}  // namespace

double Study::State::frozen(std::int64_t L) const {
  if (average) return average->frozen_fraction(L);
  if (!mu) return kUnknown;
  double count = 0;
  for (Index q = 0; q < queries.rows(); ++q) {
    const double tau = tau_of(*mu, problem.attention, queries.row(q).transpose());
    count += tau * tau > std::log(static_cast<double>(L)) ? 1 : 0;
  }
  return count / static_cast<double>(queries.rows());
}

Study::State::Curve Study::State::average_curve(std::size_t metric,
                                                const std::vector<Json>& rows) const {
  Curve curve;
  for (const Json& row : rows) {
    if (row.at("metric") != name(options.metrics[metric])) continue;
    StudyRow r;
    r.L = row.at("L").get<std::int64_t>();
    r.metric = options.metrics[metric];
    r.value = read(row, "value");
    r.ci = {r.value, r.value};
    r.asymptotic = row.at("asymptotic").is_null() ? std::numeric_limits<double>::infinity()
                                                  : read(row, "asymptotic");
    r.ess = read(row, "ess");
    r.bias2 = read(row, "bias");
    r.variance = read(row, "variance");
    r.frozen = read(row, "frozen");
    curve.rows.push_back(std::move(r));
  }
  return curve;
}

Study::State::Curve Study::State::query_curve(std::size_t metric, const std::vector<Json>& rows,
                                              StudyResult& result) const {
  const Index Q = queries.rows(), nL = static_cast<Index>(options.lengths.size());
  Matrix value(Q, nL), error(Q, nL), weights2(Q, nL), bias(Q, nL), constant(Q, nL);
  Matrix prompts = Matrix::Zero(nL, nL);  // covariance of the averages over prompts
  std::map<std::int64_t, Index> column;
  for (Index l = 0; l < nL; ++l) column[options.lengths[static_cast<std::size_t>(l)]] = l;
  for (const Json& row : rows) {
    if (row.at("metric") != name(options.metrics[metric])) continue;
    const Index q = row.at("query").get<Index>(), l = column.at(row.at("L").get<std::int64_t>());
    value(q, l) = read(row, "value");
    error(q, l) = read(row, "std_error");
    weights2(q, l) = read(row, "weights2");
    bias(q, l) = read(row, "bias");
    constant(q, l) = row.at("asymptotic").is_null() ? std::numeric_limits<double>::infinity()
                                                    : read(row, "asymptotic");
    if (!row.contains("cov")) continue;
    std::istringstream cov(row.at("cov").get<std::string>());
    const double share = 1 / static_cast<double>(Q * Q);
    for (Index i = 0; i <= l; ++i) {
      double x = 0;
      cov >> x;
      prompts(i, l) += share * x;
      if (i < l) prompts(l, i) += share * x;
    }
  }
  const Matrix weighted = weights.asDiagonal() * value;  // what tails are read from
  for (Matrix* x : {&value, &weights2, &bias, &constant}) {
    for (Index l = 0; groups > 0 && l < nL; ++l) x->col(l) = controlled(x->col(l), weights);
  }
  const bool fixed = !problem.nu;
  const auto level = fixed ? Queries::fixed : Queries::random;
  const Matrix by_group = groups > 0 ? group_means(value, groups) : Matrix();
  Curve curve;
  for (Index l = 0; l < nL; ++l) {
    const TwoLevel t = groups > 0
                           ? two_level(by_group.col(l), Vector::Zero(groups), 1, level)
                           : two_level(value.col(l), error.col(l), options.replicates, level);
    StudyRow r;
    r.L = options.lengths[static_cast<std::size_t>(l)];
    r.metric = options.metrics[metric];
    r.engine = choice.engine;
    r.value = t.mean;
    r.std_error = t.std_error;
    r.ci = t.ci;
    r.asymptotic = constant.col(l).mean();
    r.ess = 1 / weights2.col(l).mean();
    r.bias2 = bias.col(l).mean();  // unbiased, so noise may put it outside what a part can be
    if (!std::isnan(r.bias2)) r.bias2 = std::clamp(r.bias2, 0.0, r.value);
    r.variance = r.value - r.bias2;
    r.frozen = frozen(r.L);
    if (!fixed) {
      const TailReport tail = tail_report(weighted.col(l));
      r.heavy = tail.heavy;
      r.flag = tail.reason;
    }
    curve.rows.push_back(std::move(r));
  }
  // Cov(log D_i, log D_j): by scramblings, by queries when they are drawn, by prompts when given.
  const Matrix cov = fixed ? prompts : covariance_of_means(groups > 0 ? by_group : value);
  const Vector inverse = value.colwise().mean().array().max(1e-300).inverse();
  curve.cov = inverse.asDiagonal() * cov * inverse.asDiagonal();
  curve.dof = static_cast<double>(fixed        ? Q * std::max<Index>(1, options.replicates - 1)
                                  : groups > 0 ? groups - 1
                                               : Q - 1);
  if (metric == 0 && groups == 0) {
    result.query_length = options.lengths[static_cast<std::size_t>(nL / 2)];
    result.query_values = value.col(nL / 2);
  }
  return curve;
}

RegimeReport Study::State::regime() const {
  RegimeReport r;
  r.lambda = kUnknown;
  if (mu && nu) {
    const Matrix A = problem.attention.U().transpose() * mu->cov * problem.attention.U();
    r.lambda = TauLaw(A, nu->mean, nu->cov).lambda();
    r.gamma = predicted_exponent(r.lambda);
    const GaussianAverage* a = average ? &*average : nullptr;
    std::optional<GaussianAverage> local;
    if (a == nullptr) a = &local.emplace(options.metrics, *mu, problem.attention, *nu);
    for (std::size_t k = 0; k < options.metrics.size(); ++k) r.constants.push_back(a->constant(k));
    r.text = r.lambda < 0.5
                 ? "lambda < 1/2: D(L) ~ constant/L, with the constant in closed form"
                 : "lambda >= 1/2: rare queries see a frozen softmax; predicted D(L) ~ L^-gamma up "
                   "to logarithms (a heuristic, not a theorem)";
    return r;
  }
  for (Metric metric : options.metrics) {
    Vector constants(queries.rows());
    for (Index q = 0; q < queries.rows(); ++q) {
      constants[q] =
          asymptotic_constant(metric, problem.mu, problem.attention, queries.row(q).transpose());
    }
    r.constants.push_back(groups > 0 ? controlled(constants, weights).mean() : constants.mean());
  }
  const bool finite = std::isfinite(r.constants[0]);
  r.gamma = finite ? 1 : kUnknown;
  r.text = finite ? "D(L) ~ constant/L at these queries (delta method, averaged over them)"
                  : "Lambda(2a) is infinite at some query: slower than 1/L there";
  return r;
}

StudyResult Study::assemble(const std::vector<Json>& rows) const {
  const State& s = *state_;
  StudyResult result;
  result.how = s.choice.reason;
  result.regime = s.regime();
  for (std::size_t k = 0; k < s.options.metrics.size(); ++k) {
    State::Curve curve = s.average ? s.average_curve(k, rows) : s.query_curve(k, rows, result);
    Vector values(static_cast<Index>(curve.rows.size()));
    for (Index l = 0; l < values.size(); ++l) {
      values[l] = curve.rows[static_cast<std::size_t>(l)].value;
    }
    const auto& lengths = s.options.lengths;
    if (lengths.size() >= 3 && values.minCoeff() > 0) {
      MetricFit fit{s.options.metrics[k],
                    fit_power(lengths, values, curve.cov, curve.dof),
                    local_exponents(lengths, values, curve.cov),
                    {}};
      const auto usable =
          std::count_if(lengths.begin(), lengths.end(), [](auto L) { return L >= 2; });
      if (usable >= 4) fit.shapes = compare_shapes(lengths, values, curve.cov);
      result.fits.push_back(std::move(fit));
    }
    std::move(curve.rows.begin(), curve.rows.end(), std::back_inserter(result.rows));
  }
  if (s.average || s.groups > 0) {  // nets do not show how single queries are spread
    constexpr Index kMaxShown = 400;
    const Index shown = s.average ? kMaxShown : std::min(kMaxShown, s.options.queries);
    result.query_length = s.options.lengths[s.options.lengths.size() / 2];
    const Stream stream = Stream(s.options.seed).split(kQueryStream);
    const Matrix z = s.problem.nu->sample(stream, shown).tokens();
    result.query_values.resize(shown);
    parallel_for(shown, [&](std::int64_t q) {
      try {
        result.query_values[q] =
            query_errors(Engine::exact, {s.options.metrics[0]}, {result.query_length}, s.problem.mu,
                         s.problem.attention, z.row(q).transpose(), 1, Stream(0))[0][0]
                .value;
      } catch (const CapabilityError&) {
        result.query_values[q] = kUnknown;  // tau beyond the exact engine
      }
    });
  }
  return result;
}

}  // namespace esscher
