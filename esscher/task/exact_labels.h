// The best prediction of a single-index label from labels without noise. A label y = g(w'x) leaves few
// values of w'x:
//
//   tanh, erf, probit    one
//   degree two           two
//   sin                  arcsin y and pi - arcsin y, up to full turns
//   relu                 y if y > 0, else what is not positive
//
// In orthonormal coordinates of the span of the tokens, w = sum_j c_j q_j + v with v orthogonal to all
// tokens. One choice of values gives one c. All choices have the same |g'|, so that they weigh as the
// prior of c does; given c, v is Gaussian or uniform on a sphere, and E g(w'x) is a smoothed link. The
// labels 0 of relu are inequalities, for which chains are left (posterior.h).
#pragma once

#include <optional>

#include "esscher/task/posterior.h"
#include "esscher/task/single_index_task.h"

namespace esscher {

// What a label without noise costs in the log density if w cannot have given it.
inline constexpr double kMismatch = 30;

// How E[g(w'x) | prompt] is found from labels without noise. Nothing is returned for functions of a
// user, for the sign, which leaves arcs and cones, and where more than 2^15 choices are expected.
std::optional<PosteriorBy> exact_labels_by(const SingleIndexTask& task);

// E[g(w'x) | X, y] at the query x [d], for tokens X [L,d] with labels y [L]; not for relu. A label that
// rounds to the end of the range of g is read as the last number before it.
double exact_label_mean(const SingleIndexTask& task, const Matrix& X, const Vector& y,
                        const Vector& x);

// What chains read for relu.
LawEvidence exact_relu_evidence(const SingleIndexTask& task, const Matrix& X, const Vector& y,
                                const Vector& x);

// From how many labels w is known, up to a change that changes no label; 0: from none. Labels of relu
// may leave it open with a chance below 1e-16.
Index labels_that_tell(const SingleIndexTask& task);

}  // namespace esscher
