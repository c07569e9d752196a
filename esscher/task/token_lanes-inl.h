// White tokens of a regression prompt, one prompt per 32-bit lane: token l is (xi_l, eps_l) with xi_l
// of the law of the features (identity covariance) and eps_l normal. Included once per Highway
// target. They come from the words of an Sfc32 (random/sfc-inl.h), a block of tokens at a time:
//
//   gaussian    d + 1 normals per token
//   rademacher  the bits of one word, the top bit first, for 32 coordinates
//   uniform     (2 k + 1) sqrt(3) 2^-31 from a word that is read as 2 k + 1, so the law is symmetric
//   sphere      d normals, scaled to length sqrt(d)
//
// Words of the features of a block come first, then the normals eps of the block.
#if defined(ESSCHER_TASK_TOKEN_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ESSCHER_TASK_TOKEN_LANES_INL_H_
#undef ESSCHER_TASK_TOKEN_LANES_INL_H_
#else
#define ESSCHER_TASK_TOKEN_LANES_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "esscher/random/sfc-inl.h"
#include "esscher/task/regression.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {

HWY_INLINE void next_signs(Sfc32& state, std::size_t tokens, std::size_t d, float* out) {
  const DF32 df;
  const DU32 du;
  const std::size_t lanes = hn::Lanes(df);
  const VU32 top = hn::Set(du, std::uint32_t{1} << 31);
  const VU32 one = hn::BitCast(du, hn::Set(df, 1.0F));
  Sfc32 now = state;
  for (std::size_t l = 0; l < tokens; ++l) {
    float* token = out + l * (d + 1) * lanes;
    for (std::size_t first = 0; first < d; first += 32) {
      VU32 word = now.next();
      const std::size_t end = first + 32 < d ? first + 32 : d;
      for (std::size_t i = first; i < end; ++i) {
        hn::Store(hn::BitCast(df, hn::Or(hn::And(word, top), one)), df, token + i * lanes);
        word = hn::Add(word, word);
      }
    }
  }
  state = now;
}

HWY_INLINE void next_uniforms(Sfc32& state, std::size_t tokens, std::size_t d, float* out) {
  const DF32 df;
  const DU32 du;
  const hn::ScalableTag<std::int32_t> di;
  const std::size_t lanes = hn::Lanes(df);
  const VF32 unit = hn::Set(df, 1.7320508075688772F * 0x1p-31F);
  Sfc32 now = state;
  for (std::size_t l = 0; l < tokens; ++l) {
    for (std::size_t i = 0; i < d; ++i) {
      const VU32 odd = hn::Or(now.next(), hn::Set(du, 1));
      hn::Store(hn::Mul(hn::ConvertTo(df, hn::BitCast(di, odd)), unit), df,
                out + (l * (d + 1) + i) * lanes);
    }
  }
  state = now;
}

// normals [tokens * d + 1, lanes], work [(tokens * d + 1) / 2, lanes]. A token whose normals are all
// 0 stays 0 instead of becoming NaN; in one dimension this has probability 2^-25.
HWY_INLINE void next_sphere(Sfc32& state, std::size_t tokens, std::size_t d, float* normals,
                            float* work, float* out) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  next_normals(state, (tokens * d + 1) / 2, normals, work);
  const VF32 d_square = hn::Set(df, static_cast<float>(d));
  for (std::size_t l = 0; l < tokens; ++l) {
    const float* from = normals + l * d * lanes;
    VF32 square = hn::Set(df, 1e-30F);
    for (std::size_t i = 0; i < d; ++i) {
      const VF32 x = hn::Load(df, from + i * lanes);
      square = hn::MulAdd(x, x, square);
    }
    const VF32 scale = hn::Sqrt(hn::Div(d_square, square));
    for (std::size_t i = 0; i < d; ++i) {
      hn::Store(hn::Mul(hn::Load(df, from + i * lanes), scale), df,
                out + (l * (d + 1) + i) * lanes);
    }
  }
}

// out [tokens * (d + 1) + 1, lanes], work [2 tokens * (d + 1) + 2, lanes], all aligned.
HWY_INLINE void next_tokens(Features features, Sfc32& state, std::size_t tokens, std::size_t d,
                            float* out, float* work) {
  const DF32 df;
  const std::size_t lanes = hn::Lanes(df);
  const std::size_t D = d + 1;
  float* const more = work + (tokens * D + 1) * lanes;
  switch (features) {
    case Features::gaussian: return next_normals(state, (tokens * D + 1) / 2, out, work);
    case Features::rademacher: next_signs(state, tokens, d, out); break;
    case Features::uniform: next_uniforms(state, tokens, d, out); break;
    case Features::sphere: next_sphere(state, tokens, d, work, more, out); break;
  }
  next_normals(state, (tokens + 1) / 2, work, more);
  for (std::size_t l = 0; l < tokens; ++l) {
    hn::Store(hn::Load(df, work + l * lanes), df, out + (l * D + d) * lanes);
  }
}

// Tokens (xi, e_k) of a mixture of K components: xi [d] normal, e_k [K] the unit vector of the
// component. below [K - 1, lanes] are the cumulative probabilities. The normals of a block come
// first, then one word for the component of each token. out [tokens * (d + K), lanes], work as above
// with d + K for d + 1.
HWY_INLINE void next_mixture(Sfc32& state, std::size_t tokens, std::size_t d, std::size_t K,
                             const float* below, float* out, float* work) {
  const DF32 df;
  const hn::ScalableTag<std::int32_t> di;
  const std::size_t lanes = hn::Lanes(df);
  const VF32 unit = hn::Set(df, 0x1p-24F);
  const VF32 one = hn::Set(df, 1.0F);
  next_normals(state, (tokens * d + 1) / 2, work, work + (tokens * d + 1) * lanes);
  Sfc32 now = state;
  for (std::size_t l = 0; l < tokens; ++l) {
    float* token = out + l * (d + K) * lanes;
    for (std::size_t i = 0; i < d; ++i) {
      hn::Store(hn::Load(df, work + (l * d + i) * lanes), df, token + i * lanes);
    }
    const VF32 uniform =
        hn::Mul(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<8>(now.next()))), unit);
    VF32 earlier = hn::Zero(df);
    for (std::size_t k = 0; k + 1 < K; ++k) {
      const auto is_below = hn::Lt(uniform, hn::Load(df, below + k * lanes));
      const VF32 so_far = hn::IfThenElseZero(is_below, one);
      hn::Store(hn::Sub(so_far, earlier), df, token + (d + k) * lanes);
      earlier = so_far;
    }
    hn::Store(hn::Sub(one, earlier), df, token + (d + K - 1) * lanes);
  }
  state = now;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
