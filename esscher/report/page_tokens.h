// The pages of `esscher scaling` with [tokens]: token laws of the literature at each length, beside
// their limit formulas.
#pragma once

#include <vector>

#include "esscher/report/page.h"
#include "esscher/scaling/published_tokens.h"

namespace esscher {

Page equiangular_page(const std::vector<EquiangularRow>& rows);
Page sphere_page(const std::vector<SphereRow>& rows);

}  // namespace esscher
