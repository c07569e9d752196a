// The report of `icl risk --temperature`: risks over lengths and temperatures, the best temperature.
#pragma once

#include <vector>

#include "esscher/report/page.h"
#include "esscher/risk/temperature.h"

namespace esscher {

// `rows` are those of all cells of temperature_cells, in order.
Page temperature_page(const std::vector<TemperatureRow>& rows);

}  // namespace esscher
