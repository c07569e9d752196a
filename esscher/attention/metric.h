// The quantity of T[mu_hat_L](z) that is compared with its limit, in mean square (in the Frobenius
// norm for gradients).
#pragma once

#include <string>
#include <string_view>

#include "esscher/base/error.h"

namespace esscher {

enum class Metric { output, grad_v, grad_u, grad_k, grad_q };

constexpr std::string_view name(Metric metric) {
  switch (metric) {
    case Metric::output: return "output";
    case Metric::grad_v: return "grad_v";
    case Metric::grad_u: return "grad_u";
    case Metric::grad_k: return "grad_k";
    case Metric::grad_q: return "grad_q";
  }
  return "?";
}

// Inverse of name(); throws ArgumentError on another word.
inline Metric parse_metric(const std::string& text) {
  for (const Metric m :
       {Metric::output, Metric::grad_v, Metric::grad_u, Metric::grad_k, Metric::grad_q}) {
    if (text == name(m)) return m;
  }
  throw_argument("metric", "name", text, "output, grad_v, grad_u, grad_k or grad_q");
}

}  // namespace esscher
