// Which heads of a model are replaced, and by what: a JSON file
//
//   {"default": {"window": 16, "sinks": 1, "heavy": 0, "tail": "finite"} or null,
//    "heads": [{"layer": 0, "head": 3, "window": 32, "tail": "gaussian"}, {"layer": 1, "head": 0,
//               "window": null}, ..]}
//
// Heads that are not named follow the default; without one, or with "window": null, they stay exact.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "esscher/heads/window.h"
#include "esscher/model/forward.h"

namespace esscher {

struct HeadPlan {
  std::optional<WindowOptions> fallback = {};
  std::map<std::pair<Index, Index>, std::optional<WindowOptions>> heads = {};  // (layer, head)

  [[nodiscard]] std::optional<WindowOptions> at(Index layer, Index head) const;
};

// Throws FileError that names `where`, the entry, its value and what was expected.
HeadPlan parse_plan(std::string_view where, std::string_view text);
std::string plan_text(const HeadPlan& plan);

// Throws ArgumentError if the plan names a head that the model does not have.
void check_plan(const HeadPlan& plan, const ModelSpec& spec);

// Runs the heads of the plan as windows, token by token, and the others exactly. Rotary tails turn
// with the model.
HeadRule planned_heads(const HeadPlan& plan, const ModelSpec& spec);

// Numbers kept after n tokens by all heads: with the plan, and by the cache that it replaces, where
// grouped heads share their keys.
struct PlanState {
  Index plan = 0;
  Index cache = 0;
};
PlanState plan_state(const HeadPlan& plan, const ModelSpec& spec, Index n);

}  // namespace esscher
