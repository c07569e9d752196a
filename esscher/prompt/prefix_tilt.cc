#include "esscher/prompt/detail/prefix_tilt.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/prompt/prefix_tilt.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After foreach_target.h, so that each target gets its own body.
#include "esscher/simd/exp-inl.h"

#ifndef ESSCHER_PROMPT_PREFIX_TILT_ONCE
#define ESSCHER_PROMPT_PREFIX_TILT_ONCE
namespace esscher {

// Tokens at a time. It is a multiple of every vector length.
inline constexpr Index kPrefixTokens = 256;

// A block of tokens as columns of kPrefixTokens numbers. From token n on columns are 0 and scores are
// so low that their weights vanish.
struct PrefixColumns {
  double* x;       // [d]
  double* scores;  // 1, then weights
  double* scaled;  // 1: weights times a column
  Index d, n;
};

}  // namespace esscher
#endif

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// Fills x and scores from rows of tokens and returns the largest score.
double prefix_scores(const double* tokens, const double* a, const double* centre,
                     const PrefixColumns& block) {
  const DD dd;
  const auto N = static_cast<Index>(hn::Lanes(dd));
  const Index d = block.d, n = block.n;
  const Index padded = (n + N - 1) / N * N;
  for (Index i = 0; i < d; ++i) {
    double* const column = block.x + i * kPrefixTokens;
    for (Index l = 0; l < n; ++l) column[l] = tokens[l * d + i] - centre[i];
    std::fill(column + n, column + padded, 0.0);
  }
  double top = std::numeric_limits<double>::lowest();
  for (Index l = 0; l < padded; l += N) {
    VD score = hn::Zero(dd);
    for (Index i = 0; i < d; ++i) {
      score = hn::MulAdd(hn::Set(dd, a[i]), hn::LoadU(dd, block.x + i * kPrefixTokens + l), score);
    }
    hn::StoreU(score, dd, block.scores + l);
  }
  for (Index l = 0; l < n; ++l) top = std::max(top, block.scores[l]);
  std::fill(block.scores + n, block.scores + padded, std::numeric_limits<double>::lowest());
  return top;
}

// sums [4 columns]: sum over tokens of left * x for four columns, or fewer.
template <int columns>
HWY_INLINE void column_sums(const double* left, const double* x, Index padded, double* sums) {
  const DD dd;
  VD sum[columns];
  HWY_UNROLL(4)
  for (int k = 0; k < columns; ++k) sum[k] = hn::Zero(dd);
  for (Index l = 0; l < padded; l += static_cast<Index>(hn::Lanes(dd))) {
    const VD w = hn::LoadU(dd, left + l);
    HWY_UNROLL(4)
    for (int k = 0; k < columns; ++k) {
      sum[k] = hn::MulAdd(w, hn::LoadU(dd, x + k * kPrefixTokens + l), sum[k]);
    }
  }
  HWY_UNROLL(4)
  for (int k = 0; k < columns; ++k) sums[k] += hn::GetLane(hn::SumOfLanes(dd, sum[k]));
}

HWY_INLINE void all_column_sums(const double* left, const double* x, Index padded, Index d,
                                double* sums) {
  Index i = 0;
  for (; i + 4 <= d; i += 4) column_sums<4>(left, x + i * kPrefixTokens, padded, sums + i);
  for (; i < d; ++i) column_sums<1>(left, x + i * kPrefixTokens, padded, sums + i);
}

// Adds the block to s = (S0, S00), S1 [d] and S2 [d,d] (or nullptr), with scores relative to top.
void prefix_sums(const PrefixColumns& block, double top, double* s, double* S1, double* S2) {
  const DD dd;
  const auto N = static_cast<Index>(hn::Lanes(dd));
  const Index d = block.d, padded = (block.n + N - 1) / N * N;
  const VD shift = hn::Set(dd, top);
  VD s0 = hn::Zero(dd);
  VD s00 = hn::Zero(dd);
  for (Index l = 0; l < padded; l += N) {
    const VD w = exp_of_nonpositive(dd, hn::Sub(hn::LoadU(dd, block.scores + l), shift));
    hn::StoreU(w, dd, block.scores + l);
    s0 = hn::Add(s0, w);
    s00 = hn::MulAdd(w, w, s00);
  }
  s[0] += hn::GetLane(hn::SumOfLanes(dd, s0));
  s[1] += hn::GetLane(hn::SumOfLanes(dd, s00));
  all_column_sums(block.scores, block.x, padded, d, S1);
  if (S2 == nullptr) return;
  for (Index i = 0; i < d; ++i) {
    const double* const column = block.x + i * kPrefixTokens;
    for (Index l = 0; l < padded; l += N) {
      const VD w = hn::LoadU(dd, block.scores + l);
      hn::StoreU(hn::Mul(w, hn::LoadU(dd, column + l)), dd, block.scaled + l);
    }
    all_column_sums(block.scaled, column, padded, d - i, S2 + i * d + i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher::detail {

HWY_EXPORT(prefix_scores);
HWY_EXPORT(prefix_sums);

PrefixTilt::PrefixTilt(const Vector& a, const Vector& centre, bool covariance)
    : a_(a),
      centre_(centre),
      covariance_(covariance),
      top_(std::numeric_limits<double>::lowest()),
      S1_(Vector::Zero(a.size())),
      work_(static_cast<std::size_t>((a.size() + 2) * kPrefixTokens)) {
  if (covariance) S2_ = Matrix::Zero(a.size(), a.size());
}

void PrefixTilt::add(const double* tokens, Index n) {
  const Index d = a_.size();
  for (; n > 0; n -= kPrefixTokens, tokens += kPrefixTokens * d) {
    double* const work = work_.data();
    const PrefixColumns block{.x = work + 2 * kPrefixTokens,
                              .scores = work,
                              .scaled = work + kPrefixTokens,
                              .d = d,
                              .n = std::min(n, kPrefixTokens)};
    const double top = ESSCHER_DISPATCH(prefix_scores)(tokens, a_.data(), centre_.data(), block);
    if (top > top_) {
      const double shrink = std::exp(top_ - top);
      S0_ *= shrink;
      S00_ *= shrink * shrink;
      S1_ *= shrink;
      if (covariance_) S2_ *= shrink;
      top_ = top;
    }
    double sums[2] = {S0_, S00_};
    ESSCHER_DISPATCH(prefix_sums)
    (block, top_, sums, S1_.data(), covariance_ ? S2_.data() : nullptr);
    S0_ = sums[0];
    S00_ = sums[1];
  }
}

Matrix PrefixTilt::cov() const {
  const Vector m = mean();
  Matrix out = S2_ / S0_ - m * m.transpose();
  out.triangularView<Eigen::StrictlyLower>() = out.transpose();
  return out;
}

}  // namespace esscher::detail
#endif
