// The page of `esscher scaling`: the weights along each schedule beside asymptotics, where they
// change, and the boundaries of the phases at finite length.
#pragma once

#include <vector>

#include "esscher/report/page.h"
#include "esscher/scaling/scaling.h"

namespace esscher {

Page scaling_page(const ScoreModel& scores, const std::vector<ScalingRow>& rows,
                  const std::vector<ScalingEvent>& events, double gap);

}  // namespace esscher
