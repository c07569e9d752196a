#include "esscher/measure/check.h"

#include <cmath>
#include <string>

#include "esscher/base/error.h"

namespace esscher {

void check_tilt(std::string_view where, const VectorView& a, Index dim) {
  check_dimension(where, "a", a.size(), dim);
  for (Index i = 0; i < dim; ++i) {
    if (std::isfinite(a(i))) continue;
    throw_argument(where, "a[" + std::to_string(i) + "]", to_text(a(i)), "a finite number");
  }
}

Index checked_dim(std::string_view where, Index dim) {
  if (dim < 1) throw_argument(where, "dim", std::to_string(dim), "an integer >= 1");
  return dim;
}

double checked_positive(std::string_view where, std::string_view argument, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw_argument(where, argument, to_text(value), "a finite number > 0");
  }
  return value;
}

Vector normalised_weights(std::string_view where, std::string_view argument,
                          const VectorView& weights) {
  if (weights.size() == 0) throw_argument(where, argument, "empty", "at least one weight");
  for (Index i = 0; i < weights.size(); ++i) {
    if (weights(i) >= 0 && std::isfinite(weights(i))) continue;
    throw_argument(where, std::string(argument) + "[" + std::to_string(i) + "]",
                   to_text(weights(i)), "a finite number >= 0");
  }
  const double largest = weights.maxCoeff();
  if (largest == 0) throw_argument(where, argument, "all zero", "a positive sum");
  const Vector scaled = weights / largest;
  return scaled / scaled.sum();
}

void check_sample_size(std::string_view where, Index n) {
  if (n < 1) throw_argument(where, "n", std::to_string(n), "an integer >= 1");
}

}  // namespace esscher
