// What a concentration study is about: tokens, an operator, and queries.
#pragma once

#include <optional>

#include "esscher/attention/attention.h"
#include "esscher/measure/any_measure.h"
#include "esscher/prompt/prompt.h"

namespace esscher {

// The law of queries, or queries given as points [n,d]; one of the two. Tokens are iid with law mu,
// unless there is a prompt: then mu is the law that it tends to (prompt_problem).
struct Problem {
  AnyMeasure mu;
  Attention attention;
  std::optional<AnyMeasure> nu = {};
  Matrix points = {};
  std::optional<Prompt> prompt = {};

  // What is drawn.
  [[nodiscard]] Prompt tokens() const { return prompt ? *prompt : Prompt::plain(mu); }
  // Whether tokens are iid and nothing else.
  [[nodiscard]] bool is_plain() const { return !prompt || prompt->is_plain(); }
};

// The problem of a prompt: mu is its limit, or the law of its first group where it has none. Queries
// are left to fill in.
Problem prompt_problem(Prompt prompt, Attention attention);

}  // namespace esscher
