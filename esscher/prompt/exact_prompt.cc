#include "esscher/prompt/exact_prompt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "esscher/base/error.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool has_tilted_mean(const AnyMeasure& mu, const Vector& a) {
  try {
    (void)mu.log_mgf(a);
    return true;
  } catch (const DomainError&) {
    return false;
  }
}

// The limit's tilted mean, or a mean where that does not exist: a place to read values from.
Vector some_centre(const Prompt& prompt, const std::optional<AnyMeasure>& limit, const Vector& a) {
  if (prompt.groups.empty()) return Vector::Zero(prompt.dim());
  const AnyMeasure& mu = limit ? *limit : prompt.groups.front().mu;
  try {
    return mu.tilted_mean(a);
  } catch (const DomainError&) {
    return mu.mean();
  }
}

}  // namespace

bool has_score_laws(const Prompt& prompt) {
  return std::all_of(prompt.groups.begin(), prompt.groups.end(),
                     [](const PromptGroup& group) { return has_score_law(group.mu); });
}

ExactPrompt::ExactPrompt(Prompt prompt, Attention attention, const VectorView& z)
    : prompt_(std::move(prompt)), attention_(std::move(attention)), z_(z) {
  check_prompt("exact", prompt_);
  check_dimension("exact", "prompt", prompt_.dim(), attention_.dim());
  check_dimension("exact", "z", z.size(), attention_.dim());
  a_ = attention_.tilt(z_);
  limit_ = limit_measure(prompt_);
}

ExactPrompt::Values& ExactPrompt::values(Reading reading) {
  const auto found = values_.find(reading);
  if (found != values_.end()) return found->second;
  const Index d = attention_.dim();
  Matrix A = attention_.V();
  if (reading == Reading::token) A = Matrix::Identity(d, d);
  if (reading == Reading::score) A = a_.transpose();
  const Vector centre = A * some_centre(prompt_, limit_, a_);
  std::vector<ScoreLaw> laws;
  for (const PromptGroup& group : prompt_.groups) {
    laws.push_back(score_law(group.mu, {a_, A, centre}));
  }
  const Index width = A.rows();
  return values_
      .emplace(reading, Values{GroupIntegrals(std::move(laws), width), std::move(A), centre})
      .first->second;
}

// Given tokens, the query's own token and sinks, in the order of their names.
GivenTokens ExactPrompt::given_tokens(const Values& v, const PromptLayout& at) const {
  const Index g = prompt_.given.rows(), self = prompt_.include_query ? 1 : 0;
  const auto sinks = static_cast<Index>(prompt_.sink_logits.size());
  GivenTokens out{Vector(g + self + sinks), Matrix::Zero(g + self + sinks, v.A.rows())};
  if (g > 0) {
    out.log_weight.head(g) = at.given + prompt_.given * a_;
    out.x.topRows(g) = prompt_.given * v.A.transpose();
  }
  if (self > 0) {
    out.log_weight[g] = at.self + a_.dot(z_);
    out.x.row(g) = (v.A * z_).transpose();
  }
  for (Index j = 0; j < sinks; ++j) {
    out.log_weight[g + self + j] = prompt_.sink_logits[static_cast<std::size_t>(j)];
  }
  out.x.rowwise() -= v.centre.transpose();
  return out;
}

GroupMoments ExactPrompt::moments(Reading reading, std::int64_t L) {
  Values& v = values(reading);
  const PromptLayout at = layout(prompt_, L);
  std::vector<GroupSegment> segments;
  for (const PromptRun& run : at.runs) {
    segments.push_back({.law = run.group, .bias = run.bias, .count = run.count, .from = run.from});
  }
  const double slope = prompt_.bias.kind == BiasKind::alibi ? prompt_.bias.slope : 0;
  return v.integrals.at(segments, given_tokens(v, at), slope);
}

// Without a limit values are read about the saturation value.
GroupMoments ExactPrompt::centred(Reading reading, std::int64_t L) {
  GroupMoments m = moments(reading, L);
  if (limit_) return m;
  std::optional<Vector>& saturation = values(reading).saturation;
  if (!saturation) {
    const bool grows =
        prompt_.groups.end() != std::find_if(prompt_.groups.begin(), prompt_.groups.end(),
                                             [](const PromptGroup& g) { return !g.count; });
    saturation = moments(reading, grows ? kSaturated : prompt_.fixed_tokens()).mean;
  }
  m.square += saturation->squaredNorm() - 2 * saturation->dot(m.mean);
  m.mean -= *saturation;
  return m;
}

Vector ExactPrompt::expected_output(Length L) {
  if (L.is_infinite()) {
    if (limit_) return attention_.V() * limit_->tilted_mean(a_);
    (void)centred(Reading::output, std::max<std::int64_t>(1, prompt_.fixed_tokens()));
    Values& v = values(Reading::output);
    return v.centre + *v.saturation;
  }
  const Vector shift = moments(Reading::output, L.count()).mean;
  return values(Reading::output).centre + shift;
}

double ExactPrompt::effective_sample_size(Length L) {
  if (L.is_infinite() && limit_) return kInfinity;
  return 1 / moments(Reading::output, L.is_infinite() ? kSaturated : L.count()).weights2;
}

double ExactPrompt::variance(Length L) {
  if (L.is_infinite() && limit_) return 0;
  const GroupMoments m = moments(Reading::output, L.is_infinite() ? kSaturated : L.count());
  return std::max(0.0, m.square - m.mean.squaredNorm());
}

ErrorParts ExactPrompt::error_parts(Metric metric, Length L) {
  if (reads_covariance(metric)) {
    throw CapabilityError("exact engine: " + std::string(name(metric)) +
                          " is exact for Gaussian tokens and mixtures without [prompt] only; use "
                          "engine = \"direct\"");
  }
  const MetricForm form = metric_form(metric, attention_);
  if (limit_) (void)limit_->log_mgf(a_);  // DomainError where there is nothing to be close to
  if (L.is_infinite() && limit_) return {};
  const Reading reading = metric == Metric::output ? Reading::output : Reading::token;
  const GroupMoments m = centred(reading, L.is_infinite() ? kSaturated : L.count());
  const double factor = form.factor(z_), bias2 = m.mean.squaredNorm();
  return {factor * bias2, factor * std::max(0.0, m.square - bias2)};
}

Vector ExactPrompt::part_weights(const PromptLayout& at, const GroupMoments& m) const {
  const auto groups = static_cast<Index>(prompt_.groups.size());
  const Index g = prompt_.given.rows(), rest = m.given.size() - g;
  Vector out = Vector::Zero(g + groups + rest);
  out.head(g) = m.given.head(g);
  out.tail(rest) = m.given.tail(rest);
  for (std::size_t r = 0; r < at.runs.size(); ++r) {
    out[g + static_cast<Index>(at.runs[r].group)] += m.weights[static_cast<Index>(r)];
  }
  return out;
}

Vector ExactPrompt::weights(Length L) {
  const std::int64_t n = L.is_infinite() ? kSaturated : L.count();
  return part_weights(layout(prompt_, n), moments(Reading::output, n));
}

ScoreFunctions ExactPrompt::score_functions(Length L) {
  const std::int64_t n = L.is_infinite() ? kSaturated : L.count();
  const GroupMoments plain = moments(Reading::score, n);
  const bool infinite = limit_ && !has_tilted_mean(*limit_, a_);
  return {.H = plain.weights2,
          .M1 = values(Reading::score).centre[0] + plain.mean[0],
          .M2c = infinite ? kInfinity : centred(Reading::score, n).square,
          .free_energy = plain.log_total,
          .entropy = plain.entropy,
          .error = plain.error};
}

}  // namespace esscher
