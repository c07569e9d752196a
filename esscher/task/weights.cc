#include "esscher/task/weights.h"

#include "esscher/base/error.h"

namespace esscher {

Vector equal_unless_given(const Vector& weights, Index n) {
  if (weights.size() == 0) return Vector::Constant(n, 1 / static_cast<double>(n));
  return weights / weights.sum();
}

void check_weights(std::string_view where, const Vector& weights, Index n) {
  check_dimension(where, "weights", weights.size(), n);
  for (const double weight : weights) {
    if (!(weight > 0 && weight < 1e300)) {
      throw_argument(where, "weights", to_text(weight), "numbers > 0");
    }
  }
}

}  // namespace esscher
