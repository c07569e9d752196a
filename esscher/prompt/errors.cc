#include "esscher/prompt/errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/moments.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/engine.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/sampled_prompt.h"

namespace esscher {
namespace {

using Table = std::vector<std::vector<QueryError>>;

// Whole prompts beyond this are a sign that a cheaper engine was meant.
constexpr double kMaxDirectBytes = 4e9;

// What is asked about one query.
struct Question {
  const AnyMeasure& mu;
  const Attention& attention;
  VectorView z;
  std::vector<Metric> metrics;
  std::vector<std::int64_t> lengths;

  [[nodiscard]] bool covariance() const {
    return std::any_of(metrics.begin(), metrics.end(), reads_covariance);
  }
};

Table exact_errors(const Question& ask) {
  MixtureErrors errors(*gaussian_mixture_law(ask.mu), ask.attention, ask.z);
  Table table(ask.metrics.size());
  for (std::int64_t L : ask.lengths) {
    const double weights2 = 1 / errors.effective_sample_size(Length(L));
    for (std::size_t k = 0; k < ask.metrics.size(); ++k) {
      const ErrorParts parts = errors.error_parts(ask.metrics[k], Length(L));
      table[k].push_back({.value = parts.total(), .bias2 = parts.bias2, .weights2 = weights2});
    }
  }
  return table;
}

// Running tilted sums of one prompt, read at every length asked for. The monoid of tilt/state.h has
// no sum of squared weights and recentres its covariance at every token, which costs more here: the
// tokens are centred at the limit already.
class PrefixTilt {
 public:
  PrefixTilt(const Vector& a, bool covariance) : a_(a), covariance_(covariance) {
    S1_ = Vector::Zero(a.size());
    if (covariance) S2_ = Matrix::Zero(a.size(), a.size());
  }
  void add(const VectorView& x) {  // x is centred at m_a, so that the sums below are small
    const double s = a_.dot(x);
    if (s > top_) {
      const double shrink = std::exp(top_ - s);
      S0_ *= shrink;
      S00_ *= shrink * shrink;
      S1_ *= shrink;
      if (covariance_) S2_ *= shrink;
      top_ = s;
    }
    const double w = std::exp(s - top_);
    S0_ += w;
    S00_ += w * w;
    S1_ += w * x;
    if (covariance_) S2_.noalias() += w * x * x.transpose();
  }
  [[nodiscard]] Vector mean() const { return S1_ / S0_; }
  [[nodiscard]] Matrix cov() const { return S2_ / S0_ - mean() * mean().transpose(); }
  [[nodiscard]] double weights2() const { return S00_ / (S0_ * S0_); }

 private:
  Vector a_;
  bool covariance_;
  double top_ = -std::numeric_limits<double>::infinity();
  double S0_ = 0, S00_ = 0;
  Vector S1_;
  Matrix S2_;
};

// What one prompt says at one length.
struct PromptError {
  Vector dm;   // zbar - m_a [d]
  Matrix VdC;  // V (Chat - C_a) [dv,d]; empty where no metric reads it
  double weights2 = 0;
};

// A metric at one query: the square of its error from what a prompt says.
struct MetricAtQuery {
  MetricForm form;
  double factor;

  [[nodiscard]] double square(const Vector& dm, const Matrix& VdC) const {
    return factor * (form.of_covariance ? form.covariance_norm2(VdC) : form.mean_norm2(dm));
  }
};

std::vector<MetricAtQuery> at_query(const Question& ask) {
  std::vector<MetricAtQuery> out;
  for (Metric metric : ask.metrics) {
    const MetricForm form = metric_form(metric, ask.attention);
    out.push_back({form, form.factor(ask.z)});
  }
  return out;
}

// Sums over prompts.
struct PromptSums {
  std::vector<CoMoments> square;    // per metric, over lengths
  std::vector<PromptError> errors;  // per length

  void add(const std::vector<MetricAtQuery>& metrics, const std::vector<PromptError>& prompt) {
    square.resize(metrics.size());
    Vector squares(static_cast<Index>(prompt.size()));
    for (std::size_t k = 0; k < metrics.size(); ++k) {
      for (std::size_t i = 0; i < prompt.size(); ++i) {
        squares[static_cast<Index>(i)] = metrics[k].square(prompt[i].dm, prompt[i].VdC);
      }
      square[k].add(squares);
    }
    add(prompt);
  }
  void merge(const PromptSums& other) {
    square.resize(other.square.size());
    for (std::size_t k = 0; k < square.size(); ++k) square[k].merge(other.square[k]);
    add(other.errors);
  }

 private:
  void add(const std::vector<PromptError>& more) {
    if (errors.empty()) {
      errors = more;
      return;
    }
    for (std::size_t i = 0; i < errors.size(); ++i) {
      errors[i].dm += more[i].dm;
      errors[i].VdC += more[i].VdC;
      errors[i].weights2 += more[i].weights2;
    }
  }
};

QueryError error_of(const MetricAtQuery& metric, const CoMoments& square, const PromptError& sum,
                    Index length) {
  const double R = static_cast<double>(square.count());
  QueryError e{.value = square.mean()[length], .weights2 = sum.weights2 / R};
  if (square.count() < 2) return e;
  const Matrix cov = square.covariance_of_mean();
  e.std_error = std::sqrt(cov(length, length));
  e.bias2 = (R * metric.square(sum.dm / R, sum.VdC / R) - e.value) / (R - 1);
  e.cov.assign(cov.row(length).begin(), cov.row(length).begin() + length + 1);
  return e;
}

// draw(r) -> one PromptError per length. Blocks of replicates run in parallel and merge in order.
template <class Draw>
Table replicate_errors(const Question& ask, std::int64_t replicates, const Draw& draw) {
  constexpr std::int64_t kReplicates = 16;  // per block
  const std::vector<MetricAtQuery> metrics = at_query(ask);
  const std::int64_t blocks = (replicates + kReplicates - 1) / kReplicates;
  std::vector<PromptSums> sums(static_cast<std::size_t>(blocks));
  parallel_for(blocks, [&](std::int64_t b) {
    for (std::int64_t r = b * kReplicates; r < std::min(replicates, (b + 1) * kReplicates); ++r) {
      sums[static_cast<std::size_t>(b)].add(metrics, draw(r));
    }
  });
  PromptSums all;
  for (const PromptSums& block : sums) all.merge(block);
  Table table(metrics.size());
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    for (std::size_t l = 0; l < all.errors.size(); ++l) {
      table[k].push_back(error_of(metrics[k], all.square[k], all.errors[l], static_cast<Index>(l)));
    }
  }
  return table;
}

Table sampled_errors(const Question& ask, std::int64_t replicates, const Stream& stream) {
  const Matrix R =
      ask.covariance() ? Matrix(ask.attention.V().transpose()) : Matrix(ask.attention.dim(), 0);
  const SampledPrompt prompt(*gaussian_mixture_law(ask.mu), ask.attention.tilt(ask.z), R);
  const SampledDraw limit = prompt.limit();
  return replicate_errors(ask, replicates, [&](std::int64_t r) {
    std::vector<PromptError> errors;
    for (const SampledDraw& d :
         prompt.draw(ask.lengths, stream.split(static_cast<std::uint64_t>(r)))) {
      errors.push_back({d.zbar - limit.zbar, (d.CR - limit.CR).transpose(), d.weights2});
    }
    return errors;
  });
}

Table direct_errors(const Question& ask, std::int64_t replicates, const Stream& stream) {
  const std::int64_t longest = ask.lengths.back();
  if (static_cast<double>(longest) * static_cast<double>(ask.mu.dim()) * sizeof(double) >
      kMaxDirectBytes) {
    throw CapabilityError("direct: a prompt of " + std::to_string(longest) +
                          " whole tokens does not fit in memory; the exact and sampled engines "
                          "serve Gaussian measures at this length");
  }
  const Matrix& V = ask.attention.V();
  const Vector a = ask.attention.tilt(ask.z);
  const Vector m = ask.mu.tilted_mean(a);
  const bool covariance = ask.covariance();
  const Matrix C = covariance ? ask.mu.tilted_cov(a) : Matrix();
  return replicate_errors(ask, replicates, [&](std::int64_t r) {
    const Empirical prompt = ask.mu.sample(stream.split(static_cast<std::uint64_t>(r)), longest);
    PrefixTilt tilt(a, covariance);
    std::vector<PromptError> errors;
    std::int64_t l = 0;
    for (const std::int64_t L : ask.lengths) {
      for (; l < L; ++l) tilt.add(prompt.tokens().row(l).transpose() - m);
      errors.push_back(
          {tilt.mean(), covariance ? Matrix(V * (tilt.cov() - C)) : Matrix(), tilt.weights2()});
    }
    return errors;
  });
}

EngineChoice choose_at(const PromptOptions& options, const AnyMeasure& mu,
                       const Attention& attention, const VectorView& z) {
  check_dimension("prompt errors", "measure", mu.dim(), attention.dim());
  check_dimension("prompt errors", "z", z.size(), attention.dim());
  // An engine that is asked for by name refuses sharp scores itself.
  const bool automatic = options.engine == Engine::automatic;
  return choose_engine(options.engine, mu,
                       automatic ? largest_tau(mu, attention, z.transpose()) : 0);
}

}  // namespace

Table query_errors(const std::vector<Metric>& metrics, const AnyMeasure& mu,
                   const Attention& attention, const VectorView& z,
                   const std::vector<std::int64_t>& lengths, const PromptOptions& options) {
  const Engine engine = choose_at(options, mu, attention, z).engine;
  const Question ask{mu, attention, z, metrics, lengths};
  if (engine == Engine::exact) return exact_errors(ask);
  if (options.replicates < 1) {
    throw_argument("query_errors", "replicates", std::to_string(options.replicates), "at least 1");
  }
  if (engine == Engine::sampled) return sampled_errors(ask, options.replicates, options.stream);
  return direct_errors(ask, options.replicates, options.stream);
}

Estimate mean_square_error(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z, Length L, const PromptOptions& options) {
  if (options.replicates < 2) {
    throw_argument("mean_square_error", "replicates", std::to_string(options.replicates),
                   "an integer >= 2");
  }
  const Engine engine = choose_at(options, mu, attention, z).engine;
  (void)metric_form(metric, attention);  // refuses grad_k and grad_q of an operator without K and Q
  if (L.is_infinite()) return {};
  if (engine == Engine::exact) {
    MixtureErrors errors(*gaussian_mixture_law(mu), attention, z);
    return {.value = errors.error_parts(metric, L).total()};
  }
  const QueryError e =
      query_errors({metric}, mu, attention, z, {L.count()},
                   {.engine = engine, .replicates = options.replicates, .stream = options.stream})
          .front()
          .front();
  return {e.value, e.std_error, options.replicates, engine};
}

}  // namespace esscher
