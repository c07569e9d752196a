// The walk of a head with rules (heads/rules.h). Queries see sets of keys of their own, so that the
// whole prompt is held in memory, and moments move from set to set.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "esscher/heads/detail/truth.h"
#include "esscher/heads/detail/visible_moments.h"
#include "esscher/heads/detail/walk.h"
#include "esscher/heads/tail.h"

namespace esscher {
namespace {

// The share of the weight that keys of a log-mass have beside the sink logit.
double key_share(const Head& head, double log_mass) {
  return head.rules.sink ? 1 / (1 + std::exp(*head.rules.sink - log_mass)) : 1.0;
}

class RuledWalk {
 public:
  RuledWalk(const Head& head, std::vector<SurrogateModel>& models)
      : head_(head),
        models_(models),
        origin_k_(models.front().moments.origin_k()),
        origin_v_(models.front().moments.origin_v()),
        K_(head.K(0, head.n)),
        keys_(K_.rowwise() - origin_k_.transpose()),
        values_(head.V(0, head.n).rowwise() - origin_v_.transpose()) {
    for (SurrogateModel& model : models_) moments_.emplace_back(model, keys_, values_);
  }

  PromptResult at(Index query) {
    const SeenKeys seen = seen_keys(head_, K_, query);
    for (VisibleMoments& moments : moments_) moments.move_to(seen.keys);
    PromptTruth truth(1, head_.dv);
    truth.add(seen.scores, gathered(values_, seen.keys), {0}, 0);
    PromptResult out;
    out.a = head_.scale * head_.Q(query, 1).row(0).transpose();
    out.n = truth.count(0);
    const double share = key_share(head_, seen.scores.maxCoeff() - std::log(truth.top_weight(0)));
    const PromptMoments& gaussian = models_.front().moments;
    const Vector mean = share * gaussian.mean_v();
    out.T = share * (origin_v_ + truth.output(0));
    out.norm = out.T.norm();
    out.signal = (out.T - mean).norm();
    out.ess = truth.effective_sample_size(0);
    out.kurtosis = truth.score_kurtosis(0);
    out.top_weight = share * truth.top_weight(0);
    out.top_key = seen.keys[static_cast<std::size_t>(truth.top_key(0))];
    out.moments = {
        .tau2 = truth.score_variance(0), .signal2 = 0, .value_var = gaussian.value_variance()};
    const Vector unseen = unseen_output(seen, share);
    for (const SurrogateModel& model : models_) judge(model, share, unseen, out);
    return out;
  }

 private:
  // The output over the keys that split surrogates were not fitted to; empty without such keys.
  [[nodiscard]] Vector unseen_output(const SeenKeys& seen, double share) const {
    std::vector<Index> keys;
    std::vector<double> scores;
    for (std::size_t i = 0; i < seen.keys.size(); ++i) {
      if (is_fitted(seen.keys[i])) continue;
      keys.push_back(seen.keys[i]);
      scores.push_back(seen.scores(static_cast<Index>(i)));
    }
    if (keys.empty()) return {};
    PromptTruth truth(1, head_.dv);
    truth.add(Eigen::Map<const Vector>(scores.data(), static_cast<Index>(scores.size())),
              gathered(values_, keys), {0}, 0);
    return share * (origin_v_ + truth.output(0));
  }

  void judge(const SurrogateModel& model, double share, const Vector& unseen,
             PromptResult& out) const {
    const PromptMoments& moments = model.moments;
    if (!(moments.count() > 0)) {
      out.errors.push_back(0);
      out.controls.push_back(kNoControl);
      return;
    }
    const ScoreMixture scores = moments.scores(out.a.transpose(), model.floor()).front();
    if (model.k == 1 && !model.split) {
      const Vector linear = scores.cross.row(0);
      out.moments.signal2 = linear.squaredNorm();
      out.uncentred =
          (out.T - share * (linear + moments.mean_v() * moments.mean_k().dot(out.a))).norm();
    }
    const bool split = model.split && unseen.size() > 0;
    const Vector& truth = split ? unseen : out.T;
    const Tail mass = model.k == 1 ? Tail::gaussian : Tail::mixture;
    const double own =
        key_share(head_, tail_value(mass, scores, out.n).log_mass + out.a.dot(origin_k_));
    out.errors.push_back((truth - own * (origin_v_ + limit(scores))).norm());
    const bool as_drawn = head_.rules.softcap == 0 && !head_.rules.sink && !head_.rules.bias;
    out.controls.push_back(model.fit && !model.split && as_drawn ? mixture_control(scores, out.n)
                                                                 : kNoControl);
    if (model.split && model.k == 1) {
      out.norm_unseen = truth.norm();
      out.signal_unseen = (truth - share * moments.mean_v()).norm();
    }
  }

  const Head& head_;
  std::vector<SurrogateModel>& models_;
  Vector origin_k_, origin_v_;
  Matrix K_;              // [n,dk]
  Matrix keys_, values_;  // relative to the origins
  std::vector<VisibleMoments> moments_;
};

}  // namespace

std::vector<PromptResult> walk_ruled(const Head& head, const std::vector<Index>& queries,
                                     std::vector<SurrogateModel>& models) {
  std::vector<std::size_t> order(queries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return queries[x] < queries[y]; });
  RuledWalk walk(head, models);
  std::vector<PromptResult> results(queries.size());
  for (const std::size_t i : order) results[i] = walk.at(queries[i]);
  return results;
}

}  // namespace esscher
