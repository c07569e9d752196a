// Two clusters of one covariance against one Gaussian.
//
//   p(x) = w N(x; m_1, C) + (1 - w) N(x; m_2, C)     by expectation-maximisation, from a cut through
//                                                    the mean along each coordinate; the most likely
#pragma once

#include "esscher/base/linalg.h"

namespace esscher {

// Log-densities of the rows of `unseen` [m,d] under two clusters that were fitted to `fitted` [n,d],
// minus those under one Gaussian fitted to the same; [m].
Vector held_out_gains(const MatrixView& fitted, const MatrixView& unseen);

}  // namespace esscher
