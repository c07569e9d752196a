// D(L) = E_z E_prompt |X_hat_L - X|^2 for Gaussian tokens N(m,G) and Gaussian queries N(mz,Sz),
// without sampling either. With c = GUz, t = tau^2, W = V'V and the quadratic forms of z
//
//   w = c'Wc,  n = c'Yc,  k = c'YGWc,  N = |z|^2 (grad_u, grad_q) or scale^2 |Qz|^2 (grad_k),
//   Y = I (grad_u, grad_k) or scale^2 K'K (grad_q)
//
// the errors per query (prompt/exact_gaussian.h) are these times functions of (L, tau) only:
//
//   output  tr(WG) H + (w/t)(M2c/t - H)                       grad_v: d_v times this with W = I
//   grad_u  N { [tr(WG) tr(YG) + tr(WGYG)] n2 + tr(WGYG) h2 + (tr(YG) w + tr(WG) n)/t (q - n2)
//               + 2 (k/t)(q - vh - h2 - n2) + (wn/t^2)(v2 - 4q + 2vh + h2 + 2 n2) }
//
// with the ratios of Universal4. TauLaw integrates them over z. As L -> infinity, L times these
// tends to
//
//   output  E e^{t} [tr(WG) + w]       grad_u  E e^{t} N [(tr YG + n)(tr WG + w) + tr WGYG + 2k]
//
// which is finite if and only if lambda < 1/2, and then has a closed form.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "esscher/attention/attention.h"
#include "esscher/attention/metric.h"
#include "esscher/concentration/tau_law.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/universal/universal.h"

namespace esscher {

struct AverageError {
  double value = 0;  // D(L) = bias2 + variance
  double bias2 = 0;  // E_z |E_prompt X_hat - X|^2
  double variance = 0;
};

class GaussianAverage {
 public:
  // grad_k, grad_q need an Attention made from K and Q (CapabilityError).
  GaussianAverage(std::vector<Metric> metrics, const GaussianLaw& mu, const Attention& attention,
                  const GaussianLaw& nu);

  [[nodiscard]] const std::vector<Metric>& metrics() const { return metrics_; }

  // One error per metric. Throws CapabilityError if queries with tau > kMaxTau carry more than 1e-9
  // of an error.
  [[nodiscard]] std::vector<AverageError> at(std::int64_t L) const;
  // The same from universal functions of this length that the caller has, for example from a table
  // that serves many laws: the function takes tau in [0, tau_max]; larger ones are cut to it.
  struct Functions {
    std::int64_t L = 1;
    double tau_max = kMaxTau;
    std::function<Universal4(double tau)> at;
  };
  [[nodiscard]] std::vector<AverageError> at(const Functions& functions) const;
  [[nodiscard]] double effective_sample_size(const Functions& functions) const;
  // 1 / E_z H, the harmonic mean over queries of the effective sample size.
  [[nodiscard]] double effective_sample_size(std::int64_t L) const;

  // The largest tau that can matter to D(L), read from the weights of the queries alone: beyond it
  // they carry less than the 1e-9 of D(L) that at() allows, with a margin of a thousand.
  [[nodiscard]] double largest_tau(std::int64_t L) const;

  // lim L D(L) of metric i; infinity in the slow regime.
  [[nodiscard]] double constant(std::size_t i) const;
  // E_z |X|^2 of metric i, by which relative errors are divided.
  [[nodiscard]] double limit_norm2(std::size_t i) const;
  // P(L < e^{tau^2}), the fraction of queries that see a frozen softmax.
  [[nodiscard]] double frozen_fraction(std::int64_t L) const;
  [[nodiscard]] const TauLaw& tau_law() const { return law_; }

 private:
  struct Terms {
    bool quadratic = false;  // grad_u, grad_k, grad_q
    double factor = 1;       // d_v for grad_v
    double trWG = 0, trYG = 0, trWGYG = 0;
    int first = 0;              // column of the rule: linear 1, w; quadratic N, Nw, Nn, Nk, Nwn
    double limit_constant = 0;  // part of |X|^2 that no form of z carries
    Vector limit_linear;        // [d]: part of |X|^2 linear in z
  };
  // Nodes up to the last whose weight is at least share / L of the largest.
  [[nodiscard]] Index nodes_above(double share, std::int64_t L) const;
  [[nodiscard]] Index used_nodes(std::int64_t L) const;
  void add_linear(const Matrix& W, const Attention& attention, double factor);
  void add_quadratic(const Matrix& W, const Matrix& Y, const Matrix& N, const Attention& attention);

  GaussianLaw mu_;
  Vector query_mean_;
  std::vector<Metric> metrics_;
  TauLaw law_;
  std::vector<Matrix> forms_;
  std::vector<FormProduct> products_;
  std::vector<Terms> terms_;
  bool needs4_ = false;
  TauLaw::Rule rule_;
};

}  // namespace esscher
