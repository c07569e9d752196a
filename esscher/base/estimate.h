// A number and how it was made. Every answer about finite prompts has this type.
#pragma once

#include <cstdint>

#include "esscher/base/enum_names.h"

namespace esscher {

// How an expectation over prompts was computed. Queries, tasks or nodes may have been sampled
// beside the prompts: the standard error of an answer says whether anything was.
//   exact      no token is sampled: universal functions or another closed form
//   sampled    exact in law: scores are drawn instead of tokens (Gaussian, Gaussian mixture)
//   direct     real tokens, drawn or given
//   automatic  exact where it exists, else sampled, else direct; never appears in a result
enum class Engine { exact, sampled, direct, automatic };

constexpr auto enum_names(Engine) {
  return EnumNames<Engine, 4>{"engine",
                              {{{Engine::automatic, "auto"},
                                {Engine::exact, "exact"},
                                {Engine::sampled, "sampled"},
                                {Engine::direct, "direct"}}}};
}

struct Estimate {
  double value = 0;
  // Of everything that was sampled: prompts, queries, tasks, scramblings of a net of nodes. It is 0
  // only where nothing was, so an answer of the exact engine may have one.
  double std_error = 0;
  std::int64_t n = 0;  // independent replicates behind std_error; 0 where nothing was sampled
  Engine engine = Engine::exact;  // how prompts were averaged
};

}  // namespace esscher
