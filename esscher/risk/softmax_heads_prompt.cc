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

// E[xi_h'xi_g], xi = V (sum omega z' - c).
double cross_term(const AtQuery& h, const AtQuery& g, const TokenLaw& tokens, std::int64_t L) {
  // Nodes that serve one tilt may be too coarse for the other: the finer ones serve both.
  auto law = tokens.mixture(h.a);
  if (const auto other = tokens.mixture(g.a); other->count() > law->count()) law = other;
  Matrix tilts(h.a.size(), 2);
  tilts << h.a, g.a;
  const Matrix S_tilts = law->cov * tilts;
  return two_tilts({.weights = law->weights,
                    .mu = law->means * tilts,
                    .cov = tilts.transpose() * S_tilts,
                    .f = (law->means.rowwise() - h.c.transpose()) * h.V.transpose(),
                    .g = (law->means.rowwise() - g.c.transpose()) * g.V.transpose(),
                    .f_cross = h.V * S_tilts,
                    .g_cross = g.V * S_tilts,
                    .fg = (h.V * law->cov).cwiseProduct(g.V).sum()},
                   L);
}

}  // namespace

// With r = Wz + sum_h V_h c_h - t and xi_h as above, J = E|r + sum_h xi_h|^2/2 is a sum of terms of
// one head, E|r + xi_h|^2/2, and of pairs, in which |r|^2/2 is counted once.
double softmax_heads_error(const Layer& layer, const TokenLaw& tokens, std::int64_t L,
                           const VectorView& z, const VectorView& target) {
  std::vector<AtQuery> heads;
  Vector r = layer.W * z - target;
  for (const LayerHead& head : layer.heads) {
    const Vector a = head.U * z;
    heads.push_back({head.V, a, centre(tokens, a)});
    r += head.V * heads.back().c;
  }
  double value = r.squaredNorm() / 2;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const Layer alone{Matrix::Zero(r.size(), z.size()), {layer.heads[h]}};
    const Vector own_target = heads[h].V * heads[h].c - r;
    value += softmax_error(alone, tokens, L, z, own_target, nullptr) - r.squaredNorm() / 2;
    for (std::size_t g = 0; g < h; ++g) value += cross_term(heads[h], heads[g], tokens, L);
  }
  return value;
}

}  // namespace esscher::detail
