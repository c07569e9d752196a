#include "esscher/prompt/averages.h"

#include <cmath>
#include <limits>
#include <optional>

#include "esscher/base/error.h"
#include "esscher/base/parallel.h"
#include "esscher/estimate/quantile.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/prompt/detail/replicates.h"
#include "esscher/prompt/engine.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/exact_prompt.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Plain Gaussian tokens and mixtures have kernels that reach further than nodes.
PromptAverages exact_averages(const Prompt& prompt, const Attention& attention, const VectorView& z,
                              std::int64_t L) {
  PromptAverages out;
  out.output_error = Vector::Zero(attention.output_dim());
  const auto law =
      prompt.is_plain() ? gaussian_mixture_law(prompt.groups.front().mu) : std::nullopt;
  if (law) {
    MixtureErrors errors(*law, attention, z);
    out.output = errors.expected_output(Length(L));
    out.variance = errors.error_parts(Metric::output, Length(L)).variance;
    out.weights2 = 1 / errors.effective_sample_size(Length(L));
    out.weights = Vector::Ones(1);
    return out;
  }
  ExactPrompt exact(prompt, attention, z);
  out.output = exact.expected_output(Length(L));
  out.variance = exact.variance(Length(L));
  out.weights2 = 1 / exact.effective_sample_size(Length(L));
  out.weights = exact.weights(Length(L));
  return out;
}

}  // namespace

PromptAverages prompt_averages(const Prompt& prompt, const Attention& attention,
                               const VectorView& z, std::int64_t L, const PromptOptions& options) {
  check_prompt("prompt averages", prompt);
  check_dimension("prompt averages", "attention", attention.dim(), prompt.dim());
  check_dimension("prompt averages", "z", z.size(), attention.dim());
  const Engine engine =
      choose_engine(options.engine, prompt, attention, z.transpose(), false).engine;
  if (engine == Engine::exact) return exact_averages(prompt, attention, z, L);
  if (options.replicates < 2) {
    throw_argument("prompt averages", "replicates", std::to_string(options.replicates),
                   "at least 2");
  }
  const AnyMeasure unused = Empirical(Matrix::Zero(1, prompt.dim()));
  const detail::Question ask{unused, attention, z, {Metric::output}, {L}, true};
  const QueryError e =
      detail::drawn_prompt_errors(ask, prompt, engine, options.replicates, options.stream)[0][0];
  return {
      .output = e.output,
      .output_error = e.output_error,
      .variance = e.value - e.bias2,
      .weights2 = e.weights2,
      .weights = Eigen::Map<const Vector>(e.weights.data(), static_cast<Index>(e.weights.size())),
      .engine = engine};
}

DrawnPrompt draw_prompt(const Prompt& prompt, const VectorView& z, std::int64_t L,
                        const Stream& stream) {
  const PromptLayout at = layout(prompt, L);
  const Index g = prompt.given.rows();
  std::vector<Index> drawn(prompt.groups.size(), 0);
  for (const PromptRun& run : at.runs) drawn[run.group] += static_cast<Index>(run.count);
  Index most = g + (prompt.include_query ? 1 : 0) + static_cast<Index>(prompt.sink_logits.size());
  for (const Index n : drawn) most += n;
  DrawnPrompt out{Matrix::Zero(most, z.size()), Vector(most), {}};
  const auto add = [&](const VectorView& token, double log_weight, std::size_t part) {
    if (log_weight == -kInfinity) return;
    const auto row = static_cast<Index>(out.part.size());
    out.tokens.row(row) = token.transpose();
    out.log_weight[row] = log_weight;
    out.part.push_back(part);
  };
  for (Index i = 0; i < g; ++i) {
    add(prompt.given.row(i).transpose(), at.given[i], static_cast<std::size_t>(i));
  }
  const double slope = prompt.bias.kind == BiasKind::alibi ? prompt.bias.slope : 0;
  std::vector<Matrix> tokens(prompt.groups.size());
  std::vector<Index> next(prompt.groups.size(), 0);
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    if (drawn[k] > 0) tokens[k] = prompt.groups[k].mu.sample(stream.split(k), drawn[k]).tokens();
  }
  for (const PromptRun& run : at.runs) {
    for (std::int64_t l = 0; l < run.count; ++l) {
      add(tokens[run.group].row(next[run.group]++).transpose(),
          run.bias - slope * static_cast<double>(run.from + l),
          static_cast<std::size_t>(g) + run.group);
    }
  }
  std::size_t part = static_cast<std::size_t>(g) + prompt.groups.size();
  if (prompt.include_query) add(z, at.self, part++);
  const Vector zero = Vector::Zero(z.size());
  for (const double logit : prompt.sink_logits) add(zero, logit, part++);
  if (out.part.empty()) {
    throw_argument("prompt", "weights", "all 0", "at least one token that weighs something");
  }
  const auto n = static_cast<Index>(out.part.size());
  out.tokens.conservativeResize(n, Eigen::NoChange);
  out.log_weight.conservativeResize(n);
  return out;
}

Vector DrawnPrompt::softmax(const VectorView& a) const {
  const Vector s = tokens * a + log_weight;
  const Vector e = (s.array() - s.maxCoeff()).exp();
  return e / e.sum();
}

Empirical DrawnPrompt::measure(const VectorView& a) const {
  const Vector weights = (log_weight.array() - log_weight.maxCoeff()).exp();
  if ((softmax(a).array() > 0 && weights.array() < std::numeric_limits<double>::min()).any()) {
    throw CapabilityError(
        "prompt: log-weights are more than 700 apart and scores make up for it, which weights in "
        "double precision cannot hold");
  }
  return {tokens, weights};
}

Estimate median_weights2(const Prompt& prompt, const Attention& attention, const VectorView& z,
                         std::int64_t L, int draws, const Stream& stream) {
  const Vector a = attention.tilt(z);
  std::vector<double> h(static_cast<std::size_t>(draws));
  parallel_for(draws, [&](std::int64_t i) {
    const DrawnPrompt drawn =
        draw_prompt(prompt, z, L, stream.split(static_cast<std::uint64_t>(i)));
    h[static_cast<std::size_t>(i)] = drawn.softmax(a).squaredNorm();
  });
  return median_estimate(h, Engine::direct);
}

}  // namespace esscher
