// Surrogates of a head: a Gaussian mixture of keys, with joint moments of (key, value) per
// component. For a = scale * q,
//
//   T_mix(q) = sum_c r_c (mV_c + Cov_c(V,K) a),   r = softmax_c(log w_c + <a, mK_c> + a' C_c a / 2)
//
// With one component this is the Gaussian limit mV + Cov(V,K) a, that is linear attention with a
// corrected mean.
#pragma once

#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/universal/score_mixture.h"

namespace esscher {

struct Surrogate {
  Vector weights;              // [k], sum 1
  Matrix mean_k;               // [k,dk]
  Matrix mean_v;               // [k,dv]
  std::vector<Matrix> cov_k;   // [k] of [dk,dk]
  std::vector<Matrix> cov_vk;  // [k] of [dv,dk]
  Vector trace_v;              // [k] trace of the value covariance

  [[nodiscard]] Index size() const { return weights.size(); }
  // T_mix for a [dk].
  [[nodiscard]] Vector operator()(const VectorView& a) const;
};

// Per-component sums of 1, k, v, kk', kv' and |v|^2 over a growing prompt. Keys and values are
// measured from fixed origins so that large means cost no digits.
class PromptMoments {
 public:
  PromptMoments(Index components, Vector origin_k, Vector origin_v);

  // keys [n,dk], values [n,dv] relative to the origins; responsibilities [n,components].
  void add(const MatrixView& keys, const MatrixView& values, const MatrixView& responsibilities);

  // The same where every key belongs to the one component there is.
  void add(const MatrixView& keys, const MatrixView& values);

  // Takes keys out again that were added. `part` has the same components and origins.
  void subtract(const PromptMoments& part);

  // Scores <a, k> and values of each component, for the rows a of A [m,dk], without forming the
  // surrogate; `floor` is added to the diagonal of every key covariance. Values are relative to the
  // origin: the surrogate's output is origin_v() + limit(scores).
  [[nodiscard]] std::vector<ScoreMixture> scores(const MatrixView& A, double floor) const;
  // Moments in absolute coordinates.
  [[nodiscard]] Surrogate surrogate(double floor) const;

  [[nodiscard]] double count() const { return count_; }
  [[nodiscard]] const Vector& origin_k() const { return origin_k_; }
  [[nodiscard]] const Vector& origin_v() const { return origin_v_; }
  [[nodiscard]] Vector mean_k() const;  // [dk] over all components
  [[nodiscard]] Vector mean_v() const;  // [dv]
  // Mean squared distance of values from their mean, tr Cov(V).
  [[nodiscard]] double value_variance() const;

 private:
  struct Component {
    double weight = 0;
    double vv = 0;  // sum |v|^2
    Vector k;       // [dk]
    Vector v;       // [dv]
    Matrix kk;      // [dk,dk]
    Matrix kv;      // [dk,dv]
  };

  Vector origin_k_;
  Vector origin_v_;
  double count_ = 0;
  std::vector<Component> components_;
};

}  // namespace esscher
