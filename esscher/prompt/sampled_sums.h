// The sums over tokens that softmax reads, drawn without drawing tokens. In white coordinates a
// Gaussian token seen by one query is g ~ N(0, I), and its score is tau g_1
// (prompt/sampled_prompt.h). A row is a prompt, or a piece of one: `count` iid tokens with
//
//   w  = e^{tau g_1 - shift},   x = (g_1 - centre, g_2),
//   s0 = sum w,                s1 = sum w x,            s2 = sum w x x',
//   q0 = sum w^2,              q1 = sum w^2 x,          q2 = sum w^2 x x'
//
// Each SIMD lane holds one row, so short prompts cost no more per token than long ones. `centre` is
// near the mean of g_1 under the weights, about min(tau, sqrt(2 log count)), and keeps variances
// free of cancellation. |g_1| is bounded by the generator, so with shift = 0 the sums neither
// overflow nor vanish while tau <= kFreeTau. Beyond, shift is the running maximum of the scores of
// the row.
//
// The double version reads Stream::normal from block `first_block` on, in order, and sums in
// double. The float version reads the sequence of normals that begins with that one block
// (random/sfc-inl.h), sums 128 tokens at a time in float, and adds these sums in double. In both
// the result of a row does not depend on which rows share a call.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "esscher/random/stream.h"

namespace esscher {

struct ScoreRow {
  std::uint64_t first_block = 0;
  double tau = 0;     // >= 0
  double centre = 0;  // any finite number
};

struct ScoreSums {
  double shift = 0;
  double s0 = 0;
  std::array<double, 2> s1{};
  std::array<double, 3> s2{};  // (1,1), (1,2), (2,2)
  double q0 = 0;
  std::array<double, 2> q1{};
  std::array<double, 3> q2{};

  // Sums of the union of two disjoint sets of tokens; the default value is neutral.
  void merge(const ScoreSums& other);
};

// Two coordinates (g_1, g_2) per token. Blocks used by a row of n tokens: one in float, n in
// double. out [rows.size()].
void pair_sums_float(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
                     std::span<ScoreSums> out);
void pair_sums(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
               std::span<ScoreSums> out);

// One coordinate per token, in double; s1[1], s2[1..2], q1 and q2 stay 0. Blocks: ceil(n/2).
void single_sums(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
                 std::span<ScoreSums> out);

// Below these no running maximum is needed, because
//   float:   2 * 7.36 * tau + log(128 * 112) < 88
//   double:  2 * 8.57 * tau < 690
inline constexpr double kFreeTauFloat = 5.0;
inline constexpr double kFreeTau = 40.0;

// The centre that suits a row: about the mean of g_1 under the softmax weights of n tokens.
double score_centre(double tau, double n);

}  // namespace esscher
