// Document "report" of a concentration study (report.h): curves, exponents, split, queries, with
// one sentence under each figure that a reader can act on.
#pragma once

#include <optional>
#include <vector>

#include "esscher/concentration/bound.h"
#include "esscher/concentration/study.h"
#include "esscher/json/json.h"

namespace esscher {

// `exact`: the same study by the exact engine, drawn behind a sampled one. `fit`: the same study
// for the Gaussian fitted to the tokens.
Json concentration_page(const StudyResult& result, const std::vector<SigmaPoint>& sigmas,
                        const std::optional<BoundReport>& bound,
                        const std::optional<StudyResult>& exact = {},
                        const std::optional<StudyResult>& fit = {});

}  // namespace esscher
