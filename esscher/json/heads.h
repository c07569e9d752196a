// The document of `esscher heads --json`: one object per head, from its typed diagnosis.
#pragma once

#include "esscher/heads/diagnosis.h"
#include "esscher/json/json.h"

namespace esscher {

// The columns of heads/diagnosis.h with pairs of errors as objects {"lin","lin_c"}, "tau2_range"
// [5 %, 95 %], "shape" {"departure","typical","limit","harm","power"}, "longer_prompts"
// {"c","gap_scale","phase","prefixes","forecast","test"} and "score_mixture" {"k","density"}. What a head does not have is null; linear_from is null beyond 10^15 and
// linear_from_text says so.
Json diagnosis_json(const HeadDiagnosis& head);

}  // namespace esscher
