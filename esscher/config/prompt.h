// Prompts in configuration files (prompt/prompt.h).
//
//   [prompt]           given = [[..], ..] or file = "tokens.npy"    tokens at the start of the prompt
//                      include_query = false                        the query is the last token
//                      sink_logits = [..]                           logits without a token
//                      bias = { kind = "alibi", slope = x } | { kind = "window", width = n }
//                             | { kind = "table", values = [..] }
//   [[prompt.groups]]  measure = { .. }, count = n or share = 0.x, bias = 0, name
//
// [measure] is a group too, the last one: it has the share that the groups leave, which may be 0.
// Without it the shares sum to 1.
#pragma once

#include <optional>

#include "esscher/config/table.h"
#include "esscher/prompt/prompt.h"

namespace esscher {

// Nothing where there is no [prompt].
std::optional<Prompt> read_prompt(const Table& root);

}  // namespace esscher
