// The page of `icl optimum`: risks of the best layers against the length, and the layers themselves.
#pragma once

#include <vector>

#include "esscher/report/page.h"
#include "esscher/training/layer_optimum.h"

namespace esscher {

Page optimum_page(const std::vector<OptimumRow>& rows);

}  // namespace esscher
