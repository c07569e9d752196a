// Finite Gaussian prompts without their tokens, exact in law
// (docs/maths/prompts.md#sampled-scores-instead-of-tokens).
//
// z_l iid N(m, F F') are z = m + F xi with xi white. One query (tilt a) and the functionals R [d,n]
// read xi only in the span of F'a and F'R: with E [k,p] an orthonormal basis of it, its first
// column along F'a, the tokens are drawn as their coordinates g = E'xi, p normals each. Given
// those,
//
//   zbar   = sum omega z       is  m + F (E sum omega g + xi_0)
//   Chat R = sum omega (z - zbar)(z - zbar)'R   likewise with the weights omega (<r,z> - <r,zbar>),
//
// where xi_0 and its companions are Gaussian off the span with covariances sum omega^2, .. . So
// p = 1 for outputs, 2 for output and one gradient, at most min(1 + n, rank) in general. E comes
// from a pivoted factorisation: singular covariances, parallel directions and a = 0 need no care.
//
// A mixture draws the component of each token; sums are kept per component. All lengths asked for
// are prefixes of one prompt, jointly exact in law. Memory does not depend on the length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "esscher/base/estimate.h"
#include "esscher/base/linalg.h"
#include "esscher/measure/gaussian_view.h"
#include "esscher/random/stream.h"

namespace esscher {

struct SampledDraw {
  Vector zbar;        // [d]
  Matrix CR;          // Chat R [d,n]
  double weights2{};  // sum omega^2: one over the effective sample size
};

class SampledPrompt {
 public:
  // a [d], R [d,n]; n = 0 for outputs alone.
  SampledPrompt(const GaussianMixtureLaw& law, const VectorView& a, const MatrixView& R);
  SampledPrompt(const GaussianLaw& law, const VectorView& a, const MatrixView& R);

  // Normals drawn per token: the largest p of the components.
  [[nodiscard]] Index normals_per_token() const;

  // One prompt of length lengths.back(), seen at every length (increasing, >= 1).
  [[nodiscard]] std::vector<SampledDraw> draw(std::span<const std::int64_t> lengths,
                                              const Stream& stream) const;

  // The limit L -> infinity: m_a and C_a R of the law itself.
  [[nodiscard]] SampledDraw limit() const;

 private:
  struct Component {
    Vector mean;       // m [d]
    Matrix F;          // [d,k]
    Matrix E;          // [k,p]
    Matrix rho;        // E'F'R [p,n]
    double tau;        // |F'a|
    double log_score;  // <a, m>
  };
  struct State;

  void add_tokens(const Component& c, std::int64_t count, double centre, const Stream& stream,
                  State& state) const;
  [[nodiscard]] SampledDraw read(std::span<const State> states) const;

  Vector a_;
  Matrix R_;
  Vector weights_;
  std::vector<Component> components_;
};

}  // namespace esscher
