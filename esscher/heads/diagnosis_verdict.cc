#include <algorithm>
#include <cmath>

#include "esscher/estimate/quantile.h"
#include "esscher/heads/detail/diagnosis_parts.h"

namespace esscher {
namespace {

constexpr std::uint64_t kShapeStream = 0x5a9e;  // beside the fits, whose streams are their sizes
constexpr std::uint64_t kExcessStream = 0xe8ce;
constexpr std::uint64_t kCauseStream = 0xca05;
constexpr Index kShapeKeys = 2048;  // at most, so that the test costs little beside the fits

// The smallest mixture that is within a tenth of the best one on unseen keys; nullptr if none.
const MixtureRow* best_mixture(const std::vector<MixtureRow>& mixtures) {
  const MixtureRow* best = nullptr;
  for (const MixtureRow& row : mixtures) {
    if (row.split_lin_c && (best == nullptr || *row.split_lin_c < *best->split_lin_c)) best = &row;
  }
  for (const MixtureRow& row : mixtures) {
    if (row.split_lin_c && *row.split_lin_c <= 1.1 * *best->split_lin_c) return &row;
  }
  return best;
}

// Scores [keys,queries] of a few queries on the first keys of the longest prompt.
Matrix few_scores(const Head& head, const std::vector<PromptResult>& results) {
  const std::vector<PromptResult> few = few_of(results);
  Matrix a(static_cast<Index>(few.size()), head.dk);
  double longest = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    a.row(static_cast<Index>(i)) = few[i].a;
    longest = std::max(longest, few[i].n);
  }
  const Matrix keys = head.K(0, std::min(static_cast<Index>(longest), kShapeKeys));
  return keys * a.transpose();
}

// The test of the error on the first keys, with the values they have.
std::optional<ErrorExcess> test_error(const Head& head, const std::vector<PromptResult>& results,
                                      const HeadOptions& options) {
  const std::vector<PromptResult> few = few_of(results);
  Matrix a(static_cast<Index>(few.size()), head.dk);
  std::vector<Index> ends;
  for (std::size_t i = 0; i < few.size(); ++i) {
    a.row(static_cast<Index>(i)) = few[i].a;
    ends.push_back(std::min(static_cast<Index>(few[i].n), kExcessKeys));
  }
  const Index n = *std::max_element(ends.begin(), ends.end());
  return error_excess(head.K(0, n) * a.transpose(), head.V(0, n), ends,
                      Stream(options.seed).split(kExcessStream));
}

// Keys that a query sees where rules hide others.
Index seen_by_the_median(const std::vector<PromptResult>& results) {
  std::vector<double> seen;
  for (const PromptResult& result : results) seen.push_back(result.n);
  return static_cast<Index>(std::llround(median(seen)));
}

void fill_excess(const ErrorExcess& excess, HeadDiagnosis& out) {
  out.control_test_error = excess.error;
  out.control_test_typical = excess.typical;
  out.control_test_limit = excess.limit;
  out.control_test_p = excess.p;
}

void fill_shape(const KeyShape& shape, HeadDiagnosis& out) {
  out.shape_departure = shape.departure;
  out.shape_typical = shape.typical;
  out.shape_limit = shape.limit;
  out.shape_harm = shape.harm;
  out.shape_power = shape.power;
}

}  // namespace

void fill_verdict(const Head& head, const std::vector<PromptResult>& results,
                  const HeadOptions& options, HeadDiagnosis& out) {
  HeadEvidence evidence{.n = head.rules.none() ? out.n : seen_by_the_median(results),
                        .error = out.gaussian.lin_c,
                        .unseen = out.gaussian_split.lin_c,
                        .control = out.control_lin_c,
                        .linear_from = out.linear_from,
                        .dominant = out.dominant,
                        .kurtosis = out.kurtosis};
  if (const MixtureRow* best = best_mixture(out.mixtures); best != nullptr) {
    out.best_k = best->k;
    evidence.mixture = {.k = best->k, .unseen = *best->split_lin_c, .control = best->control_lin_c};
  }
  if (head.rules.none() && evidence.error > options.tolerance) {
    evidence.excess = test_error(head, results, options);
  }
  if (evidence.excess) fill_excess(*evidence.excess, out);
  if (length_in_question(evidence, options.tolerance)) {
    evidence.shape = key_shape(few_scores(head, results), harm_of(options.tolerance),
                               Stream(options.seed).split(kShapeStream));
    if (evidence.shape) fill_shape(*evidence.shape, out);
  }
  const HeadJudgement judgement = judge(evidence, options.tolerance);
  out.verdict_kind = judgement.verdict;
  out.verdict = judgement.words;
  out.reason = judgement.reason;
}

// Evenly spaced keys of the first chunk, in order, and a few queries.
void fill_causes(const Head& head, const std::vector<PromptResult>& results,
                 const std::optional<KeyDependence>& dependence, const HeadOptions& options,
                 HeadDiagnosis& out) {
  const std::vector<PromptResult> few = few_of(results);
  CauseInput input{.scores = {},
                   .dependence = dependence,
                   .dominant = out.dominant,
                   .queries = out.queries,
                   .rotary = head.rotary};
  input.a = Matrix(static_cast<Index>(few.size()), head.dk);
  double longest = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    input.a.row(static_cast<Index>(i)) = few[i].a;
    longest = std::max(longest, few[i].n);
  }
  const Index n = std::min(static_cast<Index>(longest), kHeadChunk);
  const Index count = std::min(n, kCauseKeys);
  const Matrix all = head.K(0, n);
  input.keys = Matrix(count, head.dk);
  for (Index i = 0; i < count; ++i) {
    input.places.push_back(i * n / count);
    input.keys.row(i) = all.row(input.places.back());
  }
  input.scores = input.keys * input.a.transpose();
  out.causes = cause_rows(input, Stream(options.seed).split(kCauseStream));
  out.why = causes_text(*out.causes);
}

}  // namespace esscher
