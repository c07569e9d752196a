// What a softmax risk asks of nodes (w, x) at (U, r), in the letters of risk/quadrature.h, and the way back
// from derivatives in these letters to those in (U, r), in SIMD lanes: one node per lane. Internal to
// quadrature.cc.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/risk/readout.h"

namespace esscher::detail {

// Coordinates of nodes in rows, so that a vector holds the same coordinate of several nodes. Blocks of
// kBlock are full, with nodes of weight 0 where there are no more.
//
// Nodes that come as (w, x) and (-w, x), as those of risk/nodes.h do, stand half a block apart. What they
// add to a sum is added first, so that sums that are 0 by this symmetry are exactly 0: a flow that starts
// with U or r blind to labels stays so, and rounding does not hold back its steps.
class NodeRows {
 public:
  static constexpr Index kBlock = 256, kHalf = kBlock / 2;

  // w, x [n,d], weight [n], S [d,d]: the rows are x and S w; label = w'S w + noise.
  NodeRows(const Matrix& w, const Matrix& x, const Vector& weight, const Matrix& S, double noise);

  [[nodiscard]] Index dim() const { return d_; }
  [[nodiscard]] Index blocks() const { return stride_ / kBlock; }
  [[nodiscard]] bool paired() const { return paired_; }
  // Where node i stands.
  [[nodiscard]] Index slot(Index i) const {
    if (!paired_) return i;
    const Index half = count_ / 2, k = i < half ? i : i - half;
    return k / kHalf * kBlock + k % kHalf + (i < half ? 0 : kHalf);
  }
  [[nodiscard]] const double* x(Index i) const { return row(i); }
  [[nodiscard]] const double* sw(Index i) const { return row(d_ + i); }
  [[nodiscard]] const double* label() const { return row(2 * d_); }
  [[nodiscard]] const double* target() const { return row(2 * d_ + 1); }  // w'x
  [[nodiscard]] const double* weight() const { return row(2 * d_ + 2); }

 private:
  [[nodiscard]] const double* row(Index i) const { return memory_.data() + i * stride_; }

  Index count_, d_;
  bool paired_;
  Index stride_;
  std::vector<double> memory_;
};

// (U, r) as the kernels read it: tilt a = (alpha x, beta'x), readout (v_x, v_y).
struct LetterMaps {
  LetterMaps(const Matrix& S, const Readout& at);

  Index d;
  Matrix alpha, Salpha;  // [d,d]
  Vector beta, vx, Svx;  // [d]
  double vy, vx_Svx;
};

// The letters of a block of nodes; the last three rows are filled by the caller.
class LetterBlock {
 public:
  static constexpr Index kSize = NodeRows::kBlock;

  explicit LetterBlock(Index d)
      : d_(d), memory_(static_cast<std::size_t>((2 * d + 11) * kSize), 0.0) {}

  [[nodiscard]] double* sax(Index i) { return row(i); }         // [d]: Sigma alpha x
  [[nodiscard]] double* a_bar(Index i) { return row(d_ + i); }  // [d+1]: d/da
  [[nodiscard]] double* bx() { return row(2 * d_ + 1); }        // beta'x
  [[nodiscard]] double* ga_y() { return row(2 * d_ + 2); }      // last entries of G a
  [[nodiscard]] double* gr_y() { return row(2 * d_ + 3); }      // and of G r
  [[nodiscard]] double* tau2() { return row(2 * d_ + 4); }      // a'G a
  [[nodiscard]] double* g() { return row(2 * d_ + 5); }         // r'G a
  [[nodiscard]] double* q() { return row(2 * d_ + 6); }         // r'G r
  [[nodiscard]] double* d_g() { return row(2 * d_ + 7); }
  [[nodiscard]] double* d_tau2() { return row(2 * d_ + 8); }  // twice the derivative
  [[nodiscard]] double* d_q() { return row(2 * d_ + 9); }     // twice the derivative

 private:
  [[nodiscard]] double* row(Index i) { return memory_.data() + i * kSize; }

  Index d_;
  std::vector<double> memory_;
};

// The nodes of one block.
void make_letters(const NodeRows& nodes, const LetterMaps& maps, Index block, LetterBlock& out);
// Adds the derivatives in (U, r) of this block to `slope`. The letters are those of make_letters.
void add_slope(const NodeRows& nodes, const LetterMaps& maps, Index block, LetterBlock& letters,
               Readout& slope);

}  // namespace esscher::detail
