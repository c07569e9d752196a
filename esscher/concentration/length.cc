#include "esscher/concentration/length.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/concentration/constant.h"
#include "esscher/concentration/gaussian_average.h"
#include "esscher/concentration/query_error.h"
#include "esscher/measure/gaussian_view.h"

namespace esscher {
namespace {

constexpr std::uint64_t kQueryStream = 0, kPromptStream = 1;

// Order statistic at level p.
double quantile_of(std::vector<double> x, double p) {
  const auto k =
      std::min(x.size() - 1, static_cast<std::size_t>(p * static_cast<double>(x.size())));
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(k), x.end());
  return x[k];
}

Matrix draw_queries(const Problem& p, const LengthOptions& o) {
  if (!p.nu) return p.points;
  return p.nu->sample(Stream(o.seed).split(kQueryStream), o.queries).tokens();
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

// Smallest L in [1, limit] with D(L) <= eps for a D that falls; nothing if D(limit) > eps.
std::optional<std::int64_t> bisect(const std::function<double(std::int64_t)>& D, double eps,
                                   std::int64_t limit) {
  if (D(1) <= eps) return 1;
  std::int64_t lo = 1, hi = 2;
  while (D(hi) > eps) {
    if (hi == limit) return std::nullopt;
    lo = hi;
    hi = hi > limit / 8 ? limit : hi * 8;
  }
  while (hi - lo > 1) {
    const std::int64_t mid = hi / lo >= 4 ? static_cast<std::int64_t>(std::sqrt(
                                                static_cast<double>(lo) * static_cast<double>(hi)))
                                          : lo + (hi - lo) / 2;
    (D(mid) <= eps ? hi : lo) = mid;
  }
  return hi;
}

LengthAnswer never(LengthAnswer answer, std::string why) {
  answer.status = "never";
  answer.value = answer.value_before = kUnknown;
  answer.explanation = std::move(why);
  return answer;
}

LengthAnswer certified(LengthAnswer answer, const std::function<double(std::int64_t)>& D) {
  const auto L = bisect(D, answer.eps, kMaxLength);
  if (!L) {
    const double last = D(kMaxLength);
    answer =
        never(std::move(answer), "at L = 1e15 the error is still " + to_text(last) +
                                     " > eps = " + to_text(answer.eps) +
                                     "; longer prompts are beyond what double precision can show");
    answer.value = last;
    return answer;
  }
  answer.length = *L;
  answer.value = D(*L);
  answer.value_before = *L > 1 ? D(*L - 1) : kUnknown;
  answer.status = "certified";
  answer.explanation = *L > 1 ? "D(L) <= eps < D(L-1), both evaluated" : "one token is enough";
  return answer;
}

struct Noisy {
  double value, std_error;
  Interval ci;
};

LengthAnswer stochastic(LengthAnswer answer, const Problem& problem, const LengthOptions& o) {
  const auto evaluate = [&](std::int64_t L, std::int64_t factor) {
    StudyOptions s{{L}, {o.metric}, o.engine, o.queries * factor, o.replicates, o.seed};
    if (!problem.nu) s.queries = o.queries, s.replicates = o.replicates * factor;
    const StudyRow r = study(problem, s).rows.at(0);
    return Noisy{r.value, r.std_error, r.ci};
  };
  int decisions = 0;
  // +1: above eps for sure, -1: below for sure, 0: cannot tell with 8 times the queries.
  Noisy last{};
  const auto side = [&](std::int64_t L) {
    for (std::int64_t factor : {1, 2, 4, 8}) {
      last = evaluate(L, factor);
      if (last.ci.lo > answer.eps || last.ci.hi <= answer.eps) {
        ++decisions;
        return last.value > answer.eps ? 1 : -1;
      }
    }
    return 0;
  };
  std::int64_t lo = 0, hi = 1;
  int s = side(hi);
  while (s > 0 && hi < o.max_sampled_length) {
    lo = hi;
    hi = std::min(hi * 4, o.max_sampled_length);
    s = side(hi);
  }
  if (s > 0) {
    answer = never(std::move(answer),
                   "at L = " + std::to_string(hi) +
                       ", the longest prompt this engine may draw, the error is still " +
                       to_text(last.value) + " > eps = " + to_text(answer.eps));
    answer.value = last.value;
    answer.std_error = last.std_error;
    return answer;
  }
  Noisy best = last;
  while (s != 0 && hi - lo > 1) {
    const std::int64_t mid = lo + (hi - lo) / 2;
    s = side(mid);
    if (s > 0) lo = mid;
    if (s < 0) hi = mid, best = last;
    if (s == 0) {
      // Around mid nobody can tell; its estimate decides, the bracket says how far it may be off.
      answer.bracket_lo = lo + 1;
      answer.bracket_hi = hi;
      if (last.value <= answer.eps)
        hi = mid, best = last;
      else
        best = evaluate(hi, 8);
    }
  }
  answer.length = hi;
  answer.value = best.value;
  answer.std_error = best.std_error;
  answer.value_before = hi > 1 ? evaluate(hi - 1, 8).value : kUnknown;
  if (answer.bracket_hi == 0) answer.bracket_lo = answer.bracket_hi = hi;
  answer.status = "estimated";
  answer.error_probability = std::min(1.0, 0.05 * decisions);
  answer.explanation =
      "stochastic bisection of " + std::to_string(decisions) + " decisions at 95 % each";
  return answer;
}

}  // namespace

LengthAnswer shortest_length(const Problem& problem, const LengthOptions& o) {
  if (!(o.eps > 0) || !std::isfinite(o.eps))
    throw_argument("length", "eps", to_text(o.eps), "a number > 0");
  if (o.quantile && !(*o.quantile > 0 && *o.quantile < 1)) {
    throw_argument("length", "quantile", to_text(*o.quantile), "a number between 0 and 1");
  }
  LengthAnswer answer;
  answer.engine = choose_engine(o.engine, {o.metric}, problem.mu).engine;
  answer.eps = o.eps;
  const Matrix z = draw_queries(problem, o);
  const Index Q = z.rows();
  if (Q < 1) throw_argument("length", "queries", "none", "a law of queries or points");
  check_dimension("length", "attention", problem.attention.dim(), problem.mu.dim());
  check_dimension("length", "queries", z.cols(), problem.mu.dim());

  const auto mu = gaussian_law(problem.mu);
  const auto nu = problem.nu ? gaussian_law(*problem.nu) : std::nullopt;
  const bool closed = answer.engine == Engine::exact && mu && nu && !o.quantile;
  std::optional<GaussianAverage> average;
  std::vector<double> constants(static_cast<std::size_t>(Q)), norms(static_cast<std::size_t>(Q));
  if (closed) {
    average.emplace(std::vector<Metric>{o.metric}, *mu, problem.attention, *nu);
    if (o.relative) answer.eps *= average->limit_norm2(0);
    answer.clt = std::ceil(average->constant(0) / answer.eps);
  } else {
    double outside = 0;
    for (Index q = 0; q < Q; ++q) {
      try {
        norms[static_cast<std::size_t>(q)] = limit_norm2(o.metric, problem, z.row(q).transpose());
        constants[static_cast<std::size_t>(q)] =
            asymptotic_constant(o.metric, problem.mu, problem.attention, z.row(q).transpose());
      } catch (const DomainError&) {
        outside += 1;
      }
    }
    if (outside > 0) {
      return never(
          std::move(answer),
          problem.mu.name() + " has no limit at " +
              to_text(outside / static_cast<double>(Q) * 100) +
              " % of the queries: the tilted integral is infinite, so no prompt length is enough");
    }
    const auto mean = [](const std::vector<double>& x) {
      double sum = 0;
      for (double v : x) sum += v;
      return sum / static_cast<double>(x.size());
    };
    if (o.relative) answer.eps *= mean(norms);
    answer.clt = std::ceil((o.quantile ? quantile_of(constants, *o.quantile) : mean(constants)) /
                           answer.eps);
  }
  if (!(answer.eps > 0))
    return never(std::move(answer), "the limit is zero, so no relative error is small");
  if (closed)
    return certified(std::move(answer), [&](std::int64_t L) { return average->at(L)[0].value; });
  if (answer.engine != Engine::exact && !o.quantile)
    return stochastic(std::move(answer), problem, o);

  // Error of every query, exact or estimated with common prompts, then its average or quantile.
  const Stream prompts = Stream(o.seed).split(kPromptStream);
  const auto D = [&](std::int64_t L) {
    std::vector<double> errors(static_cast<std::size_t>(Q));
    parallel_for(Q, [&](std::int64_t q) {
      errors[static_cast<std::size_t>(q)] =
          query_errors(answer.engine, {o.metric}, {L}, problem.mu, problem.attention,
                       z.row(q).transpose(), o.replicates,
                       prompts.split(static_cast<std::uint64_t>(q)))[0][0]
              .value;
    });
    if (o.quantile) return quantile_of(errors, *o.quantile);
    double sum = 0;
    for (double e : errors) sum += e;
    return sum / static_cast<double>(Q);
  };
  if (answer.engine == Engine::exact) {
    answer = certified(std::move(answer), D);
    if (answer.status == "certified" && problem.nu) {
      answer.explanation += " over " + std::to_string(Q) + " queries drawn from their law";
    }
    return answer;
  }
  const auto L = bisect(D, answer.eps, o.max_sampled_length);
  if (!L)
    return never(std::move(answer),
                 "the quantile is above eps at the longest prompt this engine may draw");
  answer.length = *L;
  answer.value = D(*L);
  answer.value_before = *L > 1 ? D(*L - 1) : kUnknown;
  answer.status = "estimated";
  answer.error_probability = kUnknown;
  answer.explanation = "quantile over " + std::to_string(Q) + " queries with " +
                       std::to_string(o.replicates) +
                       " prompts each; a quantile of noisy errors is biased upwards";
  return answer;
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
