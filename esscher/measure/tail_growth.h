// How fast Lambda grows far out, read from the structure of a law:
//
//   Lambda(a) = max_k a'G_k a / 2 + O(|a|)          forms G_k [d,d]
//
// and Lambda is infinite far out along a wherever a'E a > 0 (wild E [d,d]). Seen as a law of
// queries, the same G_k are the covariances of its Gaussian tails, and E spans the directions whose
// tails are heavier than any Gaussian.
//
//   Gaussian {G}, 0    bounded laws {0}, 0    Laplace {0}, I    affine images B G B', B E B'
//   products blocks    sums: sums of forms    mixtures: the forms of all components
//   elliptical {largest factor times G}, 0    Student {0}, G
//   single-index laws of a bounded link: that of x and of the noise
#pragma once

#include <optional>
#include <vector>

#include "esscher/measure/any_measure.h"

namespace esscher {

struct TailGrowth {
  std::vector<Matrix> forms;  // [d,d] PSD, at least one
  Matrix wild;                // [d,d] PSD; 0 if Lambda is finite everywhere

  // All forms are zero and Lambda is finite: tails like those of a bounded law.
  [[nodiscard]] bool bounded() const;
};

// Empty for a measure of a user, for single-index laws of other links, and beyond
// kMaxMixtureComponents forms.
std::optional<TailGrowth> tail_growth(const AnyMeasure& measure);

}  // namespace esscher
