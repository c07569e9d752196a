#include "esscher/attention/multi_head.h"

#include <utility>

#include "esscher/base/error.h"

namespace esscher {

MultiHead::MultiHead(std::vector<Attention> heads, Matrix O)
    : heads_(std::move(heads)), O_(std::move(O)) {
  if (heads_.empty()) throw_argument("multi_head", "heads", "empty", "at least one head");
  Index outputs = 0;
  for (const Attention& head : heads_) {
    check_dimension("multi_head", "head", head.dim(), dim());
    outputs += head.output_dim();
  }
  check_dimension("multi_head", "O (columns)", O_.cols(), outputs);
  check_finite("multi_head", "O", O_);
}

Vector MultiHead::head_cotangents(const VectorView& g) const {
  check_dimension("multi_head", "g", g.size(), output_dim());
  return O_.transpose() * g;
}

}  // namespace esscher
