// What a prompt is made of: tokens that are given, groups of tokens drawn from laws, the query's own
// token, sinks, and log-weights that depend on the position.
//
//   position   0 .. g-1     g .. L-2 or L-1                   L-1
//   tokens     given        the groups, in their order        the query's own (include_query)
//
// L counts all of these. A group has a fixed count, or a share of the tokens that are left; shares
// are rounded to counts whose sum is right, the largest remainders upwards. A sink is a logit without
// a token: it takes weight and its value is 0. A token at position p has the distance L-1-p from the
// end. Position biases are added to scores, beside the bias of a group:
//
//   alibi    -slope * distance
//   window   0 for distances below width, -infinity beyond
//   table    values[distance], and the last of them beyond
//
// As L grows, the prompt tends to the mixture of its laws by share e^bias, whatever is given beside
// them (limit_measure). Under alibi and window, and without shares, there is no limit: the answer
// saturates instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/length.h"
#include "esscher/measure/any_measure.h"

namespace esscher {

enum class BiasKind { none, alibi, window, table };

constexpr auto enum_names(BiasKind) {
  return EnumNames<BiasKind, 4>{"bias kind",
                                {{{BiasKind::none, "none"},
                                  {BiasKind::alibi, "alibi"},
                                  {BiasKind::window, "window"},
                                  {BiasKind::table, "table"}}}};
}

struct PositionBias {
  BiasKind kind = BiasKind::none;
  double slope = 0;                 // alibi, > 0
  std::int64_t width = 0;           // window, >= 1
  std::vector<double> values = {};  // table, at least one; -infinity is allowed before the last
};

struct PromptGroup {
  AnyMeasure mu;
  std::string name = {};  // the measure's unless given
  // A fixed number of tokens, or else a share of those that are left.
  std::optional<std::int64_t> count = {};
  double share = 1;
  double bias = 0;

  [[nodiscard]] std::string label() const { return name.empty() ? mu.name() : name; }
};

struct Prompt {
  std::vector<PromptGroup> groups = {};
  Matrix given = {};  // [g,d]
  bool include_query = false;
  std::vector<double> sink_logits = {};  // -infinity is allowed
  PositionBias bias = {};

  // iid tokens of one law, which is what a measure alone stands for.
  static Prompt plain(AnyMeasure mu);
  // One group without bias, and nothing else.
  [[nodiscard]] bool is_plain() const;

  [[nodiscard]] Index dim() const;
  // The number of tokens that do not grow with L.
  [[nodiscard]] std::int64_t fixed_tokens() const;
};

// Throws ArgumentError or DimensionError, naming `where` and the part, unless the parts fit: one
// dimension, numbers in range, shares >= 0 with a positive sum if there are any.
void check_prompt(const std::string& where, const Prompt& prompt);

// Whose weight is told: "given:0", .., the groups by name, "self", "sink:0", ..
std::vector<std::string> part_names(const Prompt& prompt);

// The tokens of each group at length L. ArgumentError if L is below fixed_tokens(), or differs from it
// where no group has a share.
std::vector<std::int64_t> group_counts(const Prompt& prompt, std::int64_t L);

// Consecutive tokens of one group that have one log-weight, or under alibi log-weights that fall by
// the slope with every step away from the end.
struct PromptRun {
  std::size_t group = 0;
  std::int64_t count = 0;
  std::int64_t from = 0;  // the distance of the last of them
  double bias = 0;        // without alibi's part
};

// Where everything stands at length L. Runs of weight 0 are left out.
struct PromptLayout {
  std::vector<PromptRun> runs;
  Vector given;     // [g] log-weights of the given tokens, with their position bias
  double self = 0;  // of the query's own token
};
PromptLayout layout(const Prompt& prompt, std::int64_t L);

// The law that the prompt tends to, or nothing where there is no limit.
std::optional<AnyMeasure> limit_measure(const Prompt& prompt);
// Why there is no limit, as a clause; empty if there is one.
std::string no_limit_reason(const Prompt& prompt);
// The length from which on nothing changes to rounding, where there is no limit.
inline constexpr std::int64_t kSaturated = 1000000000000000;

}  // namespace esscher
