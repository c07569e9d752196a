// Documents of concentration studies, as `esscher concentration --json` and `esscher length --json`
// print them; docs/reference/json.md lists their keys.
#pragma once

#include <vector>

#include "esscher/concentration/bound.h"
#include "esscher/concentration/length.h"
#include "esscher/concentration/study.h"
#include "esscher/json/json.h"

namespace esscher {

// {"how","rows":[..],"fits":[..],"regime":{..},"limits":{METRIC:{..}},"queries":{"L","values":[..]}}
Json to_json(const StudyResult& result);
Json to_json(const Reach& reach);
Json to_json(const std::vector<SigmaPoint>& points);
// {"proposition","sigma","hypotheses":[..],"fits":[..],"status","verdict"}
Json to_json(const BoundReport& report);
Json to_json(const LengthAnswer& answer);

}  // namespace esscher
