// The quantity of T[mu_hat_L](z) that is compared with its limit, in mean square (in the Frobenius
// norm for gradients).
#pragma once

#include "esscher/base/enum_names.h"

namespace esscher {

enum class Metric { output, grad_v, grad_u, grad_k, grad_q };

constexpr auto enum_names(Metric) {
  return EnumNames<Metric, 5>{"metric",
                              {{{Metric::output, "output"},
                                {Metric::grad_v, "grad_v"},
                                {Metric::grad_u, "grad_u"},
                                {Metric::grad_k, "grad_k"},
                                {Metric::grad_q, "grad_q"}}}};
}

}  // namespace esscher
