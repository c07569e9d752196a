// The parts of diagnose(): each fills some fields of a HeadDiagnosis from what a walk over the prompt
// found. A part reads fields that an earlier one filled, in the order of this file.
#pragma once

#include <optional>
#include <vector>

#include "esscher/heads/dependence.h"
#include "esscher/heads/detail/walk.h"
#include "esscher/heads/diagnosis.h"
#include "esscher/heads/head.h"
#include "esscher/heads/kept_keys.h"
#include "esscher/heads/options.h"

namespace esscher {

// Medians over queries, controls and the length that Gaussian keys need (diagnosis_numbers.cc).
void fill_scores(const std::vector<PromptResult>& results, HeadDiagnosis& out);
void fill_dependence(const std::optional<KeyDependence>& found, HeadDiagnosis& out);
void fill_errors(const std::vector<PromptResult>& results,
                 const std::vector<SurrogateModel>& models, HeadDiagnosis& out);
void fill_control(const std::vector<PromptResult>& results, double tolerance, HeadDiagnosis& out);
// After the mixtures are known.
std::vector<CostRow> cost_rows(const HeadDiagnosis& head, const KeptKeys& kept);

// Tests of the keys and what is said of them (diagnosis_verdict.cc).
void fill_verdict(const Head& head, const std::vector<PromptResult>& results,
                  const HeadOptions& options, HeadDiagnosis& out);
void fill_causes(const Head& head, const std::vector<PromptResult>& results,
                 const std::optional<KeyDependence>& dependence, const HeadOptions& options,
                 HeadDiagnosis& out);

// Throw ArgumentError that names the head (diagnosis_checks.cc).
void check_options(const Head& head, const HeadOptions& options);
std::vector<Index> checked_queries(const Head& head, const HeadOptions& options);
void check_results(const Head& head, const std::vector<PromptResult>& results,
                   const std::vector<Index>& queries);

}  // namespace esscher
