#include "esscher/heads/mixture_control.h"

#include <algorithm>
#include <cmath>

#include "esscher/heads/quantile.h"
#include "esscher/prompt/exact_mixture.h"
#include "esscher/prompt/universal.h"

namespace esscher {
namespace {

// Attention that reads scores from the key part and values from the value part of a token (k, v).
Attention token_attention(Index dk, Index dv) {
  Matrix U = Matrix::Zero(dk + dv, dk + dv);
  U.topLeftCorner(dk, dk).setIdentity();
  Matrix V = Matrix::Zero(dv, dk + dv);
  V.rightCols(dv).setIdentity();
  return Attention::from_uv(U, V);
}

bool reachable(const Surrogate& surrogate, const Vector& a) {
  return std::all_of(surrogate.cov_k.begin(), surrogate.cov_k.end(), [&](const Matrix& cov) {
    return std::sqrt(std::max(0.0, a.dot(cov * a))) < kMaxMixtureTau;
  });
}

// The surrogate over the prompt of each query: one for all unless the head is causal, where a
// second walk stops at each.
std::vector<Surrogate> surrogates_at(const Head& head, const std::vector<Index>& queries,
                                     const SurrogateModel& model) {
  if (!head.causal) return {model.moments.surrogate(model.floor())};
  const PromptMoments& whole = model.moments;
  std::vector<SurrogateModel> models;
  models.push_back({1, false, std::nullopt, {1, whole.origin_k(), whole.origin_v()}});
  models.push_back({model.k, false, model.fit, {model.k, whole.origin_k(), whole.origin_v()}});
  std::vector<Surrogate> out(queries.size());
  walk_prompt(head, queries, models, [&](std::size_t i) {
    out[i] = models.back().moments.surrogate(models.back().floor());
  });
  return out;
}

}  // namespace

std::optional<MixtureControl> mixture_control(const Head& head, const std::vector<Index>& queries,
                                              const std::vector<PromptResult>& results,
                                              const SurrogateModel& model) {
  const std::size_t count = std::min(kMixtureControlQueries, queries.size());
  std::vector<Index> few;
  std::vector<const PromptResult*> measured;
  for (std::size_t i = 0; i < count; ++i) {
    few.push_back(queries[i * queries.size() / count]);
    measured.push_back(&results[i * queries.size() / count]);
  }
  const std::vector<Surrogate> surrogates = surrogates_at(head, few, model);
  const Attention attention = token_attention(head.dk, head.dv);
  GaussianMixtureLaw law;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < count; ++i) {
    const PromptResult& query = *measured[i];
    const Surrogate& surrogate = surrogates[head.causal ? i : 0];
    if (head.causal || i == 0) law = token_law(surrogate);
    if (!reachable(surrogate, query.a)) continue;
    Vector z = Vector::Zero(head.dk + head.dv);
    z.head(head.dk) = query.a;
    const double error2 =
        mean_square_error(Metric::output, law, attention, z, static_cast<std::int64_t>(query.n));
    ratios.push_back(std::sqrt(error2) / std::max(query.signal, 1e-300));
  }
  if (ratios.empty()) return std::nullopt;
  return MixtureControl{model.k, static_cast<Index>(ratios.size()), median(ratios)};
}

}  // namespace esscher
