// The search for the shortest length, whatever D(L) is the error of. Internal to length.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "esscher/concentration/length.h"
#include "esscher/estimate/interval.h"
#include "esscher/estimate/smallest_length.h"

namespace esscher {

// Where a length is looked for. The search starts at two tokens: one token rarely is enough.
inline constexpr LengthRange kAnyLength{.from = 1, .to = kMaxLength, .first = 2};

// The bracket of an answer and its error probability, in words.
std::string bracket_text(const LengthAnswer& answer);

// Whether D rises above eps beyond the answer, in words.
std::string rise_text(const LengthAnswer& answer);

// The answer that there is none.
LengthAnswer never(LengthAnswer answer, const std::string& why);

// D without noise: D(L) <= eps < D(L-1), both evaluated, and so is D on the whole grid.
LengthAnswer certified(LengthAnswer answer, const std::function<double(std::int64_t)>& exact);

// The whole bisection may be wrong with this probability: a union bound over all its looks at data.
inline constexpr double kErrorProbability = 0.05;
inline constexpr int kMaxLooks =
    120;  // 4 looks at each of at most 9 lengths going up and 17 between two

struct Noisy {
  double value, std_error;
  Interval ci;  // misses the truth with probability kErrorProbability / kMaxLooks
};

using Evaluate = std::function<Noisy(std::int64_t L, std::int64_t factor)>;

// D from samples, `factor` times as many as usual: a bracket that holds the answer except with
// probability kErrorProbability, on prompts of at most `longest` tokens.
LengthAnswer stochastic(LengthAnswer answer, std::int64_t longest, const Evaluate& evaluate);

}  // namespace esscher
