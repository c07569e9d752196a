// Draws that are made of uniforms and normals. Each is a pure function of its stream (and index).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "esscher/base/linalg.h"
#include "esscher/random/stream.h"

namespace esscher {

// Point i of the uniform law on the sphere of radius `radius` in R^d, d = out.size() >= 1, from the
// normals [i d, (i+1) d) of the stream.
void sphere_point(const Stream& stream, std::uint64_t i, double radius, std::span<double> out);

// Draws the index k with probability proportional to weights[k] >= 0, by inversion of one uniform.
class CategoricalDraw {
 public:
  // Throws ArgumentError for a negative or non-finite weight or a zero sum.
  explicit CategoricalDraw(const VectorView& weights);
  [[nodiscard]] Index operator()(double uniform) const;
  [[nodiscard]] Index size() const { return static_cast<Index>(cumulative_.size()); }

 private:
  std::vector<double> cumulative_;
};

// Gamma(shape, scale 1), shape > 0, by the method of Marsaglia and Tsang (2000). It rejects, so it
// takes a stream of its own and may read any number of its values; it needs about 1.05 tries for
// shape >= 1.
double gamma_draw(const Stream& stream, double shape);

// Chi-square with `dof` > 0 degrees of freedom; dof may be 1e15 and more.
double chi_square_draw(const Stream& stream, double dof);

}  // namespace esscher
