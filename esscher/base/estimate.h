// A number and how it was made. Every answer about finite prompts has this type.
#pragma once

#include <cstdint>
#include <string_view>

namespace esscher {

// How an expectation over prompts was computed.
//   exact    no token is sampled: universal functions, std_error is 0
//   sampled  exact in law, scores drawn instead of tokens (Gaussian, Gaussian mixture)
//   direct   real tokens, drawn or given
//   automatic  exact where it exists, else sampled, else direct; never appears in a result
enum class Engine { exact, sampled, direct, automatic };

constexpr std::string_view name(Engine engine) {
  switch (engine) {
    case Engine::exact: return "exact";
    case Engine::sampled: return "sampled";
    case Engine::direct: return "direct";
    case Engine::automatic: return "auto";
  }
  return "?";
}

struct Estimate {
  double value = 0;
  double std_error = 0;  // 0 for the exact engine
  std::int64_t n = 0;    // independent replicates behind std_error; 0 for exact
  Engine engine = Engine::exact;
};

}  // namespace esscher
