// Error of the softmax covariance of mixture tokens: with zeta = z - m_a, C the tilted covariance,
// Xi = zeta zeta' - C, X = sum omega Xi, Y = sum omega zeta,
//
//   Chat - C = X - YY',   E|A(Chat - C)B'|^2 = E<X,X> - 2 E<X,YY'> + E|AY|^2|BY|^2,
//   <P,Q> = tr(A P B' B Q' A')
//
// and each expectation is the sum over set partitions of its 2, 3 or 4 factors
// (universal/universal.h). Given the component a token is zeta = e + b x + xi with x = g - tau
// independent of xi ~ N(0,R), so a factor is a polynomial in x of degree <= 4 with coefficients in
// Gaussian moments of xi: with q = e + b x
//
//   E|A zeta|^2|B zeta|^2 = (|Aq|^2 + tr ARA')(|Bq|^2 + tr BRB') + 4 Aq'ARB'Bq + 2 |ARB'|^2
//   E (A zeta)|B zeta|^2  = Aq (|Bq|^2 + tr BRB') + 2 ARB'Bq
//
// A prompt too short to reach the tilted mean has a large Y, whose fourth powers cancel: at r
// deviations of a token r^4 1e-16 of the value is lost, 3e-10 at tau = 40.
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
