#include "esscher/prompt/errors.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/detail/prefix_tilt.h"
#include "esscher/prompt/detail/replicates.h"
#include "esscher/prompt/engine.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/sampled_prompt.h"

namespace esscher {
namespace {

using detail::PrefixTilt;
using detail::PromptError;
using detail::Question;
using detail::replicate_errors;
using detail::Table;

Table exact_errors(const Question& ask) {
  const auto law = gaussian_mixture_law(ask.mu);
  if (!law) return detail::exact_prompt_errors(ask, Prompt::plain(ask.mu));
  MixtureErrors errors(*law, ask.attention, ask.z);
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

// Whole prompts of a law, token by token, in the coordinates in which they are drawn: a Gaussian
// token is m + F g, and the white g is tilted by F'a instead.
class DirectPrompts {
 public:
  DirectPrompts(const Question& ask) : ask_(ask), gaussian_(ask.mu.as<Gaussian>()) {
    a_ = ask.attention.tilt(ask.z);
    m_ = ask.mu.tilted_mean(a_);
    if (ask.covariance()) C_ = ask.mu.tilted_cov(a_);
    if (gaussian_ != nullptr) a_ = m_ = gaussian_->factor().transpose() * a_;
  }

  std::vector<PromptError> operator()(const Stream& stream) const {
    PrefixTilt tilt(a_, m_, ask_.covariance());
    std::vector<PromptError> errors;
    if (gaussian_ != nullptr) {
      constexpr Index kTokens = 256;  // at a time; normals are addressed, so the cut is free
      const Index k = a_.size();
      std::vector<double> normals(static_cast<std::size_t>(kTokens * k));
      std::int64_t l = 0;
      for (const std::int64_t L : ask_.lengths) {
        for (; l < L;) {
          const auto now = std::min<std::int64_t>(kTokens, L - l);
          stream.fill_normal(static_cast<std::uint64_t>(l * k),
                             std::span(normals).first(static_cast<std::size_t>(now * k)));
          tilt.add(normals.data(), now);
          l += now;
        }
        errors.push_back(error_of(tilt));
      }
      return errors;
    }
    const Empirical prompt = ask_.mu.sample(stream, ask_.lengths.back());
    std::int64_t l = 0;
    for (const std::int64_t L : ask_.lengths) {
      tilt.add(prompt.tokens().row(l).data(), L - l);
      l = L;
      errors.push_back(error_of(tilt));
    }
    return errors;
  }

 private:
  [[nodiscard]] PromptError error_of(const PrefixTilt& tilt) const {
    const bool covariance = ask_.covariance();
    PromptError out{tilt.mean(), covariance ? tilt.cov() : Matrix(), tilt.weights2()};
    if (gaussian_ != nullptr) {
      const Matrix& F = gaussian_->factor();
      out.dm = F * out.dm;
      if (covariance) out.VdC = F * out.VdC * F.transpose();
    }
    if (covariance) out.VdC = (ask_.attention.V() * (out.VdC - C_)).eval();
    return out;
  }

  const Question& ask_;
  const Gaussian* gaussian_;
  Vector a_, m_;  // tilt and limit, white if the law is Gaussian
  Matrix C_;      // of the tokens
};

Table direct_errors(const Question& ask, std::int64_t replicates, const Stream& stream) {
  const std::int64_t longest = ask.lengths.back();
  if (static_cast<double>(longest) * static_cast<double>(ask.mu.dim()) * sizeof(double) >
      detail::kMaxDirectBytes) {
    throw CapabilityError("direct: a prompt of " + std::to_string(longest) +
                          " whole tokens does not fit in memory; the exact and sampled engines "
                          "serve Gaussian measures at this length");
  }
  const DirectPrompts prompts(ask);
  return replicate_errors(ask, replicates, [&](std::int64_t r) {
    return prompts(stream.split(static_cast<std::uint64_t>(r)));
  });
}

EngineChoice choose_at(const PromptOptions& options, const Prompt& prompt,
                       const Attention& attention, const VectorView& z, bool covariance) {
  check_prompt("prompt errors", prompt);
  check_dimension("prompt errors", "prompt", prompt.dim(), attention.dim());
  check_dimension("prompt errors", "z", z.size(), attention.dim());
  return choose_engine(options.engine, prompt, attention, z.transpose(), covariance);
}

// Where errors are measured from: the limit, or a law that stands in its place without one.
AnyMeasure reference_of(const Prompt& prompt) {
  if (const auto limit = limit_measure(prompt)) return *limit;
  return prompt.groups.empty() ? AnyMeasure(Empirical(prompt.given)) : prompt.groups.front().mu;
}

}  // namespace

Table query_errors(const std::vector<Metric>& metrics, const Prompt& prompt,
                   const Attention& attention, const VectorView& z,
                   const std::vector<std::int64_t>& lengths, const PromptOptions& options) {
  const AnyMeasure mu = reference_of(prompt);
  const Question ask{mu, attention, z, metrics, lengths};
  const Engine engine = choose_at(options, prompt, attention, z, ask.covariance()).engine;
  const bool plain = prompt.is_plain();
  if (engine == Engine::exact) {
    return plain ? exact_errors(ask) : detail::exact_prompt_errors(ask, prompt);
  }
  if (options.replicates < 1) {
    throw_argument("query_errors", "replicates", std::to_string(options.replicates), "at least 1");
  }
  if (!plain) {
    return detail::drawn_prompt_errors(ask, prompt, engine, options.replicates, options.stream);
  }
  if (engine == Engine::sampled) return sampled_errors(ask, options.replicates, options.stream);
  return direct_errors(ask, options.replicates, options.stream);
}

Table query_errors(const std::vector<Metric>& metrics, const AnyMeasure& mu,
                   const Attention& attention, const VectorView& z,
                   const std::vector<std::int64_t>& lengths, const PromptOptions& options) {
  return query_errors(metrics, Prompt::plain(mu), attention, z, lengths, options);
}

Estimate mean_square_error(Metric metric, const Prompt& prompt, const Attention& attention,
                           const VectorView& z, Length L, const PromptOptions& options) {
  if (options.replicates < 2) {
    throw_argument("mean_square_error", "replicates", std::to_string(options.replicates),
                   "an integer >= 2");
  }
  const Engine engine = choose_at(options, prompt, attention, z, reads_covariance(metric)).engine;
  (void)metric_form(metric, attention);  // refuses grad_k and grad_q of an operator without K and Q
  const bool saturates = !limit_measure(prompt).has_value();
  if (L.is_infinite() && !saturates) return {};
  const std::int64_t n = L.is_infinite() ? kSaturated : L.count();
  const QueryError e =
      query_errors({metric}, prompt, attention, z, {n},
                   {.engine = engine, .replicates = options.replicates, .stream = options.stream})
          .front()
          .front();
  if (engine == Engine::exact) return {.value = e.value};
  return {e.value, e.std_error, options.replicates, engine};
}

Estimate mean_square_error(Metric metric, const AnyMeasure& mu, const Attention& attention,
                           const VectorView& z, Length L, const PromptOptions& options) {
  return mean_square_error(metric, Prompt::plain(mu), attention, z, L, options);
}

}  // namespace esscher
