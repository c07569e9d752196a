// The report of `esscher model`: what the model notices when heads are replaced.
#pragma once

#include <vector>

#include "esscher/model/effect.h"
#include "esscher/report/page.h"

namespace esscher {

// rows: the plan first, then heads alone, if they were measured.
Page model_page(const std::vector<EffectRow>& rows);

}  // namespace esscher
