#include "esscher/concentration/length.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/length_search.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/query_nodes.h"
#include "esscher/estimate/quantile.h"
#include "esscher/estimate/two_level.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/errors.h"
#include "esscher/random/sobol.h"

namespace esscher {
namespace {

constexpr std::uint64_t kQueryStream = 0, kPromptStream = 1;

// Averages of exact errors over Gaussian queries go by nets; quantiles need independent draws.
bool nets_serve(const Problem& p) {
  return p.nu && gaussian_law(*p.nu) && p.mu.dim() <= kMaxSobolDims;
}

QueryNodes draw_queries(const Problem& p, const LengthOptions& o, Engine engine) {
  if (!p.nu) return {p.points, Vector::Ones(p.points.rows())};
  if (engine == Engine::exact && !o.quantile && nets_serve(p)) {
    return sobol_queries(*gaussian_law(*p.nu), score_form(*gaussian_mixture_law(p.mu), p.attention),
                         o.queries, Stream(o.seed).split(kQueryStream));
  }
  return {p.nu->sample(Stream(o.seed).split(kQueryStream), o.queries).tokens(),
          Vector::Ones(o.queries)};
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

// The squared size of X at one query.
double limit_norm2(Metric metric, const Problem& p, const VectorView& z) {
  const Vector a = p.attention.tilt(z);
  const Vector m = p.mu.tilted_mean(a);
  const double dv = static_cast<double>(p.attention.output_dim());
  if (metric == Metric::output) return (p.attention.V() * m).squaredNorm();
  if (metric == Metric::grad_v) return dv * m.squaredNorm();
  const Matrix VC = p.attention.V() * p.mu.tilted_cov(a);
  if (metric == Metric::grad_u) return z.squaredNorm() * VC.squaredNorm();
  const double s2 = std::pow(p.attention.scale(), 2);
  if (metric == Metric::grad_k) return s2 * (p.attention.Q() * z).squaredNorm() * VC.squaredNorm();
  return s2 * z.squaredNorm() * (VC * p.attention.K().transpose()).squaredNorm();
}

// The average over queries and prompts; `factor` multiplies the queries, or the prompts of given
// queries.
Noisy evaluate_mean(const Problem& problem, const LengthOptions& o, Engine engine, std::int64_t L,
                    std::int64_t factor) {
  StudyOptions s{{L}, {o.metric}, engine, o.queries * factor, o.replicates, o.seed};
  if (!problem.nu) s.queries = o.queries, s.replicates = o.replicates * factor;
  const StudyRow r = study(problem, s).rows.at(0);
  return {r.value, r.std_error,
          normal_interval(r.value, r.std_error, 1 - kErrorProbability / kMaxLooks)};
}

// Standard error of a quantile, by order statistics.
double quantile_spread(const std::vector<double>& x, double p) {
  const double one = std::sqrt(p * (1 - p) / static_cast<double>(x.size()));
  return (quantile(x, std::min(p + one, 1.0)) - quantile(x, std::max(p - one, 0.0))) / 2;
}

// The quantile over queries; order statistics give its interval whatever the law of the errors.
Noisy evaluate_quantile(const Problem& problem, const LengthOptions& o, Engine engine,
                        std::int64_t L, std::int64_t factor) {
  LengthOptions more = o;
  more.queries *= factor;
  const Matrix z = draw_queries(problem, more, engine).z;
  const Stream prompts = Stream(o.seed).split(kPromptStream);
  std::vector<double> errors(static_cast<std::size_t>(z.rows()));
  parallel_for(z.rows(), [&](std::int64_t q) {
    try {
      errors[static_cast<std::size_t>(q)] =
          query_errors(engine, {o.metric}, {L}, problem.mu, problem.attention, z.row(q).transpose(),
                       o.replicates, prompts.split(static_cast<std::uint64_t>(q)))[0][0]
              .value;
    } catch (const DomainError&) {
      errors[static_cast<std::size_t>(q)] = HUGE_VAL;  // no limit to be close to
    }
  });
  const double n = static_cast<double>(z.rows()), p = *o.quantile;
  const double half =
      normal_quantile(1 - kErrorProbability / kMaxLooks) * std::sqrt(p * (1 - p) / n);
  const Interval ci{p > half ? quantile(errors, p - half) : 0,
                    p + half < 1 ? quantile(errors, p + half) : HUGE_VAL};
  return {quantile(errors, p), quantile_spread(errors, p), ci};
}

// Exact error of every query, then its average or quantile over them. Queries that stand
// for a law leave an error, which an interval at each length turns into a bracket.
LengthAnswer by_query(LengthAnswer answer, const Problem& problem, const LengthOptions& o,
                      const QueryNodes& nodes) {
  const Matrix& z = nodes.z;
  std::map<std::int64_t, std::vector<double>> known;
  const auto errors = [&](std::int64_t L) -> const std::vector<double>& {
    const auto [place, fresh] = known.try_emplace(L, static_cast<std::size_t>(z.rows()));
    auto& values = place->second;
    if (!fresh) return values;
    parallel_for(z.rows(), [&](std::int64_t q) {
      values[static_cast<std::size_t>(q)] =
          query_errors(Engine::exact, {o.metric}, {L}, problem.mu, problem.attention,
                       z.row(q).transpose(), 1, Stream(0))[0][0]
              .value;
    });
    return values;
  };
  const auto shares = [&](std::int64_t L) {  // whose average is that of the errors
    return controlled(Vector::Map(errors(L).data(), z.rows()), nodes.weights);
  };
  const auto D = [&](std::int64_t L) {
    return o.quantile ? quantile(errors(L), *o.quantile) : shares(L).mean();
  };
  answer = certified(std::move(answer), D);
  if (!answer.length || !problem.nu) return answer;
  const auto interval = [&](std::int64_t L) -> Noisy {
    const std::vector<double>& x = errors(L);
    const double n = static_cast<double>(x.size());
    if (o.quantile) {
      const double p = *o.quantile, half = normal_quantile() * std::sqrt(p * (1 - p) / n);
      return {
          D(L),
          quantile_spread(x, p),
          {p > half ? quantile(x, p - half) : 0, p + half < 1 ? quantile(x, p + half) : HUGE_VAL}};
    }
    const bool nets = nets_serve(problem);
    const Vector means = nets ? Vector(group_means(shares(L), kGroups)) : shares(L);
    const TwoLevel t = two_level(means, Vector::Zero(means.size()), 1, Queries::random);
    return {t.mean, t.std_error, t.ci};
  };
  const auto reached = [&](auto end) {
    const auto at = [&](std::int64_t L) { return interval(L).ci.*end; };
    return smallest_length(at, answer.eps, kAnyLength).length.value_or(kMaxLength);
  };
  answer.status = "estimated";
  answer.std_error = interval(*answer.length).std_error;
  answer.error_probability = 0.05;
  answer.bracket_lo = std::min(reached(&Interval::lo), *answer.length);
  answer.bracket_hi = std::max(reached(&Interval::hi), *answer.length);
  answer.explanation = "no token is sampled, but " + std::to_string(z.rows()) +
                       " queries stand for their law: the answer lies between " +
                       std::to_string(answer.bracket_lo) + " and " +
                       std::to_string(answer.bracket_hi) + " except with probability " +
                       to_text(answer.error_probability);
  const Vector values = Vector::Map(errors(*answer.length).data(), z.rows());
  const TailReport tail = tail_report(nodes.weights.cwiseProduct(values));
  if (!o.quantile && tail.heavy) answer.explanation += "; not to be trusted: " + tail.reason;
  return answer;
}

LengthAnswer answer_by(Engine engine, const Problem& problem, const LengthOptions& o) {
  LengthAnswer answer;
  answer.engine = engine;
  answer.eps = o.eps;
  const QueryNodes nodes = draw_queries(problem, o, engine);
  const Matrix& z = nodes.z;
  const Index Q = z.rows();
  if (Q < 1) throw_argument("length", "queries", "none", "a law of queries or points");
  check_dimension("length", "attention", problem.attention.dim(), problem.mu.dim());
  check_dimension("length", "queries", z.cols(), problem.mu.dim());

  const auto mu = gaussian_law(problem.mu);
  const auto nu = problem.nu ? gaussian_law(*problem.nu) : std::nullopt;
  const bool closed = answer.engine == Engine::exact && mu && nu && !o.quantile;
  std::optional<GaussianAverage> average;
  std::vector<double> constants(static_cast<std::size_t>(Q));
  std::string note;
  if (closed) {
    average.emplace(std::vector<Metric>{o.metric}, *mu, problem.attention, *nu);
    if (o.relative) answer.eps *= average->limit_norm2(0);
    answer.clt = std::ceil(average->constant(0) / answer.eps);
  } else {
    std::vector<double> inside;
    for (Index q = 0; q < Q; ++q) {
      double& constant = constants[static_cast<std::size_t>(q)];
      const Vector at = z.row(q).transpose();
      const double w = nodes.weights[q];
      try {
        inside.push_back(w * limit_norm2(o.metric, problem, at));
        constant = w * asymptotic_constant(o.metric, problem.mu, problem.attention, at);
      } catch (const DomainError&) {
        constant = HUGE_VAL;
      }
    }
    const double outside =
        static_cast<double>(Q - static_cast<Index>(inside.size())) / static_cast<double>(Q);
    if (outside > (o.quantile ? 1 - *o.quantile : 0)) {
      return never(std::move(answer),
                   problem.mu.name() + " has no limit at " + to_text(outside * 100) +
                       " % of the queries: the tilted integral is infinite, so no prompt length "
                       "is enough");
    }
    if (outside > 0) {
      note =
          "; " + to_text(outside * 100) + " % of the queries have no limit and count as infinite";
    }
    if (o.relative) answer.eps *= mean_of(inside);
    answer.clt = std::ceil((o.quantile ? quantile(constants, *o.quantile) : mean_of(constants)) /
                           answer.eps);
  }
  if (!(answer.eps > 0))
    return never(std::move(answer), "the limit is zero, so no relative error is small");
  if (closed)
    return certified(std::move(answer), [&](std::int64_t L) { return average->at(L)[0].value; });
  if (answer.engine != Engine::exact) {
    answer = stochastic(std::move(answer), o.max_sampled_length,
                        [&](std::int64_t L, std::int64_t factor) {
                          return o.quantile ? evaluate_quantile(problem, o, engine, L, factor)
                                            : evaluate_mean(problem, o, engine, L, factor);
                        });
    if (o.quantile && answer.length) {
      answer.explanation += "; a quantile of errors that are themselves averages of " +
                            std::to_string(o.replicates) + " prompts is biased upwards";
    }
    answer.explanation += note;
    return answer;
  }
  return by_query(std::move(answer), problem, o, nodes);
}

}  // namespace

LengthAnswer shortest_length(const Problem& problem, const LengthOptions& o) {
  if (!(o.eps > 0) || !std::isfinite(o.eps))
    throw_argument("length", "eps", to_text(o.eps), "a number > 0");
  if (o.quantile && !(*o.quantile > 0 && *o.quantile < 1)) {
    throw_argument("length", "quantile", to_text(*o.quantile), "a number between 0 and 1");
  }
  const Engine engine = choose_engine(o.engine, problem.mu).engine;
  try {
    return answer_by(engine, problem, o);
  } catch (const CapabilityError& e) {
    if (o.engine != Engine::automatic || engine != Engine::exact) throw;
    LengthAnswer answer = answer_by(sampling_engine(problem.mu).engine, problem, o);
    answer.explanation += "; sampled, because " + std::string(e.what());
    return answer;
  }
}

Json to_json(const LengthAnswer& a) {
  return {{"length", a.length ? Json(*a.length) : Json()},
          {"status", a.status},
          {"eps", number(a.eps)},
          {"value", number(a.value)},
          {"value_before", number(a.value_before)},
          {"std_error", number(a.std_error)},
          {"error_probability", number(a.error_probability)},
          {"bracket", a.bracket_hi == 0 ? Json() : Json::array({a.bracket_lo, a.bracket_hi})},
          {"clt", number(a.clt)},
          {"engine", name(a.engine)},
          {"explanation", a.explanation}};
}

}  // namespace esscher
