// Prompts side by side in lanes, for the gradient of any number of heads on linear regression with
// any features. Internal to risk/batch.cc.
//
// In white coordinates (risk/batch.cc) the tokens of a prompt are u_l = (xi_l, eps_l)
// (task/token_lanes.h), and all heads read the same ones:
//
//   a~_h = (U_h n + w~ (u_y.n), sig u_y.n),   r~_h = (r_x + w~ r_y, sig r_y),
//   s_hl = a~_h'u_l,   t_hl = r~_h'u_l,   omega_hl = softmax over l of s_hl,
//   mean_h = sum_l omega_hl u_l,   product_h = sum_l omega_hl (t_hl - f_h) u_l,  f_h = sum omega t
//
// Linear attention has mean_h = (1/L) sum s_hl u_l and product_h = (1/L) sum t_hl u_l.
// A token costs D draws, and per head 4 D multiply-adds and one exponential. Tokens are never
// stored beyond a block of tokens_per_block(d).
#pragma once

#include <cstdint>

#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/base/scratch.h"
#include "esscher/random/stream.h"
#include "esscher/risk/detail/lanes.h"
#include "esscher/risk/model_kind.h"
#include "esscher/task/regression.h"

namespace esscher {

// Rows of kTrainLanes doubles, zero at first, in one block of memory.
class HeadRows {
 public:
  using Row = double*;
  using Rows = Eigen::Map<Matrix>;
  HeadRows(Index d, Index heads);

  [[nodiscard]] Index dim() const { return d_; }
  [[nodiscard]] Index heads() const { return heads_; }
  [[nodiscard]] Row w(Index i) { return row(i); }                      // [d], then w~
  [[nodiscard]] Row query(Index i) { return row(d_ + i); }             // n_x [d]
  [[nodiscard]] Row y() { return row(2 * d_); }                        // the target
  [[nodiscard]] Row used() { return row(2 * d_ + 1); }                 // 1 for a prompt, else 0
  [[nodiscard]] Row work(Index i) { return row(2 * d_ + 2 + i); }      // [d]
  [[nodiscard]] Row tilt(Index h, Index i) { return of(0, h, i); }     // a~ [H,D]
  [[nodiscard]] Row read(Index h, Index i) { return of(1, h, i); }     // r~ [H,D]
  [[nodiscard]] Row mean(Index h, Index i) { return of(2, h, i); }     // [H,D]
  [[nodiscard]] Row product(Index h, Index i) { return of(3, h, i); }  // [H,D]
  [[nodiscard]] Row s0(Index h) { return of(4, 0, h); }                // [H] sum of weights
  [[nodiscard]] Row st(Index h) { return of(4, 0, heads_ + h); }       // [H] sum of weights times t

  // Means, products and their s0 and st become 0.
  void clear_sums() { set_to_zero(3 * d_ + 2 + 2 * heads_ * (d_ + 1), 2 * heads_ * (d_ + 2)); }

  [[nodiscard]] Rows queries() { return {query(0), d_, kTrainLanes}; }
  [[nodiscard]] Rows tilts() { return {tilt(0, 0), heads_ * (d_ + 1), kTrainLanes}; }
  [[nodiscard]] Rows reads() { return {read(0, 0), heads_ * (d_ + 1), kTrainLanes}; }
  [[nodiscard]] Rows means() { return {mean(0, 0), heads_ * (d_ + 1), kTrainLanes}; }
  [[nodiscard]] Rows products() { return {product(0, 0), heads_ * (d_ + 1), kTrainLanes}; }

 private:
  [[nodiscard]] static Index count(Index d, Index H) { return 3 * d + 2 + 4 * H * (d + 1) + 2 * H; }
  void set_to_zero(Index first, Index rows);
  [[nodiscard]] Row row(Index i) { return memory_.as<double>() + i * kTrainLanes; }
  [[nodiscard]] Row of(Index which, Index h, Index i) {
    return row(3 * d_ + 2 + (which * heads_ + h) * (d_ + 1) + i);
  }

  Index d_, heads_;
  Scratch memory_;
};

// The law of white tokens: features and a normal, or with K components of a mixture, normals and the
// unit vector of a component (next_mixture).
struct WhiteTokens {
  Features features = Features::gaussian;
  Index components = 0;           // K
  const double* below = nullptr;  // cumulative probabilities, K - 1 rows of kTrainLanes
};

// Fills mean and product of prompts first .. first + count - 1 from tilt and read: float draws and
// scores, sums over a block in float, blocks added in double. Values t are centred by their mean in
// the block before they are summed, so the product does not suffer from cancellation. L >= 1.
void head_sums(const WhiteTokens& law, ModelKind kind, std::int64_t L, const Stream& tokens,
               Index first, Index count, HeadRows& rows);

// The same as sampled_lanes for any number of heads: batch.U and grad_U are [H D,d], batch.r and
// grad_r [H D]. Without batch.draws_tokens linear attention draws one Wishart matrix per prompt. At L
// = inf the tokens are Gaussian.
double head_lanes(const LaneBatch& batch, const Stream& stream, Index first, Index count,
                  Matrix& grad_U, Vector& grad_r);

}  // namespace esscher
