#include <memory>
#include <vector>

#include "esscher/risk/detail/prompt_sums.h"
#include "esscher/universal/two_tilts.h"

namespace esscher::detail {
namespace {

// A head at one query: its tilt and what it reads of an infinite prompt.
struct AtQuery {
  const Matrix& V;
  Vector a, c;
};

// Both heads of a pair read tokens of one mixture.
struct Pair {
  AtQuery h, g;
  std::shared_ptr<const SharedMixture> law;
  Matrix tilts, S_tilts;  // [D,2]

  Pair(const AtQuery& first, const AtQuery& second, const TokenLaw& tokens)
      : h(first), g(second), law(tokens.mixture(h.a)), tilts(h.a.size(), 2) {
    // Nodes that serve one tilt may be too coarse for the other: the finer ones serve both.
    if (const auto other = tokens.mixture(g.a); other->count() > law->count()) law = other;
    tilts << h.a, g.a;
    S_tilts = law->cov * tilts;
  }
  [[nodiscard]] Matrix centred(const AtQuery& head) const {
    return law->means.rowwise() - head.c.transpose();
  }
  [[nodiscard]] TwoTilts tokens() const {
    return {.weights = law->weights,
            .mu = law->means * tilts,
            .cov = tilts.transpose() * S_tilts,
            .f = centred(h) * h.V.transpose(),
            .g = centred(g) * g.V.transpose(),
            .f_cross = h.V * S_tilts,
            .g_cross = g.V * S_tilts,
            .fg = (h.V * law->cov).cwiseProduct(g.V).sum()};
  }
  // The fields above pulled back to both heads.
  void add_gradient(const TwoTilts& slope, const VectorView& z, LayerHead& of_h,
                    LayerHead& of_g) const {
    const Matrix& S = law->cov;
    of_h.V +=
        slope.f.transpose() * centred(h) + slope.f_cross * S_tilts.transpose() + slope.fg * g.V * S;
    of_g.V +=
        slope.g.transpose() * centred(g) + slope.g_cross * S_tilts.transpose() + slope.fg * h.V * S;
    const Matrix by_tilts = law->means.transpose() * slope.mu + 2 * S_tilts * slope.cov +
                            S * (h.V.transpose() * slope.f_cross + g.V.transpose() * slope.g_cross);
    of_h.U += by_tilts.col(0) * z.transpose();
    of_g.U += by_tilts.col(1) * z.transpose();
  }
};

}  // namespace

// With r = Wz + sum_h V_h c_h - t and xi_h as above, J = E|r + sum_h xi_h|^2/2 is a sum of terms of
// one head, E|r + xi_h|^2/2, and of pairs, in which |r|^2/2 is counted once. J does not depend on
// the c_h, which are therefore constants of the gradient. In a term of one head r is one too: its
// share of dV_h is that of a target which moves with V_h c_h, and what all terms say of r, E out -
// t, is added.
double softmax_heads_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                           const VectorView& z, const VectorView& target, Layer* gradient) {
  std::vector<AtQuery> heads;
  Vector r = layer.W * z - target;
  for (const LayerHead& head : layer.heads) {
    const Vector a = head.U * z;
    heads.push_back({head.V, a, centre(tokens, a)});
    r += head.V * heads.back().c;
  }
  double value = r.squaredNorm() / 2;
  Vector miss = r;  // E out - t
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Layer alone{Matrix::Zero(r.size(), z.size()), {layer.heads[h]}};
    const Vector own_target = heads[h].V * heads[h].c - r;
    Layer slope = alone.zero();
    Vector own_miss;
    value += softmax_error(alone, tokens, L, z, own_target, gradient == nullptr ? nullptr : &slope,
                           &own_miss) -
             r.squaredNorm() / 2;
    miss += own_miss - r;
    if (gradient != nullptr) {
      gradient->heads[h].U += slope.heads[0].U;
      gradient->heads[h].V += slope.heads[0].V - own_miss * heads[h].c.transpose();
    }
    for (std::size_t g = 0; g < h; ++g) {
      const Pair pair(heads[h], heads[g], tokens);
      if (gradient == nullptr) {
        value += two_tilts(pair.tokens(), L);
        continue;
      }
      const TwoTiltsGradient found = two_tilts_gradient(pair.tokens(), L);
      value += found.value;
      pair.add_gradient(found.slope, z, gradient->heads[h], gradient->heads[g]);
    }
  }
  if (gradient == nullptr) return value;
  gradient->W += miss * z.transpose();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    gradient->heads[h].V += miss * heads[h].c.transpose();
  }
  return value;
}

}  // namespace esscher::detail
