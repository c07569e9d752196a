// What of T[mu_hat_L](z) is compared with its limit, in mean square (Frobenius norm for gradients),
// and the form of it. Every metric X is built from one statistic S of the tilted tokens, the mean
// m_a [d] or the covariance C_a [d,d], by factors on its sides and a factor of the query:
//
//   |X|^2 = left.scale2 right.scale2 |query z|^2 |left S right'|^2
//
//            S     left         right        query
//   output   m_a   V            -            -
//   grad_v   m_a   I, d_v       -            -             d_v copies of m_a
//   grad_u   C_a   V            I            I             V C_a (x) z
//   grad_k   C_a   V            I            Q, scale^2
//   grad_q   C_a   V            K, scale^2   I
//
// The same form gives errors, with S the error of the statistic. The left factor of every metric of
// the covariance is V, so one V (Chat - C_a) serves them all.
#pragma once

#include <optional>

#include "esscher/base/enum_names.h"
#include "esscher/base/linalg.h"

namespace esscher {

class Attention;

enum class Metric { output, grad_v, grad_u, grad_k, grad_q };

constexpr auto enum_names(Metric) {
  return EnumNames<Metric, 5>{"metric",
                              {{{Metric::output, "output"},
                                {Metric::grad_v, "grad_v"},
                                {Metric::grad_u, "grad_u"},
                                {Metric::grad_k, "grad_k"},
                                {Metric::grad_q, "grad_q"}}}};
}

// Whether the metric reads C_a; the others read m_a.
constexpr bool reads_covariance(Metric metric) {
  return metric != Metric::output && metric != Metric::grad_v;
}

// A matrix and a number: |factor x|^2 = scale2 |matrix x|^2.
struct MetricFactor {
  const Matrix* matrix = nullptr;  // of the Attention; null stands for the identity
  double scale2 = 1;

  [[nodiscard]] Matrix matrix_or_identity(Index d) const;
  [[nodiscard]] Matrix gram(Index d) const;  // matrix' matrix [d,d], without scale2
  [[nodiscard]] double norm2(const VectorView& x) const;
};

struct MetricForm {
  bool of_covariance = false;
  MetricFactor left, right;
  std::optional<MetricFactor> query;

  // Everything that multiplies |left S right'|^2 at query z [d].
  [[nodiscard]] double factor(const VectorView& z) const;
  // |left m|^2 of the statistic m [d], for metrics of the mean.
  [[nodiscard]] double mean_norm2(const VectorView& m) const;
  // |VC right'|^2 of VC = V C [dv,d], for metrics of the covariance.
  [[nodiscard]] double covariance_norm2(const Matrix& VC) const;
};

// The form reads matrices of `attention`, which must outlive it. grad_k and grad_q need an Attention
// made from K and Q (CapabilityError).
MetricForm metric_form(Metric metric, const Attention& attention);

}  // namespace esscher
