// The document of `icl optimum --json`.
#pragma once

#include <vector>

#include "esscher/json/json.h"
#include "esscher/training/layer_optimum.h"

namespace esscher {

// {"rows": [{"L","risk","u","v","w","bayes","affine","linear","limit_risk",..,"U","V","W"}], "risk_is"}
Json optimum_document(const std::vector<OptimumRow>& rows);

}  // namespace esscher
