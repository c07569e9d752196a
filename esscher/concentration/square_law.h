// What is known beforehand about squared errors |e|^2 of prompts at given queries: how skewed they
// are, and whether few prompts can show their mean at all. Study and length make intervals of it.
//
// By the central limit theorem e ~ N(0, S/L). With y = x - m_a, x drawn from the measure tilted by
// 2a, and e = e^{Lambda(2a) - 2 Lambda(a)},
//
//   S = e E_2a[g g'],  g = left y (metrics of the mean),  g = V (y y' - C_a) right' (of the covariance)
//
//   relative variance of |e|^2:  2 tr S^2 / (tr S)^2
//
// which is closed for metrics of the mean and an average over pairs of drawn tokens for the others.
//
// The theorem says nothing about a prompt of L tokens where
//   - Lambda(2a) or Lambda(4a) is infinite: weights have no second or fourth moment;
//   - scores are sharp, Lambda(2a) - 2 Lambda(a) > 0.8, and L is not long compared with the kurtosis of
//     the weights, e^{Lambda(4a) - 4 Lambda(a) - 2 (Lambda(2a) - 2 Lambda(a))}, which is e^{4 tau^2}
//     for Gaussian tokens;
//   - the contributions w g of single tokens to an error of a covariance have a kurtosis
//     E w^4 |g|^4 / (E w^2 |g|^2)^2 above L/2: the law of e is not yet normal;
//   - prompts of light tokens only (weight below 1/4 of the average) are rare but carry the error.
// There the interval is flagged. Tokens that depend on each other count as L/kappa (constant.h), and
// the relative variance is that of independent ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "esscher/attention/metric.h"
#include "esscher/concentration/problem.h"
#include "esscher/estimate/two_level.h"

namespace esscher {

// At one query.
struct ErrorLaw {
  double constant = 0;           // lim L D(L); infinite where there is none
  double relative_variance = 2;  // of |e|^2
  double first = 0;              // D(1)
  double sharpness = 0;          // Lambda(2a) - 2 Lambda(a)
  double kurtosis = 0;           // log kurtosis of the weights; infinite where it does not exist
  double heaviness = 0;          // kurtosis of w g; 0 for metrics of the mean, where weights tell
  double kappa = 1;              // so many dependent tokens are worth one
  double light = 0;              // chance that a token weighs less than 1/4 of the average

  // Why prompts of L tokens cannot be trusted to show their mean; empty if they can.
  [[nodiscard]] std::string flag(std::int64_t L) const;
};

// One law for each query [n,d] of a problem.
std::vector<ErrorLaw> error_laws(Metric metric, const Problem& problem, const Matrix& queries);

// The laws together, as mean_of_squares takes them.
SquareLaw square_law(const std::vector<ErrorLaw>& laws);

// The flag of an average over queries: that of the first query that has one, if such queries carry
// more than a twentieth of the average.
std::string average_flag(const std::vector<ErrorLaw>& laws, std::int64_t L);

}  // namespace esscher
