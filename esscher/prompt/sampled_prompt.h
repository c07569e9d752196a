// Finite Gaussian prompts without their tokens, exact in law
// (docs/maths/prompts.md#sampled-scores-instead-of-tokens).
//
// Tokens z_l iid N(m, F F') are z = m + F xi with xi white. One query (tilt a) and the functionals
// R [d,n] read xi only in the span of F'a and F'R. Let E [k,p] be an orthonormal basis of that span
// whose first column points along F'a. Of each token the p coordinates g = E'xi are drawn. Given
// them,
//
//   zbar   = sum omega z                       has the law of  m + F (E sum omega g + xi_0)
//   Chat R = sum omega (z - zbar)(z - zbar)'R  likewise, with weights omega (<r,z> - <r,zbar>)
//
// where xi_0 is Gaussian off the span with covariance sum omega^2 (I - EE'), jointly with the noise
// of Chat R. Outputs need p = 1, an output and one gradient p = 2, in general at most
// min(1 + n, rank). E comes from a pivoted factorisation, so singular covariances, parallel
// directions and a = 0 are no special cases.
//
// For a mixture the component of each token is drawn, and sums are kept per component. All lengths
// asked for are prefixes of one prompt, jointly exact in law. Memory does not depend on the length.
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
  Vector zbar;         // [d]
  Matrix CR;           // Chat R [d,n]
  double weights2{};   // sum omega^2: one over the effective sample size
  double log_total{};  // log sum e^s over the tokens drawn; 0 for the limit
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
