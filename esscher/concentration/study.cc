#include "esscher/concentration/study.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/query_error.h"
#include "esscher/concentration/query_nodes.h"
#include "esscher/estimate/two_level.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/random/sobol.h"

namespace esscher {
namespace {

constexpr Index kBlock = 16;  // queries per cell
constexpr std::uint64_t kQueryStream = 0, kPromptStream = 1;

void check_options(const Problem& problem, const StudyOptions& o) {
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
  check_dimension("study", "attention", problem.attention.dim(), problem.mu.dim());
  if (problem.nu) {
    check_dimension("study", "queries", problem.nu->dim(), problem.mu.dim());
  } else if (problem.points.rows() < 1) {
    bad("queries", "none", "a law of queries or points");
  } else {
    check_dimension("study", "query points", problem.points.cols(), problem.mu.dim());
  }
}

double read(const Json& row, const char* key) {
  const Json& x = row.at(key);
  return x.is_null() ? kUnknown : x.get<double>();
}

std::string join(const std::vector<double>& numbers) {
  std::string text;
  for (double x : numbers) text += (text.empty() ? "" : " ") + to_text(x);
  return text;
}

double tau_of(const GaussianLaw& law, const Attention& attention, const VectorView& z) {
  const Vector a = attention.tilt(z);
  return std::sqrt(std::max(0.0, a.dot(law.cov * a)));
}

}  // namespace

struct Study::State {
  Problem problem;
  StudyOptions options;
  EngineChoice choice;
  std::vector<std::string> keys;
  std::optional<GaussianLaw> mu, nu;       // where Gaussian
  std::optional<GaussianAverage> average;  // exact in tokens and queries
  Matrix queries;                          // [Q,d] otherwise
  Vector weights;                          // [Q], 1 unless by nets
  Index groups = 0;                        // > 0: as many scramblings of a net; 0: drawn or given

  // The average over the two levels as rows, and the covariance of log D across lengths, known with
  // so many degrees of freedom.
  struct Curve {
    std::vector<StudyRow> rows;
    Matrix cov;
    double dof = std::numeric_limits<double>::infinity();
  };
  [[nodiscard]] std::vector<Json> compute_average(std::size_t i) const;
  [[nodiscard]] std::vector<Json> compute_queries(std::size_t i) const;
  [[nodiscard]] Curve average_curve(std::size_t metric, const std::vector<Json>& rows) const;
  [[nodiscard]] Curve query_curve(std::size_t metric, const std::vector<Json>& rows,
                                  StudyResult& result) const;
  [[nodiscard]] double frozen(std::int64_t L) const;
  void draw_queries();
  [[nodiscard]] std::string query_text() const;
  // Whether the exact engine refuses because of too large a tau; the longest prompt, with the
  // smallest error, refuses first.
  [[nodiscard]] bool too_sharp() const;
  [[nodiscard]] double max_tau() const { return mu ? kMaxTau : kMaxMixtureTau; }
  [[nodiscard]] RegimeReport regime() const;
};

Study::Study(Problem problem, StudyOptions options) {
  check_options(problem, options);
  auto s = std::make_unique<State>(
      State{std::move(problem), std::move(options), {}, {}, {}, {}, {}, {}, {}, 0});
  s->choice = choose_engine(s->options.engine, s->problem.mu);
  s->mu = gaussian_law(s->problem.mu);
  if (s->problem.nu) s->nu = gaussian_law(*s->problem.nu);
  if (s->choice.engine == Engine::exact && s->mu && s->nu) {
    s->average.emplace(s->options.metrics, *s->mu, s->problem.attention, *s->nu);
  }
  if (!s->average) s->draw_queries();
  if (s->options.engine == Engine::automatic && s->choice.engine == Engine::exact &&
      s->too_sharp()) {
    s->average.reset();
    s->choice = sampling_engine(s->problem.mu);
    s->choice.reason +=
        ", because scores beyond tau = " + to_text(s->max_tau()) + " have no exact engine";
    s->draw_queries();
  }
  if (s->average) {
    s->choice.reason += ", and queries are averaged in closed form";
    for (std::int64_t L : s->options.lengths) s->keys.push_back("L=" + std::to_string(L));
  } else {
    s->choice.reason += s->query_text();
    for (Index q = 0; q < s->queries.rows(); q += kBlock) {
      s->keys.push_back("queries=" + std::to_string(q));
    }
  }
  state_ = std::move(s);
}

void Study::State::draw_queries() {
  const Stream stream = Stream(options.seed).split(kQueryStream);
  groups = 0;
  if (!problem.nu) {
    if (choice.engine != Engine::exact && options.replicates < 2) {
      throw_argument("study", "replicates", "1",
                     "at least 2 for given queries: one prompt shows no spread");
    }
    queries = problem.points;
  } else if (choice.engine == Engine::exact && nu && problem.mu.dim() <= kMaxSobolDims) {
    groups = kGroups;
    QueryNodes nodes =
        sobol_queries(*nu, score_form(*gaussian_mixture_law(problem.mu), problem.attention),
                      options.queries, stream);
    queries = std::move(nodes.z);
    weights = std::move(nodes.weights);
    return;
  } else {
    queries = problem.nu->sample(stream, options.queries).tokens();
  }
  weights = Vector::Ones(queries.rows());
}

std::string Study::State::query_text() const {
  std::string text = "; queries are given";
  if (groups > 0) {
    text = "; queries are averaged by " + std::to_string(groups) + " independent scramblings of " +
           std::to_string(queries.rows() / groups) + " Sobol points";
  } else if (problem.nu) {
    text = "; queries are drawn from their law";
  }
  if (choice.engine != Engine::exact && options.replicates < 2) {
    text += "; one prompt per query cannot tell bias from variance, replicates >= 2 can";
  }
  return text;
}

bool Study::State::too_sharp() const {
  if (average) {
    try {
      static_cast<void>(average->at(options.lengths.back()));
      return false;
    } catch (const CapabilityError&) {
      return true;
    }
  }
  const GaussianMixtureLaw law = *gaussian_mixture_law(problem.mu);
  double sharpest = 0;
  for (Index q = 0; q < queries.rows(); ++q) {
    for (const GaussianLaw& part : law.components) {
      sharpest = std::max(sharpest, tau_of(part, problem.attention, queries.row(q).transpose()));
    }
  }
  return sharpest > max_tau();
}

Study::~Study() = default;
Study::Study(Study&&) noexcept = default;

const std::vector<std::string>& Study::keys() const { return state_->keys; }

std::vector<Json> Study::compute(std::size_t i) const {
  return state_->average ? state_->compute_average(i) : state_->compute_queries(i);
}

std::vector<Json> Study::State::compute_average(std::size_t i) const {
  const std::int64_t L = options.lengths.at(i);
  const auto errors = average->at(L);
  const double ess = average->effective_sample_size(L);
  std::vector<Json> rows;
  for (std::size_t k = 0; k < errors.size(); ++k) {
    rows.push_back({{"L", L},
                    {"metric", name(options.metrics[k])},
                    {"value", number(errors[k].value)},
                    {"std_error", 0.0},
                    {"engine", "exact"},
                    {"asymptotic", number(average->constant(k) / static_cast<double>(L))},
                    {"ess", number(ess)},
                    {"bias", number(errors[k].bias2)},
                    {"variance", number(errors[k].variance)},
                    {"frozen", number(frozen(L))}});
  }
  return rows;
}

std::vector<Json> Study::State::compute_queries(std::size_t i) const {
  const Index first = static_cast<Index>(i) * kBlock;
  const Index count = std::min(kBlock, queries.rows() - first);
  const Stream prompts = Stream(options.seed).split(kPromptStream);
  std::vector<std::vector<Json>> parts(static_cast<std::size_t>(count));
  parallel_for(count, [&](std::int64_t j) {
    const Index q = first + j;
    const Vector z = queries.row(q).transpose();
    const auto table =
        query_errors(choice.engine, options.metrics, options.lengths, problem.mu, problem.attention,
                     z, options.replicates, prompts.split(static_cast<std::uint64_t>(q)));
    auto& rows = parts[static_cast<std::size_t>(j)];
    for (std::size_t k = 0; k < table.size(); ++k) {
      const double constant =
          asymptotic_constant(options.metrics[k], problem.mu, problem.attention, z);
      for (std::size_t l = 0; l < options.lengths.size(); ++l) {
        const QueryError& e = table[k][l];
        rows.push_back({{"L", options.lengths[l]},
                        {"metric", name(options.metrics[k])},
                        {"query", q},
                        {"value", number(e.value)},
                        {"std_error", number(e.std_error)},
                        {"engine", name(choice.engine)},
                        {"asymptotic", number(constant / static_cast<double>(options.lengths[l]))},
                        {"weights2", number(e.weights2)},
                        {"bias", number(e.bias2)}});
        // Drawn queries show how lengths move together; for given ones prompts have to.
        if (!problem.nu && !e.cov.empty()) rows.back()["cov"] = join(e.cov);
        if (groups > 0) rows.back()["weight"] = number(weights[q]);
      }
    }
  });
  std::vector<Json> rows;
  for (auto& part : parts) std::move(part.begin(), part.end(), std::back_inserter(rows));
  return rows;
}

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

StudyResult study(const Problem& problem, const StudyOptions& options) {
  const Study s(problem, options);
  std::vector<Json> rows;
  for (std::size_t i = 0; i < s.keys().size(); ++i) {
    auto part = s.compute(i);
    std::move(part.begin(), part.end(), std::back_inserter(rows));
  }
  return s.assemble(rows);
}

std::vector<SigmaPoint> sigma_sweep(const Problem& problem, const StudyOptions& options,
                                    const std::vector<double>& sigmas) {
  StudyOptions last = options;
  std::erase_if(last.lengths, [&](std::int64_t L) { return L < options.lengths.back() / 100; });
  if (last.lengths.size() < 3) {
    throw_argument("sigma_sweep", "lengths",
                   std::to_string(last.lengths.size()) + " in the last two decades",
                   "at least 3, to measure an exponent");
  }
  const Index d = problem.mu.dim();
  std::vector<SigmaPoint> points;
  for (double sigma : sigmas) {
    if (!(sigma > 0)) throw_argument("sigma_sweep", "sigma", to_text(sigma), "a number > 0");
    Problem scaled = problem;
    scaled.mu = Affine(Vector::Zero(d), sigma * Matrix::Identity(d, d), problem.mu);
    const StudyResult r = study(scaled, last);
    for (const MetricFit& fit : r.fits) {
      points.push_back({sigma, fit.metric, r.regime.lambda, r.regime.gamma, -fit.power.slope,
                        fit.power.std_error, -fit.power.slope * sigma * sigma});
    }
  }
  return points;
}

}  // namespace esscher
