// The score law of Student tokens (measure/student.h). Internal to score_law.cc.
//
// (s - <a,m>)/tau has Student's law t_nu with density f. Nodes cover the middle by panels that are at
// most kScorePanel wide, and as far beyond as they are read from there; the rest is two nodes with
// their mass. Tails (long_tail.h) begin where f changes little over a score of 1.
#pragma once

#include "esscher/measure/score_law.h"
#include "esscher/measure/student.h"

namespace esscher::detail {

// Averages of what is read need second moments. Close to nu = 2 these come from scores beyond doubles.
inline constexpr double kLeastNu = 2.2;

// The tilt is not 0. CapabilityError where other parts of a mixture reach too far, and for nu < kLeastNu.
ScoreLaw student_nodes(const Student& mu, const ScoreReading& reading);

}  // namespace esscher::detail
