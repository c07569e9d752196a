// Softmax-weighted sums of given tokens: the direct kernels.
//
//   s_l = <a, k_l> + b_l,   omega = softmax(s),   t_l = <r, v_l>
//   tilt           zbar = sum omega_l v_l                            (forward)
//   tilt_product   kbar = sum omega_l k_l  and
//                  sum omega_l (t_l - f)(k_l - kbar),  f = sum omega_l t_l      (VJP in a)
//   tilt_second    zbar and C_hat = sum omega_l (v_l - zbar)(v_l - zbar)'
//   tilt_prefixes  zbar of the first n tokens, for every requested n
//
// Where keys = values = tokens, tilt_product gives zbar and C_hat r, that is the forward pass and
// the VJP, in one pass. Many queries and many prompts are in many.h. Every function passes over
// memory once. Inputs must be finite, except that b_l = -inf masks token l.
//
// How sums are taken: tokens are read relative to a shift c taken from the data, so that rounding
// errors scale with the spread of the tokens and not with their distance from 0. Sums in precision
// T run over at most 96 tokens per lane; these partial sums are added in double. Leaves of
// kTiltLeaf tokens are merged in a tree that depends on n only, so the bits of a result do not
// depend on the number of threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/base/linalg.h"
#include "esscher/tilt/state.h"

namespace esscher {

// The number of tokens in a leaf of the merge tree, which is also the smallest piece of work of a
// thread.
inline constexpr Index kTiltLeaf = 4096;

// Rows of an array in memory: x_l = data + l * stride, [n,d]. T is float or double.
template <class T>
struct Rows {
  const T* data = nullptr;
  Index n = 0;
  Index d = 0;
  Index stride = 0;

  Rows() = default;
  Rows(const T* data_, Index n_, Index d_) : Rows(data_, n_, d_, d_) {}
  Rows(const T* data_, Index n_, Index d_, Index stride_)
      : data(data_), n(n_), d(d_), stride(stride_) {
    if (n < 0) throw_argument("Rows", "n", std::to_string(n), "a number >= 0");
    if (d < 1) throw_argument("Rows", "d", std::to_string(d), "a number >= 1");
    if (stride < d) throw_argument("Rows", "stride", std::to_string(stride), "at least d");
  }

  Rows slice(Index first, Index count) const { return {data + first * stride, count, d, stride}; }
};

// a [dk], keys [n,dk], values [n,dv], log_weights b [n] or empty.
template <class T>
TiltState tilt(std::span<const T> a, const Rows<T>& keys, const Rows<T>& values,
               std::span<const T> log_weights = {});

// a [dk], r [dv]. The state sums keys: sum [dk], product [dk], t_mean() = <r, vbar>.
template <class T>
TiltState tilt_product(std::span<const T> a, std::span<const T> r, const Rows<T>& keys,
                       const Rows<T>& values, std::span<const T> log_weights = {});

// a [d], tokens [n,d]. The state has the mean and the covariance of the tokens.
template <class T>
TiltState tilt_second(std::span<const T> a, const Rows<T>& tokens,
                      std::span<const T> log_weights = {});

// Row i of the result [lengths,dv] is the mean over the first lengths[i] tokens; lengths are
// increasing, between 1 and n.
template <class T>
Matrix tilt_prefixes(std::span<const T> a, const Rows<T>& keys, const Rows<T>& values,
                     std::span<const Index> lengths, std::span<const T> log_weights = {});

// tilt_product (tilt if r is empty) of tokens that arrive in chunks. The bits are those of a call
// on all tokens. Every chunk but the last must hold a multiple of kTiltLeaf tokens.
template <class T>
class TiltStream {
 public:
  TiltStream(std::vector<T> a, std::vector<T> r);  // [d], [d] or empty
  ~TiltStream();

  void push(const Rows<T>& tokens);  // [n,d]
  TiltState total() const;

 private:
  struct State;
  std::vector<T> a_, r_;
  std::unique_ptr<State> state_;
};

// The name of the target on which the tilt kernels run: simd::active_target().
std::string tilt_target();

}  // namespace esscher
