// Multi-head attention with an output matrix O [p, sum dv_h]. Head h has the output T_h [dv_h], and
//
//   y = O T,  T = (T_1; ...; T_H)
//
// For a cotangent g [p] the cotangents of the heads are the blocks of O'g, and Obar = g T'.
#pragma once

#include <vector>

#include "esscher/attention/attention.h"

namespace esscher {

struct MultiHeadGradients {
  Vector z;                               // [d], summed over heads
  std::vector<AttentionGradients> heads;  // per head
  Matrix O;                               // [p, sum dv_h]
};

class MultiHead {
 public:
  // At least one head, all on the same dimension d; O [p, sum dv_h], finite.
  MultiHead(std::vector<Attention> heads, Matrix O);

  [[nodiscard]] const std::vector<Attention>& heads() const { return heads_; }
  [[nodiscard]] const Matrix& O() const { return O_; }
  [[nodiscard]] Index dim() const { return heads_.front().dim(); }
  [[nodiscard]] Index output_dim() const { return O_.rows(); }

  template <Measure M>
  [[nodiscard]] Vector operator()(const M& mu, const VectorView& z) const {
    return O_ * concatenated([&](const Attention& head) { return head(mu, z); });
  }

  template <Measure M>
  [[nodiscard]] Vector linear(const M& mu, const VectorView& z) const {
    return O_ * concatenated([&](const Attention& head) { return head.linear(mu, z); });
  }

  // Vector-Jacobian products for g [p].
  template <Measure M>
  [[nodiscard]] MultiHeadGradients vjp(const M& mu, const VectorView& z,
                                       const VectorView& g) const {
    return pull_back(
        g, concatenated([&](const Attention& head) { return head(mu, z); }),
        [&](const Attention& head, const VectorView& gh) { return head.vjp(mu, z, gh); });
  }

  template <Measure M>
  [[nodiscard]] MultiHeadGradients linear_vjp(const M& mu, const VectorView& z,
                                              const VectorView& g) const {
    return pull_back(
        g, concatenated([&](const Attention& head) { return head.linear(mu, z); }),
        [&](const Attention& head, const VectorView& gh) { return head.linear_vjp(mu, z, gh); });
  }

 private:
  template <class Evaluate>
  [[nodiscard]] Vector concatenated(const Evaluate& evaluate) const {
    Vector out(O_.cols());
    Index first = 0;
    for (const Attention& head : heads_) {
      out.segment(first, head.output_dim()) = evaluate(head);
      first += head.output_dim();
    }
    return out;
  }

  template <class HeadVjp>
  [[nodiscard]] MultiHeadGradients pull_back(const VectorView& g, const Vector& outputs,
                                             const HeadVjp& head_vjp) const {
    const Vector cotangents = head_cotangents(g);
    MultiHeadGradients out{Vector::Zero(dim()), {}, g * outputs.transpose()};
    Index first = 0;
    for (const Attention& head : heads_) {
      out.heads.push_back(head_vjp(head, cotangents.segment(first, head.output_dim())));
      out.z += out.heads.back().z;
      first += head.output_dim();
    }
    return out;
  }

  // O'g, after g was checked.
  [[nodiscard]] Vector head_cotangents(const VectorView& g) const;

  std::vector<Attention> heads_;
  Matrix O_;
};

}  // namespace esscher
