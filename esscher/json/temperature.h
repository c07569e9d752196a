// The document of `icl risk --temperature --json`.
#pragma once

#include <vector>

#include "esscher/json/json.h"
#include "esscher/risk/temperature.h"

namespace esscher {

// {"rows": risks over (shift, L, temperature), "best": one row per shift and L, "risk_is"}
Json temperature_document(const std::vector<TemperatureRow>& rows);

}  // namespace esscher
