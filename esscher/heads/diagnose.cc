#include "esscher/heads/diagnose.h"

#include <utility>

#include "esscher/heads/detail/diagnosis_parts.h"
#include "esscher/heads/detail/prefixes.h"
#include "esscher/heads/detail/score_law.h"
#include "esscher/heads/detail/window_study.h"
#include "esscher/heads/kept_keys.h"
#include "esscher/heads/score_scale.h"

namespace esscher {
namespace {

constexpr std::uint64_t kBudgetStream = 0xb0d6;  // beside those of diagnosis_verdict.cc

// The mixture whose components make a tail, in absolute coordinates; none if no mixture was best.
std::optional<MixtureFit> best_fit(const std::vector<SurrogateModel>& models,
                                   std::optional<Index> best_k) {
  std::optional<MixtureFit> best;
  for (const SurrogateModel& model : models) {
    if (model.fit && model.k == best_k && !model.split) {
      best = model.fit;
      for (Vector& mean : best->means) mean += model.moments.origin_k();
    }
  }
  return best;
}

void fill_windows(const Head& head, const HeadOptions& options, const std::vector<Index>& queries,
                  const std::vector<PromptResult>& results,
                  const std::vector<SurrogateModel>& models, const KeptKeys& kept,
                  HeadDiagnosis& out) {
  if (head.rules.none()) {
    out.window = window_rows(head, options, results, best_fit(models, out.best_k));
    out.window_lengths = window_length_rows(head, options, results);
  } else {
    out.window = ruled_window_rows(head, options, kept, queries, results);
  }
  out.window_verdict =
      judge_windows(*out.window, options.tolerance, kept.count * (head.dk + head.dv),
                    kept.count < head.n ? std::to_string(kept.count) : "n");
}

// A few queries on the first chunk of keys.
void fill_score_scale(const Head& head, const std::vector<PromptResult>& results,
                      HeadDiagnosis& out) {
  const Matrix keys = head.K(0, std::min(head.n, kHeadChunk));
  std::vector<Vector> scores;
  for (const PromptResult& query : few_of(results)) {
    scores.emplace_back(keys.topRows(std::min(static_cast<Index>(query.n), keys.rows())) * query.a);
  }
  std::optional<ScoreScale> found = score_scale(scores);
  if (!found) return;
  out.score_c = found->c;
  out.gap_scale = found->gap_scale;
  out.phase = found->phase;
  out.score_lengths = std::move(found->lengths);
  out.longer_prompts = std::move(found->forecast);
  out.forecast_test.emplace();
  if (found->test) out.forecast_test->push_back(*found->test);
}

void fill_budget(const Head& head, const HeadOptions& options, HeadDiagnosis& out) {
  out.budget = budget_rows(head, options.budgets, options.gap, options.sinks,
                           Stream(options.seed).split(kBudgetStream));
  const Index keys = std::min(head.n, kBudgetKeys);
  out.budget_verdict = budget_verdict(*out.budget, options.tolerance, keys * (head.dk + head.dv));
}

// Scores of each query as they enter the softmax.
std::vector<Vector> seen_scores(const Head& head, const std::vector<Index>& queries) {
  const Matrix K = head.K(0, head.n);
  std::vector<Vector> out;
  for (const Index query : queries) out.push_back(seen_keys(head, K, query).scores);
  return out;
}

}  // namespace

HeadDiagnosis diagnose(const Head& head, const HeadOptions& options) {
  check_head(head);
  check_options(head, options);
  std::vector<SurrogateModel> models = fit_models(head, options, {false, true});
  const std::vector<Index> queries = checked_queries(head, options);
  const std::vector<PromptResult> results =
      head.rules.none() ? walk_prompt(head, queries, models, options.mixture_keys)
                        : walk_ruled(head, queries, models);
  check_results(head, results, queries);
  HeadDiagnosis out;
  out.name = head.name;
  out.n = head.n;
  out.dk = head.dk;
  out.dv = head.dv;
  out.queries = static_cast<Index>(results.size());
  out.causal = head.causal;
  out.scale = head.scale;
  fill_scores(results, out);
  const std::optional<KeyDependence> dependence = key_dependence(head);
  fill_dependence(dependence, out);
  fill_errors(results, models, out);
  if (head.rules.none() && !out.mixtures.empty() && head.n > options.mixture_keys) {
    const Index stride = mixture_stride(head.n, options.mixture_keys);
    out.mixture_keys = (head.n + stride - 1) / stride;
  }
  fill_control(results, options.tolerance, out);
  fill_verdict(head, results, options, out);
  if (head.rules.none() && out.gaussian.lin_c > options.tolerance) {
    fill_causes(head, results, dependence, options, out);
  }
  for (const SurrogateModel& model : models) {
    if (model.k == out.best_k && !model.split) {
      out.score_mixture = score_density(model.moments.surrogate(model.floor()), results);
    }
  }
  out.score_histogram = head.rules.none() ? score_histogram(head, results)
                                          : score_histogram(seen_scores(head, queries));
  if (head.rules.none()) {
    out.prefixes = prefix_rows(head, results);
    fill_score_scale(head, results, out);
  }
  const KeptKeys kept = kept_keys(head);
  if (!options.windows.empty()) fill_windows(head, options, queries, results, models, kept, out);
  if (!options.budgets.empty()) fill_budget(head, options, out);
  out.cost = cost_rows(out, kept);
  return out;
}

Cells<HeadDiagnosis> diagnosis_cells(std::vector<Head> heads, const HeadOptions& options) {
  Cells<HeadDiagnosis> cells;
  for (const Head& head : heads) cells.keys.push_back(head.name);
  cells.compute = [heads = std::move(heads), options](std::size_t i) {
    return std::vector<HeadDiagnosis>{diagnose(heads[i], options)};
  };
  return cells;
}

std::vector<HeadDiagnosis> diagnose(const std::vector<Head>& heads, const HeadOptions& options) {
  return compute_here(diagnosis_cells(heads, options));
}

std::vector<Surrogate> fit_surrogates(const Head& head, const HeadOptions& options) {
  check_head(head);
  check_options(head, options);
  std::vector<SurrogateModel> models = fit_models(head, options, {false});
  if (head.rules.none()) {
    walk_prompt(head, {head.causal ? head.n_queries - 1 : 0}, models, options.mixture_keys);
  } else {
    walk_ruled(head, {default_queries(head).back()}, models);
  }
  std::vector<Surrogate> out;
  for (const SurrogateModel& model : models) out.push_back(model.moments.surrogate(model.floor()));
  return out;
}

}  // namespace esscher
