// Rotary positions: the key of position l entered the softmax as k_l = R_l u_l, where R_l turns each
// pair j of coordinates by the angle l * base^{-2j/dims}. The scores of a query a are then
//
//   <a, k_l> = <R_l^-1 a, u_l>
//
// and if the un-rotated keys u_l have one law, each position has a Gaussian law of its own with the
// same few moments.
#pragma once

#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

// Which coordinates make a pair: (2j, 2j+1) as in llama2.c, or (j, j + dims/2) as in Hugging Face's
// Llama.
enum class RotaryPairs { interleaved, halves };

constexpr auto enum_names(RotaryPairs) {
  return EnumNames<RotaryPairs, 2>{
      "rotary pairs",
      {{{RotaryPairs::interleaved, "interleaved"}, {RotaryPairs::halves, "halves"}}}};
}

struct Rotary {
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::halves;
  Index dims = 0;   // the first coordinates that turn; 0: all of them
  Index first = 0;  // the position of key 0
};

// Throws ArgumentError unless base > 0 and dims is even, positive or 0, and at most dk (which must
// be even if dims is 0).
void check_rotary(std::string_view where, const Rotary& rotary, Index dk);

// Row i of rows [n,dk] turned by the position of key first_key + i; backwards undoes it.
Matrix rotated(const Rotary& rotary, const MatrixView& rows, Index first_key, bool backwards);

// Row i is a [dk] turned backwards by the position of keys[i].
Matrix turned_back(const Rotary& rotary, const VectorView& a, const std::vector<Index>& keys);

}  // namespace esscher
