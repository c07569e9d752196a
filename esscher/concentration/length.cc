#include "esscher/concentration/length.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/detail/length_search.h"
#include "esscher/concentration/detail/limit_size.h"
#include "esscher/concentration/detail/plan.h"
#include "esscher/concentration/regime.h"
#include "esscher/concentration/square_law.h"
#include "esscher/estimate/quantile.h"
#include "esscher/estimate/tails.h"
#include "esscher/prompt/errors.h"
#include "esscher/prompt/exact_prompt.h"

namespace esscher {
namespace {

struct Question {
  const Problem& problem;
  const LengthOptions& options;
  const QueryPlan& plan;
};

Vector as_vector(const std::vector<double>& x) {
  return Vector::Map(x.data(), static_cast<Index>(x.size()));
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

// What is known about the limit before any length is tried.
struct Limit {
  LimitSize size;       // over the queries where X exists
  double constant = 0;  // lim L D(L), or its quantile over queries
  double outside = 0;   // fraction of the queries where X does not exist
};

Limit limit_at_queries(const Question& ask) {
  const QuerySet& set = ask.plan.queries;
  const LengthOptions& o = ask.options;
  std::vector<double> norms, constants;
  LimitSize size = limit_size(o.metric, 0, ask.problem, ask.plan);
  for (Index q = 0; q < set.size(); ++q) {
    const Vector z = set.z.row(q).transpose();
    const double w = set.weights[q];
    try {
      norms.push_back(w * limit_norm2(o.metric, ask.problem, z));
      constants.push_back(
          w * asymptotic_constant(o.metric, ask.problem.tokens(), ask.problem.attention, z));
    } catch (const DomainError&) {
      constants.push_back(HUGE_VAL);
    }
  }
  // Drawn queries do not show that the average of the constant over their law is infinite.
  const bool no_constant = !o.quantile && query_average(ask.problem).infinite;
  const double n = static_cast<double>(set.size());
  if (std::isnan(size.mean_square)) size.mean_square = mean_of(norms);
  return {.size = size,
          .constant = o.quantile    ? quantile(constants, *o.quantile)
                      : no_constant ? HUGE_VAL
                                    : mean_of(constants),
          .outside = (n - static_cast<double>(norms.size())) / n};
}

// Lengths that do not hold the tokens that are given or counted have no error.
bool too_short(const Question& ask, std::int64_t L) {
  return ask.problem.prompt && L < std::max<std::int64_t>(1, ask.problem.prompt->fixed_tokens());
}

Limit limit_of(const Question& ask) {
  if (!ask.plan.average) return limit_at_queries(ask);
  return {.size = limit_size(ask.options.metric, 0, ask.problem, ask.plan),
          .constant = ask.plan.average->constant(0)};
}

// The quantile at level p of independent numbers. Order statistics give its interval whatever their
// law; half is the half width of the interval in levels.
Noisy noisy_quantile(const std::vector<double>& x, double p, double confidence) {
  const double one = std::sqrt(p * (1 - p) / static_cast<double>(x.size()));
  const double half = normal_quantile(confidence) * one;
  return {.value = quantile(x, p),
          .std_error = (order_statistic(x, p + one) - order_statistic(x, p - one)) / 2,
          .ci = {p > half ? order_statistic(x, p - half) : 0,
                 p + half < 1 ? order_statistic(x, p + half) : HUGE_VAL}};
}

// Errors at queries, as averages over prompts with their standard errors; infinite where a query has
// no limit to be close to. `factor` multiplies the queries, or the prompts of given queries; `part`
// divides the prompts.
struct SampledErrors {
  std::vector<double> values, std_errors;
  std::int64_t replicates = 0;

  [[nodiscard]] Vector value() const { return as_vector(values); }
  [[nodiscard]] Vector error() const { return as_vector(std_errors); }
};

SampledErrors sampled_errors(const Question& ask, std::int64_t L, std::int64_t factor,
                             std::int64_t part = 1) {
  const LengthOptions& o = ask.options;
  const Problem& p = ask.problem;
  const QuerySet set =
      p.nu ? drawn_queries(*p.nu, o.queries * factor, o.seed) : given_queries(p.points);
  const Stream prompts = Stream(o.seed).split(kPromptStream);
  const std::size_t n = static_cast<std::size_t>(set.size());
  SampledErrors out{.values = std::vector<double>(n),
                    .std_errors = std::vector<double>(n),
                    .replicates = o.replicates * (p.nu ? 1 : factor) / part};
  parallel_for(set.size(), [&](std::int64_t q) {
    const std::size_t i = static_cast<std::size_t>(q);
    try {
      const QueryError e =
          query_errors({o.metric}, p.tokens(), p.attention, set.z.row(q).transpose(), {L},
                       {.engine = ask.plan.choice.engine,
                        .replicates = out.replicates,
                        .stream = prompts.split(static_cast<std::uint64_t>(q))})[0][0];
      out.values[i] = e.value;
      out.std_errors[i] = e.std_error;
    } catch (const DomainError&) {
      out.values[i] = HUGE_VAL;
    }
  });
  return out;
}

// The average over queries and prompts: at given queries squared errors have a known shape.
Noisy sampled_mean(const Question& ask, const SquareLaw& law, std::int64_t L, std::int64_t factor) {
  if (too_short(ask, L)) return {HUGE_VAL, 0, {HUGE_VAL, HUGE_VAL}};
  const SampledErrors errors = sampled_errors(ask, L, factor);
  constexpr double kLookLevel = 1 - kErrorProbability / kMaxLooks;
  const Vector value = errors.value();
  const TwoLevel t = ask.problem.nu
                         ? ask.plan.queries.interval(value, kLookLevel)
                         : mean_of_squares(value, errors.error(),
                                           static_cast<Index>(errors.replicates), law, kLookLevel);
  return {t.mean, t.std_error, t.ci};
}

// The quantile over queries of errors that are averages over R prompts. The noise of prompts spreads
// them, which raises high quantiles, and its skewness lowers them; both fall as 1/R. The same
// quantile from half the prompts tells how much is left: q_R + (q_R - q_{R/2}) has no term in 1/R.
struct QuantileShift {
  double value = 0, shift = 0;
};

QuantileShift quantile_shift(const Question& ask, std::int64_t L, std::int64_t factor,
                             const std::vector<double>& errors) {
  const double p = *ask.options.quantile, whole = quantile(errors, p);
  if (ask.options.replicates < 2) return {whole, 0};
  const double half = quantile(sampled_errors(ask, L, factor, 2).values, p);
  const double shift = std::isfinite(whole) && std::isfinite(half) ? whole - half : 0;
  // Extrapolation by more than half of the value is a guess.
  return {whole, std::clamp(shift, -whole / 2, whole / 2)};
}

Noisy sampled_quantile(const Question& ask, std::int64_t L, std::int64_t factor) {
  if (too_short(ask, L)) return {HUGE_VAL, 0, {HUGE_VAL, HUGE_VAL}};
  const std::vector<double> errors = sampled_errors(ask, L, factor).values;
  Noisy at = noisy_quantile(errors, *ask.options.quantile, 1 - kErrorProbability / kMaxLooks);
  const double shift = quantile_shift(ask, L, factor, errors).shift;
  at.value += shift;
  at.std_error = std::hypot(at.std_error, shift);
  at.ci = {at.ci.lo + std::min(0.0, 2 * shift), at.ci.hi + std::max(0.0, 2 * shift)};
  return at;
}

// Which way the noise of few prompts moves a quantile, as measured at the answer.
std::string quantile_bias_text(const Question& ask, std::int64_t L) {
  const std::string few = std::to_string(ask.options.replicates) + " prompts per query";
  if (ask.options.replicates < 2) {
    return "a quantile of errors of one prompt each is biased, and one prompt does not show how "
           "far";
  }
  const std::vector<double> errors = sampled_errors(ask, L, 1).values;
  const QuantileShift q = quantile_shift(ask, L, 1, errors);
  return "the quantile of errors averaged over " + few + " is biased " +
         (q.shift > 0 ? "downwards" : "upwards") + ", by about " +
         brief(100 * std::abs(q.shift) / q.value, 2) +
         " % of D (half of the prompts against all), and was corrected by that";
}

LengthAnswer by_sampling(LengthAnswer answer, const Question& ask) {
  const LengthOptions& o = ask.options;
  const bool given_mean = !ask.problem.nu && !o.quantile && ask.problem.is_plain();
  const std::vector<ErrorLaw> laws =
      given_mean ? error_laws(o.metric, ask.problem, ask.plan.queries.z) : std::vector<ErrorLaw>();
  const SquareLaw law = square_law(laws);
  const auto evaluate = [&](std::int64_t L, std::int64_t factor) {
    return o.quantile ? sampled_quantile(ask, L, factor) : sampled_mean(ask, law, L, factor);
  };
  answer = stochastic(std::move(answer), o.max_sampled_length, evaluate);
  if (!answer.length) return answer;
  if (o.quantile) answer.explanation += "; " + quantile_bias_text(ask, *answer.length);
  // Lengths of the bracket whose samples cannot be trusted.
  for (const std::int64_t L : {answer.bracket_lo, *answer.length, answer.bracket_hi}) {
    const std::string why = average_flag(laws, L);
    if (answer.flag.empty() && !why.empty()) answer.flag = why;
  }
  if (!answer.flag.empty()) answer.explanation += "; not to be trusted: " + answer.flag;
  return answer;
}

// Exact errors at all queries, kept for the lengths that were asked about.
class ExactErrors {
 public:
  explicit ExactErrors(const Question& ask)
      : ask_(ask),
        kernels_(ask.problem.is_plain() && gaussian_mixture_law(ask.problem.mu)),
        prompts_(static_cast<std::size_t>(ask.plan.queries.size())) {}

  const std::vector<double>& at(std::int64_t L) {
    const Matrix& z = ask_.plan.queries.z;
    const auto [place, fresh] = known_.try_emplace(L, static_cast<std::size_t>(z.rows()));
    auto& values = place->second;
    if (!fresh) return values;
    parallel_for(z.rows(), [&](std::int64_t q) {
      const auto i = static_cast<std::size_t>(q);
      try {
        values[i] = too_short(ask_, L) ? HUGE_VAL : one(q, L);
      } catch (const DomainError&) {
        values[i] = HUGE_VAL;
      }
    });
    return values;
  }
  [[nodiscard]] Vector vector_at(std::int64_t L) { return as_vector(at(L)); }
  // Their average or quantile over queries.
  double summary(std::int64_t L) {
    const auto& p = ask_.options.quantile;
    return p ? quantile(at(L), *p) : ask_.plan.queries.average(vector_at(L));
  }
  // The same with the error that queries leave which stand for a law.
  Noisy noisy(std::int64_t L) {
    if (const auto& p = ask_.options.quantile) return noisy_quantile(at(L), *p, kLevel);
    const QuerySet& set = ask_.plan.queries;
    const Vector shares = set.shares(vector_at(L));
    const Vector means = set.groups > 0 ? Vector(group_means(shares, set.groups)) : shares;
    const TwoLevel t = set.interval(means);
    return {t.mean, t.std_error, t.ci};
  }

 private:
  // Prompts by score laws keep what lengths share; each query belongs to one thread at a time.
  double one(std::int64_t q, std::int64_t L) {
    const Vector z = ask_.plan.queries.z.row(q).transpose();
    if (kernels_) {
      return query_errors({ask_.options.metric}, ask_.problem.mu, ask_.problem.attention, z, {L},
                          {.engine = Engine::exact})[0][0]
          .value;
    }
    auto& prompt = prompts_[static_cast<std::size_t>(q)];
    if (!prompt) prompt.emplace(ask_.problem.tokens(), ask_.problem.attention, z);
    return prompt->error_parts(ask_.options.metric, L).total();
  }

  const Question& ask_;
  bool kernels_;
  std::vector<std::optional<ExactPrompt>> prompts_;
  std::map<std::int64_t, std::vector<double>> known_;
};

// Exact error of every query, then its average or quantile over them. Queries that stand for a law
// leave an error, which an interval at each length turns into a bracket.
LengthAnswer by_query(LengthAnswer answer, const Question& ask) {
  ExactErrors errors(ask);
  answer = certified(std::move(answer), [&](std::int64_t L) { return errors.summary(L); });
  if (!answer.length || !ask.problem.nu) return answer;
  const auto reached = [&](auto end) {
    const auto at = [&](std::int64_t L) { return errors.noisy(L).ci.*end; };
    return smallest_length(at, answer.eps, kAnyLength).length.value_or(kMaxLength);
  };
  const QuerySet& set = ask.plan.queries;
  answer.status = LengthStatus::estimated;
  answer.std_error = errors.noisy(*answer.length).std_error;
  answer.error_probability = kErrorProbability;
  answer.bracket_lo = std::min(reached(&Interval::lo), *answer.length);
  answer.bracket_hi = std::max(reached(&Interval::hi), *answer.length);
  answer.explanation = "no token is sampled, but " + std::to_string(set.size()) +
                       " queries stand for their law: " + bracket_text(answer) + "; " +
                       rise_text(answer);
  const TailReport tail = tail_report(set.weights.cwiseProduct(errors.vector_at(*answer.length)));
  if (!ask.options.quantile && tail.heavy) {
    answer.flag = tail.reason;
    answer.explanation += "; not to be trusted: " + tail.reason;
  }
  return answer;
}

LengthAnswer no_limit(LengthAnswer answer, const Problem& problem, double outside) {
  answer.clt = HUGE_VAL;  // no limit, no central limit theorem
  return never(std::move(answer),
               problem.mu.name() + " has no limit at " + to_text(outside * 100) +
                   " % of the queries: the tilted integral is infinite, so no prompt length is "
                   "enough");
}

// Errors about the saturation value do not vanish.
LengthAnswer saturates(LengthAnswer answer, const Question& ask, const std::string& reason) {
  answer.clt = HUGE_VAL;
  std::string why = "the prompt has no limit, because " + reason;
  if (answer.engine == Engine::exact) {
    const double left = ExactErrors(ask).summary(kSaturated);
    why += "; the error about its saturation value stays at " + brief(left, 6);
  }
  return never(std::move(answer), why);
}

LengthAnswer answer_question(LengthAnswer answer, const Question& ask) {
  const LengthOptions& o = ask.options;
  if (ask.problem.prompt) {
    const std::string none = no_limit_reason(*ask.problem.prompt);
    if (!none.empty()) return saturates(std::move(answer), ask, none);
  }
  const Limit limit = limit_of(ask);
  if (limit.outside > (o.quantile ? 1 - *o.quantile : 0)) {
    return no_limit(std::move(answer), ask.problem, limit.outside);
  }
  answer.limit_mean_square = limit.size.mean_square;
  answer.limit_std_error = limit.size.std_error;
  if (o.relative) answer.eps *= limit.size.mean_square;
  answer.clt = std::ceil(limit.constant / answer.eps);
  if (!(answer.eps > 0)) {
    return never(std::move(answer), "the limit is zero, so no relative error is small");
  }
  if (ask.plan.average) {
    const auto D = [&](std::int64_t L) { return ask.plan.average->at(L)[0].value; };
    return certified(std::move(answer), D);
  }
  if (answer.engine == Engine::exact) return by_query(std::move(answer), ask);
  answer = by_sampling(std::move(answer), ask);
  if (o.relative && limit.size.std_error > 0) {
    answer.explanation += "; the squared size of the limit is known to " +
                          brief(100 * limit.size.std_error / limit.size.mean_square, 2) +
                          " % (one standard error), which the bracket does not count";
  }
  if (limit.outside > 0) {
    answer.explanation += "; " + to_text(limit.outside * 100) +
                          " % of the queries have no limit and count as infinite";
  }
  return answer;
}

}  // namespace

LengthAnswer shortest_length(const Problem& problem, const LengthOptions& o) {
  if (!(o.eps > 0) || !std::isfinite(o.eps)) {
    throw_argument("length", "eps", to_text(o.eps), "a number > 0");
  }
  if (o.quantile && !(*o.quantile > 0 && *o.quantile < 1)) {
    throw_argument("length", "quantile", to_text(*o.quantile), "a number between 0 and 1");
  }
  check_problem("length", problem);
  const QueryPlan plan = plan_queries(problem, {.metrics = {o.metric},
                                                .engine = o.engine,
                                                .queries = o.queries,
                                                .seed = o.seed,
                                                .longest = kMaxLength,
                                                .equal_queries = o.quantile.has_value()});
  LengthAnswer answer =
      answer_question({.eps = o.eps, .engine = plan.choice.engine}, {problem, o, plan});
  if (o.engine == Engine::automatic && answer.engine == Engine::sampled) {
    answer.explanation += "; " + plan.choice.reason;
  }
  answer.engine = plan.made_by();
  return answer;
}

}  // namespace esscher
