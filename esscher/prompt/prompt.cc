#include "esscher/prompt/prompt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "esscher/base/error.h"
#include "esscher/measure/mixture.h"

namespace esscher {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool may_weigh(double log_weight) { return log_weight < kInfinity; }  // also false for NaN

void check_group(const std::string& where, const PromptGroup& group) {
  if (group.count && *group.count < 0) {
    throw_argument(where, "count of group " + group.label(), std::to_string(*group.count),
                   "an integer >= 0");
  }
  if (!(group.share >= 0 && std::isfinite(group.share))) {
    throw_argument(where, "share of group " + group.label(), to_text(group.share), "a number >= 0");
  }
  if (!std::isfinite(group.bias)) {
    throw_argument(where, "bias of group " + group.label(), to_text(group.bias), "a finite number");
  }
}

void check_bias(const std::string& where, const PositionBias& bias) {
  if (bias.kind == BiasKind::alibi && !(bias.slope > 0 && std::isfinite(bias.slope))) {
    throw_argument(where, "bias slope", to_text(bias.slope), "a number > 0");
  }
  if (bias.kind == BiasKind::window && bias.width < 1) {
    throw_argument(where, "bias width", std::to_string(bias.width), "an integer >= 1");
  }
  if (bias.kind != BiasKind::table) return;
  if (bias.values.empty()) throw_argument(where, "bias values", "empty", "at least one number");
  if (!std::all_of(bias.values.begin(), bias.values.end(), may_weigh)) {
    throw_argument(where, "bias values", "not all below infinity", "numbers or -inf");
  }
}

double share_sum(const Prompt& prompt) {
  double sum = 0;
  for (const PromptGroup& group : prompt.groups) sum += group.count ? 0 : group.share;
  return sum;
}

// The log-weight that the position adds, without alibi's part.
double position_bias(const PositionBias& bias, std::int64_t distance) {
  if (bias.kind == BiasKind::window) return distance < bias.width ? 0 : -kInfinity;
  if (bias.kind != BiasKind::table) return 0;
  const auto last = static_cast<std::int64_t>(bias.values.size()) - 1;
  return bias.values[static_cast<std::size_t>(std::min(distance, last))];
}

// A group from distance `from` outwards, cut where the position bias changes.
void add_runs(const PositionBias& bias, PromptRun run, std::vector<PromptRun>& runs) {
  const std::int64_t end = run.from + run.count;
  const double own = run.bias;
  for (std::int64_t at = run.from; at < end;) {
    std::int64_t next = end;
    if (bias.kind == BiasKind::window && at < bias.width) next = std::min(end, bias.width);
    if (bias.kind == BiasKind::table && at + 1 < static_cast<std::int64_t>(bias.values.size())) {
      next = at + 1;
    }
    run.from = at;
    run.count = next - at;
    run.bias = own + position_bias(bias, at);
    if (run.bias > -kInfinity) runs.push_back(run);
    at = next;
  }
}

}  // namespace

Prompt Prompt::plain(AnyMeasure mu) {
  Prompt prompt;
  prompt.groups.push_back({.mu = std::move(mu)});
  return prompt;
}

bool Prompt::is_plain() const {
  return groups.size() == 1 && !groups[0].count && groups[0].share > 0 && given.rows() == 0 &&
         !include_query && sink_logits.empty() && bias.kind == BiasKind::none;
}

Index Prompt::dim() const { return groups.empty() ? given.cols() : groups.front().mu.dim(); }

std::int64_t Prompt::fixed_tokens() const {
  std::int64_t n = given.rows() + (include_query ? 1 : 0);
  for (const PromptGroup& group : groups) n += group.count.value_or(0);
  return n;
}

void check_prompt(const std::string& where, const Prompt& prompt) {
  if (prompt.groups.empty() && prompt.given.rows() == 0 && !prompt.include_query) {
    throw_argument(where, "prompt", "without tokens", "groups or given tokens");
  }
  for (const PromptGroup& group : prompt.groups) {
    check_dimension(where, "group of " + group.mu.name(), group.mu.dim(), prompt.dim());
    check_group(where, group);
  }
  if (prompt.given.rows() > 0) {
    check_dimension(where, "given tokens", prompt.given.cols(), prompt.dim());
    check_finite(where, "given tokens", prompt.given);
  }
  if (!std::all_of(prompt.sink_logits.begin(), prompt.sink_logits.end(), may_weigh)) {
    throw_argument(where, "sink_logits", "not all below infinity", "numbers or -inf");
  }
  const bool shares = std::any_of(prompt.groups.begin(), prompt.groups.end(),
                                  [](const PromptGroup& g) { return !g.count; });
  if (shares && !(share_sum(prompt) > 0)) {
    throw_argument(where, "shares", "all 0", "a positive sum");
  }
  check_bias(where, prompt.bias);
}

std::vector<std::string> part_names(const Prompt& prompt) {
  std::vector<std::string> names;
  for (Index i = 0; i < prompt.given.rows(); ++i) names.push_back("given:" + std::to_string(i));
  for (const PromptGroup& group : prompt.groups) {
    names.push_back(group.label());
  }
  if (prompt.include_query) names.emplace_back("self");
  for (std::size_t j = 0; j < prompt.sink_logits.size(); ++j) {
    names.push_back("sink:" + std::to_string(j));
  }
  return names;
}

std::vector<std::int64_t> group_counts(const Prompt& prompt, std::int64_t L) {
  const std::int64_t fixed = prompt.fixed_tokens(), rest = L - fixed;
  const double sum = share_sum(prompt);
  if (rest < 0 || (rest > 0 && !(sum > 0))) {
    throw_argument("prompt", "L", std::to_string(L),
                   (sum > 0 ? "at least " : "exactly ") + std::to_string(fixed) +
                       ", the number of tokens that are given or counted");
  }
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = rest;
  for (std::size_t k = 0; k < prompt.groups.size(); ++k) {
    const PromptGroup& group = prompt.groups[k];
    counts.push_back(group.count.value_or(0));
    if (group.count || !(group.share > 0)) continue;
    const double exact = static_cast<double>(rest) * (group.share / sum);
    counts[k] = std::min(left, static_cast<std::int64_t>(std::floor(exact)));
    left -= counts[k];
    remainders.emplace_back(exact - std::floor(exact), k);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left) {
    ++counts[remainders[i].second];
  }
  return counts;
}

PromptLayout layout(const Prompt& prompt, std::int64_t L) {
  const std::vector<std::int64_t> counts = group_counts(prompt, L);
  const double slope = prompt.bias.kind == BiasKind::alibi ? prompt.bias.slope : 0;
  PromptLayout out{.runs = {}, .given = Vector(prompt.given.rows()), .self = 0};
  for (Index i = 0; i < prompt.given.rows(); ++i) {
    const std::int64_t distance = L - 1 - i;
    out.given[i] = position_bias(prompt.bias, distance) - slope * static_cast<double>(distance);
  }
  std::int64_t next = prompt.given.rows();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    next += counts[k];
    if (counts[k] == 0) continue;
    add_runs(prompt.bias,
             {.group = k, .count = counts[k], .from = L - next, .bias = prompt.groups[k].bias},
             out.runs);
  }
  if (prompt.include_query) out.self = position_bias(prompt.bias, 0);
  return out;
}

std::string no_limit_reason(const Prompt& prompt) {
  switch (prompt.bias.kind) {
    case BiasKind::alibi:
      return "alibi weighs tokens down with their distance, so that no prompt averages over more "
             "than about 1/slope of them";
    case BiasKind::window:
      return "the window holds at most " + std::to_string(prompt.bias.width) + " tokens";
    default: break;
  }
  if (!(share_sum(prompt) > 0)) return "every group has a fixed count";
  if (position_bias(prompt.bias, std::numeric_limits<std::int64_t>::max()) == -kInfinity) {
    return "the table of biases ends with -inf";
  }
  return "";
}

std::optional<AnyMeasure> limit_measure(const Prompt& prompt) {
  if (!no_limit_reason(prompt).empty()) return std::nullopt;
  std::vector<double> weights;
  std::vector<AnyMeasure> parts;
  double top = -kInfinity;
  for (const PromptGroup& group : prompt.groups) {
    if (group.count || !(group.share > 0)) continue;
    weights.push_back(std::log(group.share) + group.bias);
    parts.push_back(group.mu);
    top = std::max(top, weights.back());
  }
  if (parts.size() == 1) return parts.front();
  Vector w(static_cast<Index>(weights.size()));
  for (std::size_t k = 0; k < weights.size(); ++k) {
    w[static_cast<Index>(k)] = std::exp(weights[k] - top);
  }
  return AnyMeasure(Mixture(w, std::move(parts)));
}

}  // namespace esscher
