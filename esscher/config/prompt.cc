#include "esscher/config/prompt.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/number_text.h"
#include "esscher/config/measure.h"
#include "esscher/io/matrix.h"

namespace esscher {
namespace {

constexpr double kMostTokens = 1e15;
constexpr double kRounding = 1e-9;  // of shares that were written as decimals

PositionBias read_bias(const Table& prompt) {
  if (!prompt.has("bias")) return {};
  const Table table = prompt.table("bias");
  PositionBias bias{
      .kind = parse_enum<BiasKind>(table.choice("kind", {"none", "alibi", "window", "table"}))};
  switch (bias.kind) {
    case BiasKind::none: break;
    case BiasKind::alibi: bias.slope = table.number("slope", Range::positive()); break;
    case BiasKind::window:
      bias.width = table.integer("width", Range::between(1, kMostTokens));
      break;
    case BiasKind::table:
      bias.values = table.log_weights("values");
      if (bias.values.empty()) table.fail("values", "at least one number");
      break;
  }
  return bias;
}

PromptGroup read_group(const Table& table) {
  PromptGroup group{.mu = read_measure(table.table("measure"))};
  if (table.has("count") == table.has("share")) table.fail_table("expected count or share");
  if (table.has("count")) {
    group.count = table.integer("count", Range::between(0, kMostTokens));
  } else {
    group.share = table.number("share", Range::between(0, 1));
  }
  group.bias = table.number_or("bias", 0);
  group.name = table.text_or("name", group.mu.name());
  return group;
}

// [measure] takes the share that is left.
void share_out(const Table& root, const Table& table, Prompt& prompt) {
  double sum = 0;
  bool shares = false;
  for (const PromptGroup& group : prompt.groups) {
    if (group.count) continue;
    shares = true;
    sum += group.share;
  }
  const double rest = 1 - sum;
  if (rest < -kRounding)
    table.fail_because("groups", "shares sum to " + brief(sum) + ", at most 1");
  if (!root.has("measure")) {
    if (shares && rest > kRounding) {
      table.fail_because("groups", "shares sum to " + brief(sum) +
                                       "; let them sum to 1, or give [measure] for the rest");
    }
    return;
  }
  // Shares that sum to 1 leave none of it, which ends a sweep of a share from 0 to 1.
  prompt.groups.push_back(
      {.mu = read_measure(root.table("measure")), .share = rest <= kRounding ? 0 : rest});
}

}  // namespace

std::optional<Prompt> read_prompt(const Table& root) {
  const std::optional<Table> table = root.find_table("prompt");
  if (!table) return std::nullopt;
  Prompt prompt;
  if (table->has("given") && table->has("file")) {
    table->fail_because("file", "given beside prompt.given; give the tokens once");
  }
  if (table->has("given")) prompt.given = table->matrix("given");
  if (table->has("file")) prompt.given = read_matrix(table->file("file"));
  prompt.include_query = table->boolean_or("include_query", false);
  if (table->has("sink_logits")) prompt.sink_logits = table->log_weights("sink_logits");
  prompt.bias = read_bias(*table);
  if (table->has("groups")) {
    for (const Table& group : table->tables("groups")) prompt.groups.push_back(read_group(group));
  }
  share_out(root, *table, prompt);
  try {
    check_prompt("prompt", prompt);
  } catch (const ArgumentError& error) {
    table->fail_table(error.what());
  }
  return prompt;
}

}  // namespace esscher
