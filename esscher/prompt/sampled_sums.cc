#include "esscher/prompt/sampled_sums.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/prompt/sampled_sums.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/random/sfc-inl.h"
#include "esscher/simd/exp-inl.h"
#include "esscher/simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

constexpr std::int64_t kTokensAtOnce = 128;

// e^s for s = tau g_1 - shift; in float the unit of scores is base 2. The bounds on tau and g_1 keep
// a float score below 54.
HWY_INLINE VF32 weight(VF32 log2_weight) { return exp2_in_range(log2_weight); }
HWY_INLINE VF64 weight(VF64 log_weight) { return exp_core(DF64(), log_weight); }

// Float and double differ in how normals are made and in the unit of the scores (base 2 in float).
// normals(n, out, work) gives the next n pairs, out [2 n, lanes], work [n, lanes].
struct FloatRows {
  using D = DF32;
  using T = float;
  static constexpr double kUnit = 1.4426950408889634;
  static constexpr double kFree = kFreeTauFloat;
  static constexpr double kLowest = kLowestExp2;

  FloatRows(const Stream& stream, const std::uint64_t* first_block)
      : state(start_sequences(stream, first_block)) {}
  HWY_INLINE void normals(std::size_t pairs, float* out, float* work) {
    next_normals(state, pairs, out, work);
  }

  Sfc32 state;
};

struct DoubleRows {
  using D = DF64;
  using T = double;
  static constexpr double kUnit = 1;
  static constexpr double kFree = kFreeTau;
  static constexpr double kLowest = -700;

  DoubleRows(const Stream& stream, const std::uint64_t* first_block)
      : keys(stream.seed()), id(stream.id()) {
    std::copy_n(first_block, hn::Lanes(DU64()), next_block);
  }
  HWY_INLINE void normals(std::size_t pairs, double* out, double* /*work*/) {
    const DU64 d64;
    const DF64 d;
    const std::size_t lanes = hn::Lanes(d64);
    VU64 index = hn::Load(d64, next_block);
    for (std::size_t i = 0; i < pairs; ++i) {
      const Words x = philox_words(index, hn::Set(d64, id), keys);
      hn::Store(hn::BitCast(d, join(x.x0, x.x1)), d, out + 2 * i * lanes);
      hn::Store(hn::BitCast(d, join(x.x2, x.x3)), d, out + (2 * i + 1) * lanes);
      index = hn::Add(index, hn::Set(d64, 1));
    }
    hn::Store(index, d64, next_block);
    for (std::size_t i = 0; i < pairs; ++i) {
      double* pair = out + 2 * i * lanes;
      VF64 first;
      VF64 second;
      normal_pair(hn::BitCast(d64, hn::Load(d, pair)), hn::BitCast(d64, hn::Load(d, pair + lanes)),
                  first, second);
      hn::Store(first, d, pair);
      hn::Store(second, d, pair + lanes);
    }
  }

  RoundKeys keys;
  std::uint64_t id;
  HWY_ALIGN_MAX std::uint64_t next_block[hn::MaxLanes(DU64())];
};

// The twelve (or four) sums of a vector of rows, over a few blocks at a time. Every loop over them
// is unrolled, because with a variable index GCC would keep them in memory.
template <class D, int coordinates>
struct Accumulator {
  using V = hn::Vec<D>;
  static constexpr int kSums = coordinates == 2 ? 12 : 4;

  HWY_INLINE void clear() {
    HWY_UNROLL(12)
    for (int k = 0; k < kSums; ++k) sum[k] = hn::Zero(D());
  }
  HWY_INLINE void add(V w, V x1, V x2) {
    const V wx1 = hn::Mul(w, x1);
    sum[0] = hn::Add(sum[0], w);
    sum[1] = hn::Add(sum[1], wx1);
    if constexpr (coordinates == 1) {
      sum[2] = hn::MulAdd(wx1, x1, sum[2]);
      sum[3] = hn::MulAdd(w, w, sum[3]);
    } else {
      const V wx2 = hn::Mul(w, x2);
      sum[2] = hn::Add(sum[2], wx2);
      sum[3] = hn::MulAdd(wx1, x1, sum[3]);
      sum[4] = hn::MulAdd(wx1, x2, sum[4]);
      sum[5] = hn::MulAdd(wx2, x2, sum[5]);
      sum[6] = hn::MulAdd(w, w, sum[6]);
      sum[7] = hn::MulAdd(w, wx1, sum[7]);
      sum[8] = hn::MulAdd(w, wx2, sum[8]);
      sum[9] = hn::MulAdd(wx1, wx1, sum[9]);
      sum[10] = hn::MulAdd(wx1, wx2, sum[10]);
      sum[11] = hn::MulAdd(wx2, wx2, sum[11]);
    }
  }
  V sum[kSums];
};

// Rescales earlier sums to a higher maximum.
template <class V, int sums, std::size_t lanes>
HWY_INLINE void rescale(V factor, double (&total)[sums][lanes]) {
  constexpr int first_square = sums == 12 ? 6 : 3;
  const hn::DFromV<V> d;
  HWY_ALIGN_MAX hn::TFromV<V> factor_of[lanes];
  hn::Store(factor, d, factor_of);
  for (int k = 0; k < sums; ++k) {
    for (std::size_t j = 0; j < hn::Lanes(d); ++j) {
      const double f = factor_of[j];
      total[k][j] *= k < first_square ? f : f * f;
    }
  }
}

// One vector of rows, as many as Rows::T has lanes. `free` means without a running maximum.
template <class Rows, int coordinates, bool free>
void sum_rows(const Stream& stream, const ScoreRow* rows, std::int64_t count, ScoreSums* out,
              std::size_t wanted) {
  using T = typename Rows::T;
  using D = typename Rows::D;
  using V = hn::Vec<D>;
  constexpr int kSums = Accumulator<D, coordinates>::kSums;
  constexpr std::size_t kMaxLanes = hn::MaxLanes(D());
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t stride = coordinates * lanes;

  std::uint64_t first_block[kMaxLanes + 1] = {};  // one more: start_sequences reads pairs
  HWY_ALIGN_MAX T tau_of[kMaxLanes];
  HWY_ALIGN_MAX T centre_of[kMaxLanes];
  for (std::size_t j = 0; j < lanes; ++j) {
    const ScoreRow& row = rows[std::min(j, wanted - 1)];
    first_block[j] = row.first_block;
    tau_of[j] = static_cast<T>(Rows::kUnit * row.tau);
    centre_of[j] = static_cast<T>(row.centre);
  }
  Rows source(stream, first_block);
  const V tau = hn::Load(d, tau_of);
  const V centre = hn::Load(d, centre_of);
  const V lowest = hn::Set(d, static_cast<T>(Rows::kLowest));

  HWY_ALIGN_MAX double total[kSums][kMaxLanes] = {};
  HWY_ALIGN_MAX T part[kSums][kMaxLanes];
  V shift = free ? hn::Zero(d) : hn::Set(d, static_cast<T>(-1e30));

  // Normals, weights and sums have a short loop each, because with the weights in the loop of the
  // sums the twelve sums would not fit into the registers.
  HWY_ALIGN_MAX T normals[2 * kTokensAtOnce * kMaxLanes];
  HWY_ALIGN_MAX T weights[kTokensAtOnce * kMaxLanes];
  for (std::int64_t left = count; left > 0;) {
    const std::int64_t now = std::min(left, kTokensAtOnce);
    const auto tokens = static_cast<std::size_t>(now);
    source.normals((tokens * coordinates + 1) / 2, normals, weights);
    const auto g1 = [&](std::size_t l) HWY_ATTR { return hn::Load(d, normals + l * stride); };
    if constexpr (!free) {
      V top = shift;
      for (std::size_t l = 0; l < tokens; ++l) top = hn::Max(top, hn::Mul(tau, g1(l)));
      rescale(weight(hn::Max(hn::Sub(shift, top), lowest)), total);
      shift = top;
    }
    for (std::size_t l = 0; l < tokens; ++l) {
      V score = hn::Mul(tau, g1(l));
      if constexpr (!free) score = hn::Max(hn::Sub(score, shift), lowest);
      hn::Store(weight(score), d, weights + l * lanes);
    }
    Accumulator<D, coordinates> sums;
    sums.clear();
    for (std::size_t l = 0; l < tokens; ++l) {
      const V x2 = hn::Load(d, normals + l * stride + (coordinates - 1) * lanes);
      sums.add(hn::Load(d, weights + l * lanes), hn::Sub(g1(l), centre), x2);
    }
    HWY_UNROLL(12)
    for (int k = 0; k < kSums; ++k) hn::Store(sums.sum[k], d, part[k]);
    for (int k = 0; k < kSums; ++k) {
      for (std::size_t j = 0; j < lanes; ++j) total[k][j] += static_cast<double>(part[k][j]);
    }
    left -= now;
  }
  HWY_ALIGN_MAX T shift_of[kMaxLanes];
  hn::Store(shift, d, shift_of);
  for (std::size_t j = 0; j < wanted; ++j) {
    const auto at = [&](int k) { return total[k][j]; };
    ScoreSums& to = out[j];
    to.shift = static_cast<double>(shift_of[j]) / Rows::kUnit;
    to.s0 = at(0);
    if constexpr (coordinates == 1) {
      to.s1 = {at(1), 0};
      to.s2 = {at(2), 0, 0};
      to.q0 = at(3);
      to.q1 = {};
      to.q2 = {};
    } else {
      to.s1 = {at(1), at(2)};
      to.s2 = {at(3), at(4), at(5)};
      to.q0 = at(6);
      to.q1 = {at(7), at(8)};
      to.q2 = {at(9), at(10), at(11)};
    }
  }
}

template <class Rows, int coordinates>
void sum_all(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
             std::span<ScoreSums> out) {
  const std::size_t lanes = hn::Lanes(typename Rows::D());
  for (std::size_t j = 0; j < rows.size(); j += lanes) {
    const std::size_t wanted = std::min(lanes, rows.size() - j);
    bool free = true;
    for (std::size_t i = j; i < j + wanted; ++i) free = free && rows[i].tau <= Rows::kFree;
    if (free) {
      sum_rows<Rows, coordinates, true>(stream, &rows[j], count, &out[j], wanted);
    } else {
      sum_rows<Rows, coordinates, false>(stream, &rows[j], count, &out[j], wanted);
    }
  }
}

void pair_float(const Stream& s, std::span<const ScoreRow> rows, std::int64_t n,
                std::span<ScoreSums> out) {
  sum_all<FloatRows, 2>(s, rows, n, out);
}
void pair_double(const Stream& s, std::span<const ScoreRow> rows, std::int64_t n,
                 std::span<ScoreSums> out) {
  sum_all<DoubleRows, 2>(s, rows, n, out);
}
void single_double(const Stream& s, std::span<const ScoreRow> rows, std::int64_t n,
                   std::span<ScoreSums> out) {
  sum_all<DoubleRows, 1>(s, rows, n, out);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {

HWY_EXPORT(pair_float);
HWY_EXPORT(pair_double);
HWY_EXPORT(single_double);

void pair_sums_float(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
                     std::span<ScoreSums> out) {
  ESSCHER_DISPATCH(pair_float)(stream, rows, count, out);
}
void pair_sums(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
               std::span<ScoreSums> out) {
  ESSCHER_DISPATCH(pair_double)(stream, rows, count, out);
}
void single_sums(const Stream& stream, std::span<const ScoreRow> rows, std::int64_t count,
                 std::span<ScoreSums> out) {
  ESSCHER_DISPATCH(single_double)(stream, rows, count, out);
}

void ScoreSums::merge(const ScoreSums& other) {
  if (other.s0 == 0) return;
  if (s0 == 0) {
    *this = other;
    return;
  }
  const double top = std::max(shift, other.shift);
  const double mine = std::exp(shift - top);
  const double theirs = std::exp(other.shift - top);
  const auto join = [&](double& a, double b, double f, double g) { a = f * a + g * b; };
  const double mine2 = mine * mine;
  const double theirs2 = theirs * theirs;
  join(s0, other.s0, mine, theirs);
  join(q0, other.q0, mine2, theirs2);
  for (std::size_t k = 0; k < 2; ++k) join(s1[k], other.s1[k], mine, theirs);
  for (std::size_t k = 0; k < 3; ++k) join(s2[k], other.s2[k], mine, theirs);
  for (std::size_t k = 0; k < 2; ++k) join(q1[k], other.q1[k], mine2, theirs2);
  for (std::size_t k = 0; k < 3; ++k) join(q2[k], other.q2[k], mine2, theirs2);
  shift = top;
}

double score_centre(double tau, double n) {
  return std::min(tau, std::sqrt(2 * std::log(std::max(n, 1.0))));
}

}  // namespace esscher
#endif
