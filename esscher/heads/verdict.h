// The verdict of a head, in words, from its numbers.
#pragma once

#include "esscher/heads/diagnose.h"

namespace esscher {

// Fills diagnosis.verdict, one of
//   "linear here", "linear from L = ...", "linear within p %", "too short to say",
//   "needs k components", "not linearisable"
// and diagnosis.reason, the numbers that led to it.
void judge(HeadDiagnosis& diagnosis, double tolerance);

// The smallest mixture that is within a tenth of the best one out of sample; nullptr if none.
const MixtureRow* best_mixture(const HeadDiagnosis& diagnosis);

}  // namespace esscher
