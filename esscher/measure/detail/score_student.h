// The score law of Student tokens (measure/student.h). Internal to score_law.cc.
//
// (s - <a,m>)/tau has Student's law t_nu with density f. Nodes cover |s - <a,m>| <= R by panels that
// are at most kScorePanel wide. Beyond +R scores are far (FarScores), by panels of log(s - <a,m>).
// Below -R they are one node at -R with their own moments: such a token has weight only if the whole
// prompt lies there.
#pragma once

#include "esscher/measure/score_law.h"
#include "esscher/measure/student.h"

namespace esscher::detail {

// Averages of what is read need second moments. Close to nu = 2 these come from scores beyond doubles.
inline constexpr double kLeastNu = 2.2;

// The tilt is not 0. CapabilityError where scores reach too far, and for nu < kLeastNu.
ScoreLaw student_nodes(const Student& mu, const ScoreReading& reading);

}  // namespace esscher::detail
