#include "esscher/risk/detail/layer_lanes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "esscher/risk/detail/head_lanes.h"

namespace esscher {
namespace {

// The laws of up to kTrainLanes prompts.
struct LaneLaws {
  std::vector<Matrix> G;      // [D,D + K] each
  std::vector<double> below;  // [K - 1,kTrainLanes]
  Index K = 1;

  explicit LaneLaws(std::span<const LanePrompt> prompts) {
    for (const LanePrompt& prompt : prompts) {
      K = std::max(K, prompt.node.tokens->shared()->count());
    }
    below.assign(static_cast<std::size_t>((K - 1) * kTrainLanes), 1.0);
    Matrix cov, F;  // factors are kept from prompt to prompt
    for (std::size_t j = 0; j < prompts.size(); ++j) {
      const auto law = prompts[j].node.tokens->shared();
      if (cov.size() == 0 || law->cov != cov) {
        cov = law->cov;
        F = psd_factor("layer", "covariance of the tokens", cov);
      }
      add(*law, F, j);
    }
  }

 private:
  void add(const SharedMixture& law, const Matrix& F, std::size_t j) {
    const Index D = law.dim();
    Matrix image = Matrix::Zero(D, D + K);
    image.leftCols(F.cols()) = F;
    image.middleCols(D, law.count()) = law.means.transpose();
    G.push_back(std::move(image));
    double sum = 0;
    for (Index k = 0; k + 1 < law.count(); ++k) {
      sum += law.weights[k];
      below[static_cast<std::size_t>(k * kTrainLanes) + j] = sum;
    }
  }
};

// The heads of one kind on all prompts.
class KindLanes {
 public:
  KindLanes(const Layer& layer, ModelKind kind, std::span<const LanePrompt> prompts,
            const LaneLaws& laws)
      : layer_(layer), kind_(kind), prompts_(prompts), laws_(laws) {
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      if (layer.heads[h].kind == kind) heads_.push_back(h);
    }
  }

  [[nodiscard]] const std::vector<std::size_t>& heads() const { return heads_; }

  // Sums over the tokens with reads V_h' times a column of `misses` [m,prompts].
  void sum(std::int64_t L, const Stream& tokens, Index first, const Matrix& misses) {
    if (heads_.empty()) return;
    const Index D = size();
    rows_.emplace(D - 1, static_cast<Index>(heads_.size()));
    for (std::size_t j = 0; j < prompts_.size(); ++j) {
      const auto lane = static_cast<Index>(j);
      const Matrix& G = laws_.G[j];
      for (std::size_t i = 0; i < heads_.size(); ++i) {
        const LayerHead& head = layer_.heads[heads_[i]];
        const Index at = static_cast<Index>(i) * D;
        rows_->tilts().col(lane).segment(at, D) = G.transpose() * (head.U * prompts_[j].node.query);
        rows_->reads().col(lane).segment(at, D) =
            G.transpose() * (head.V.transpose() * misses.col(lane));
      }
    }
    head_sums({.components = laws_.K, .below = laws_.below.data()}, kind_, L, tokens, first,
              static_cast<Index>(prompts_.size()), *rows_);
  }

  // T and the product of head i on prompt j.
  [[nodiscard]] Vector mean(std::size_t i, std::size_t j) { return image(rows_->means(), i, j); }
  [[nodiscard]] Vector product(std::size_t i, std::size_t j) {
    return image(rows_->products(), i, j);
  }

 private:
  [[nodiscard]] Index size() const { return laws_.G[0].cols(); }
  [[nodiscard]] Vector image(HeadRows::Rows rows, std::size_t i, std::size_t j) const {
    return laws_.G[j] *
           rows.col(static_cast<Index>(j)).segment(static_cast<Index>(i) * size(), size());
  }

  const Layer& layer_;
  ModelKind kind_;
  std::span<const LanePrompt> prompts_;
  const LaneLaws& laws_;
  std::vector<std::size_t> heads_;
  std::optional<HeadRows> rows_;
};

}  // namespace

double add_mixture_lanes(const Layer& layer, std::span<const LanePrompt> prompts, std::int64_t L,
                         const Stream& tokens, Index first, TaskLoss loss, Layer& gradient) {
  const LaneLaws laws(prompts);
  const Index m = layer.out_dim(), n = static_cast<Index>(prompts.size());
  Matrix misses = Matrix::Ones(m, n);
  std::vector<KindLanes> kinds;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    kinds.emplace_back(layer, kind, prompts, laws).sum(L, tokens, first, misses);
  }
  double sum = 0;
  for (std::size_t j = 0; j < prompts.size(); ++j) {
    Vector out = layer.W * prompts[j].node.query, miss;
    for (KindLanes& lanes : kinds) {
      for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
        out += layer.heads[lanes.heads()[i]].V * lanes.mean(i, j);
      }
    }
    sum += prediction_loss(loss, out, prompts[j].target, miss);
    misses.col(static_cast<Index>(j)) = miss;
  }
  for (KindLanes& lanes : kinds) {
    if (m > 1) lanes.sum(L, tokens, first, misses);
    for (std::size_t j = 0; j < prompts.size(); ++j) {
      const Vector& z = prompts[j].node.query;
      const Vector miss = misses.col(static_cast<Index>(j));
      for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
        LayerHead& to = gradient.heads[lanes.heads()[i]];
        to.V += miss * lanes.mean(i, j).transpose();
        to.U += (m > 1 ? 1.0 : miss[0]) * lanes.product(i, j) * z.transpose();
      }
    }
  }
  for (std::size_t j = 0; j < prompts.size(); ++j) {
    gradient.W += misses.col(static_cast<Index>(j)) * prompts[j].node.query.transpose();
  }
  return sum;
}

}  // namespace esscher
