// Error of the softmax covariance of mixture tokens. With zeta = z - m_a, the tilted covariance C,
// Xi = zeta zeta' - C, X = sum omega Xi and Y = sum omega zeta,
//
//   Chat - C = X - YY',   E|A(Chat - C)B'|^2 = E<X,X> - 2 E<X,YY'> + E|AY|^2|BY|^2,
//   <P,Q> = tr(A P B' B Q' A')
//
// Each expectation is a sum over set partitions of its 2, 3 or 4 factors (universal/universal.h).
// Given the component, a token is zeta = e + b x + xi, where x = g - tau is independent of xi ~
// N(0,R). A factor is therefore a polynomial in x of degree <= 4 whose coefficients are Gaussian
// moments of xi. With q = e + b x,
//
//   E|A zeta|^2|B zeta|^2 = (|Aq|^2 + tr ARA')(|Bq|^2 + tr BRB') + 4 Aq'ARB'Bq + 2 |ARB'|^2
//   E (A zeta)|B zeta|^2  = Aq (|Bq|^2 + tr BRB') + 2 ARB'Bq
//
// A prompt that is too short to reach the tilted mean has a large Y, whose fourth powers cancel. If
// Y is r standard deviations of a token, the relative error is r^4 1e-16, which is 3e-10 at tau =
// 40.
#pragma once

#include <vector>

#include "esscher/prompt/exact_gaussian.h"
#include "esscher/prompt/exact_mixture_nodes.h"

namespace esscher {

struct TokenPart {
  double weight, tau;
  Vector e, b;  // [d]
  Matrix R;     // [d,d]
};

ErrorParts covariance_error(MixtureNodes& nodes, const std::vector<TokenPart>& parts,
                            const Matrix& C, const Matrix& A, const Matrix& B, std::int64_t L);

}  // namespace esscher
