#include "esscher/risk/detail/node_letters.h"

#include "esscher/simd/detail/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "esscher/risk/node_letters.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace esscher::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using esscher::detail::LetterBlock;
using esscher::detail::LetterMaps;
using esscher::detail::NodeRows;

// Products are rounded before they are added, and sums are eight of every eighth node on vectors of any
// size, so that the bits are the same on every instruction set.
constexpr Index kSums = 8;

template <class V>
HWY_INLINE V multiply_add(V a, V b, V c) {
  return hn::Add(hn::Mul(a, b), c);
}

double total(const double* s) {
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

void letters_of_block(const NodeRows& nodes, const LetterMaps& maps, Index block,
                      LetterBlock& out) {
  const hn::CappedTag<double, kSums> dd;
  using V = hn::Vec<decltype(dd)>;
  const Index d = maps.d;
  for (Index o = 0; o < NodeRows::kBlock; o += static_cast<Index>(hn::Lanes(dd))) {
    const Index k = block * NodeRows::kBlock + o;
    const auto c = [&](double x) HWY_ATTR { return hn::Set(dd, x); };
    const V labels = hn::LoadU(dd, nodes.label() + k);
    V b = hn::Zero(dd);
    V swa = hn::Zero(dd);
    V swv = hn::Zero(dd);
    V saxv = hn::Zero(dd);
    V tau2 = hn::Zero(dd);
    for (Index i = 0; i < d; ++i) {
      const double* alpha = maps.alpha.data() + i * d;
      const double* Salpha = maps.Salpha.data() + i * d;
      V ax = hn::Zero(dd);
      V sax = hn::Zero(dd);
      for (Index j = 0; j < d; ++j) {
        const V x = hn::LoadU(dd, nodes.x(j) + k);
        ax = multiply_add(c(alpha[j]), x, ax);
        sax = multiply_add(c(Salpha[j]), x, sax);
      }
      const V sw = hn::LoadU(dd, nodes.sw(i) + k);
      b = multiply_add(c(maps.beta(i)), hn::LoadU(dd, nodes.x(i) + k), b);
      swa = multiply_add(sw, ax, swa);
      swv = multiply_add(sw, c(maps.vx(i)), swv);
      saxv = multiply_add(sax, c(maps.vx(i)), saxv);
      tau2 = multiply_add(ax, sax, tau2);
      hn::StoreU(sax, dd, out.sax(i) + o);
    }
    const V gay = multiply_add(labels, b, swa);
    const V gry = multiply_add(c(maps.vy), labels, swv);
    tau2 = multiply_add(b, hn::Add(swa, gay), tau2);
    hn::StoreU(b, dd, out.bx() + o);
    hn::StoreU(gay, dd, out.ga_y() + o);
    hn::StoreU(gry, dd, out.gr_y() + o);
    hn::StoreU(tau2, dd, out.tau2() + o);
    hn::StoreU(multiply_add(c(maps.vy), gay, multiply_add(swv, b, saxv)), dd, out.g() + o);
    hn::StoreU(multiply_add(c(maps.vy), hn::Add(swv, gry), c(maps.vx_Svx)), dd, out.q() + o);
  }
}

// d/da = d_g G r + d_t G a,  d/dr = d_g G a + d_q G r, both for each node, and pairs of nodes are added
// before all others.
void slope_of_block(const NodeRows& nodes, const LetterMaps& maps, Index block,
                    LetterBlock& letters, Readout& slope) {
  const hn::CappedTag<double, kSums> dd;
  using V = hn::Vec<decltype(dd)>;
  const Index d = maps.d, lanes = static_cast<Index>(hn::Lanes(dd));
  const Index first = block * NodeRows::kBlock, half = NodeRows::kHalf;
  const Index size = nodes.paired() ? half : NodeRows::kBlock;
  const auto at = [&](const double* row) HWY_ATTR { return hn::LoadU(dd, row); };
  const V vy = hn::Set(dd, maps.vy);

  // Of coordinate i, or of the label for i = d: d/da to its row, d/dr to the sum.
  for (Index i = 0; i <= d; ++i) {
    const V Svx = hn::Set(dd, i < d ? maps.Svx(i) : 0.0);
    const auto back = [&](Index o, V& a_bar, V& r_bar) HWY_ATTR {
      V ga;
      V gr;
      if (i < d) {
        const V sw = at(nodes.sw(i) + first + o);
        ga = multiply_add(at(letters.bx() + o), sw, at(letters.sax(i) + o));
        gr = multiply_add(vy, sw, Svx);
      } else {
        ga = at(letters.ga_y() + o);
        gr = at(letters.gr_y() + o);
      }
      const V d_g = at(letters.d_g() + o);
      a_bar = multiply_add(d_g, gr, hn::Mul(at(letters.d_tau2() + o), ga));
      r_bar = multiply_add(d_g, ga, hn::Mul(at(letters.d_q() + o), gr));
    };
    double sums[kSums];
    for (Index g = 0; g < kSums; g += lanes) {
      V sum = hn::Zero(dd);
      for (Index o = g; o < size; o += kSums) {
        V a_bar;
        V r_bar;
        back(o, a_bar, r_bar);
        if (nodes.paired()) {
          V a_mirror;
          V r_mirror;
          back(o + half, a_mirror, r_mirror);
          a_bar = hn::Add(a_bar, a_mirror);
          r_bar = hn::Add(r_bar, r_mirror);
        }
        hn::StoreU(a_bar, dd, letters.a_bar(i) + o);
        sum = hn::Add(sum, r_bar);
      }
      hn::StoreU(sum, dd, sums + g);
    }
    slope.r(i) += total(sums);
  }

  for (Index i = 0; i <= d; ++i) {
    const double* a_bar = letters.a_bar(i);
    Index j = 0;
    for (; j + 4 <= d; j += 4) {
      double sums[4][kSums];
      for (Index g = 0; g < kSums; g += lanes) {
        V s0 = hn::Zero(dd);
        V s1 = s0;
        V s2 = s0;
        V s3 = s0;
        for (Index o = g; o < size; o += kSums) {
          const V a = at(a_bar + o);
          s0 = multiply_add(a, at(nodes.x(j) + first + o), s0);
          s1 = multiply_add(a, at(nodes.x(j + 1) + first + o), s1);
          s2 = multiply_add(a, at(nodes.x(j + 2) + first + o), s2);
          s3 = multiply_add(a, at(nodes.x(j + 3) + first + o), s3);
        }
        hn::StoreU(s0, dd, sums[0] + g);
        hn::StoreU(s1, dd, sums[1] + g);
        hn::StoreU(s2, dd, sums[2] + g);
        hn::StoreU(s3, dd, sums[3] + g);
      }
      for (Index k = 0; k < 4; ++k) slope.U(i, j + k) += total(sums[k]);
    }
    for (; j < d; ++j) {
      double sums[kSums];
      for (Index g = 0; g < kSums; g += lanes) {
        V sum = hn::Zero(dd);
        for (Index o = g; o < size; o += kSums) {
          sum = multiply_add(at(a_bar + o), at(nodes.x(j) + first + o), sum);
        }
        hn::StoreU(sum, dd, sums + g);
      }
      slope.U(i, j) += total(sums);
    }
  }
}

}  // namespace esscher::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace esscher {
namespace {

HWY_EXPORT(letters_of_block);
HWY_EXPORT(slope_of_block);

bool in_pairs(const Matrix& w, const Matrix& x, const Vector& weight) {
  const Index half = x.rows() / 2;
  return x.rows() % 2 == 0 && x.topRows(half) == x.bottomRows(half) &&
         w.topRows(half) == -w.bottomRows(half) && weight.head(half) == weight.tail(half);
}

Index units_of(Index n, Index unit) { return (n + unit - 1) / unit; }

}  // namespace

namespace detail {

NodeRows::NodeRows(const Matrix& w, const Matrix& x, const Vector& weight, const Matrix& S,
                   double noise)
    : count_(x.rows()),
      d_(x.cols()),
      paired_(in_pairs(w, x, weight)),
      stride_(kBlock * (paired_ ? units_of(count_ / 2, kHalf) : units_of(count_, kBlock))),
      memory_(static_cast<std::size_t>((2 * d_ + 3) * stride_), 0.0) {
  const Matrix Sw = w * S;
  for (Index i = 0; i < count_; ++i) {
    double* column = memory_.data() + slot(i);
    for (Index j = 0; j < d_; ++j) {
      column[j * stride_] = x(i, j);
      column[(d_ + j) * stride_] = Sw(i, j);
    }
    column[2 * d_ * stride_] = Sw.row(i).dot(w.row(i)) + noise;
    column[(2 * d_ + 1) * stride_] = w.row(i).dot(x.row(i));
    column[(2 * d_ + 2) * stride_] = weight(i);
  }
}

LetterMaps::LetterMaps(const Matrix& S, const Readout& at)
    : d(S.rows()),
      alpha(at.U.topLeftCorner(d, d)),
      Salpha(S * alpha),
      beta(at.U.row(d).head(d)),
      vx(at.r.head(d)),
      Svx(S * vx),
      vy(at.r(d)),
      vx_Svx(vx.dot(Svx)) {}

void make_letters(const NodeRows& nodes, const LetterMaps& maps, Index block, LetterBlock& out) {
  ESSCHER_DISPATCH(letters_of_block)(nodes, maps, block, out);
}

void add_slope(const NodeRows& nodes, const LetterMaps& maps, Index block, LetterBlock& letters,
               Readout& slope) {
  ESSCHER_DISPATCH(slope_of_block)(nodes, maps, block, letters, slope);
}

}  // namespace detail
}  // namespace esscher
#endif
