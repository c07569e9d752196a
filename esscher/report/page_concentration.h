// The page of a concentration study: curves, exponents, split, queries, with one sentence under each
// figure that a reader can act on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/concentration/bound.h"
#include "esscher/concentration/study.h"
#include "esscher/report/page.h"

namespace esscher {

// `exact`: the same study by the exact engine, drawn behind a sampled one. `fit`: the same study
// for the Gaussian fitted to the tokens.
Page concentration_page(const StudyResult& result, const std::vector<SigmaPoint>& sigmas,
                        const std::optional<BoundReport>& bound,
                        const std::optional<StudyResult>& exact = {},
                        const std::optional<StudyResult>& fit = {});

// The verdict on a bound as a page shows it: constants were fitted, so it holds only as fitted.
Verdict page_verdict(const BoundVerdict& verdict);

// How the average over queries is shared: positive finite errors, and the share of the worst 5 %.
struct QueryShare {
  std::vector<double> errors;  // largest first
  double worst = 0;            // of their sum, in 0..1
};
QueryShare query_share(const Vector& values);

// What a reader should do, in one sentence: about the curve, and about the queries.
std::string_view curve_advice(bool heavy);
std::string_view query_advice(double worst_share);

// Up to which sigma^2 of those that were tried errors are predicted to fall like 1/L.
std::string sigma_advice(const std::vector<SigmaPoint>& sigmas);

}  // namespace esscher
