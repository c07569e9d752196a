// Documents of `esscher scaling --json`; docs/reference/json.md lists their keys.
#pragma once

#include <vector>

#include "esscher/json/json.h"
#include "esscher/scaling/keep.h"
#include "esscher/scaling/scaling.h"

namespace esscher {

// {"rows":[..],"events":[..],"retrieval":[..]}
Json to_json(const std::vector<ScalingRow>& rows, const std::vector<ScalingEvent>& events,
             const std::vector<RetrievalLength>& retrieval);

// {"keep","train","rows":[..],"families":[..]}
Json to_json(Kept kept, double train, const std::vector<KeptFactor>& factors,
             const std::vector<FamilyFit>& families);

}  // namespace esscher
