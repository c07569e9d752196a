// A number and how it was made. Every answer about finite prompts has this type.
#pragma once

#include <cstdint>

#include "esscher/base/enum_names.h"

namespace esscher {

// How an expectation over prompts was computed.
//   exact       no token is sampled: universal functions or another closed form
//   quadrature  no token is sampled, but the average over tasks and queries is one over nodes or
//               draws, whose error is stated. A request for exact may be answered by it.
//   sampled     exact in law: scores are drawn instead of tokens (Gaussian, Gaussian mixture)
//   direct      real tokens, drawn or given
//   automatic   exact where it exists, else sampled, else direct; never appears in a result
enum class Engine { exact, sampled, direct, automatic, quadrature };

constexpr auto enum_names(Engine) {
  return EnumNames<Engine, 5>{"engine",
                              {{{Engine::automatic, "auto"},
                                {Engine::exact, "exact"},
                                {Engine::quadrature, "quadrature"},
                                {Engine::sampled, "sampled"},
                                {Engine::direct, "direct"}}}};
}

struct Estimate {
  double value = 0;
  // Of everything that was sampled: prompts, queries, tasks, scramblings of a net of nodes. It is 0
  // only where nothing was.
  double std_error = 0;
  std::int64_t n = 0;  // independent replicates behind std_error; 0 where nothing was sampled
  Engine engine = Engine::exact;  // how prompts were averaged
  // So few summands carry the value that its standard error is noise, and usually too small.
  bool heavy = false;
};

}  // namespace esscher
