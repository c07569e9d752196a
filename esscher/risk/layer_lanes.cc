#include "esscher/risk/detail/layer_lanes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "esscher/risk/detail/head_lanes.h"

namespace esscher {
namespace {

// The laws of up to kTrainLanes prompts, side by side.
struct LaneLaws {
  Matrix G;  // [D (D + K),kTrainLanes], entry (i, k) of a prompt in row i (D + K) + k
  std::vector<double> below;  // [K - 1,kTrainLanes]
  Index D, K = 1;

  explicit LaneLaws(std::span<const LanePrompt> prompts)
      : D(prompts.front().node.tokens->shared()->dim()) {
    for (const LanePrompt& prompt : prompts) {
      K = std::max(K, prompt.node.tokens->shared()->count());
    }
    G = Matrix::Zero(D * width(), kTrainLanes);
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

  [[nodiscard]] Index width() const { return D + K; }

  // G't for t [D,kTrainLanes], and G u for u [D + K,kTrainLanes].
  void add_back(const Matrix& t, Eigen::Ref<Matrix> out) const {
    for (Index i = 0; i < D; ++i) {
      for (Index k = 0; k < width(); ++k) {
        out.row(k).array() += G.row(i * width() + k).array() * t.row(i).array();
      }
    }
  }
  [[nodiscard]] Matrix image(const MatrixView& u) const {
    Matrix out = Matrix::Zero(D, kTrainLanes);
    for (Index i = 0; i < D; ++i) {
      for (Index k = 0; k < width(); ++k) {
        out.row(i).array() += G.row(i * width() + k).array() * u.row(k).array();
      }
    }
    return out;
  }

 private:
  void add(const SharedMixture& law, const Matrix& F, std::size_t j) {
    const auto lane = static_cast<Index>(j);
    for (Index i = 0; i < D; ++i) {
      for (Index k = 0; k < F.cols(); ++k) G(i * width() + k, lane) = F(i, k);
      for (Index k = 0; k < law.count(); ++k) G(i * width() + D + k, lane) = law.means(k, i);
    }
    double sum = 0;
    for (Index k = 0; k + 1 < law.count(); ++k) {
      sum += law.weights[k];
      below[static_cast<std::size_t>(k * kTrainLanes) + j] = sum;
    }
  }
};

// The heads of one kind on all prompts. Matrices have kTrainLanes columns, one per prompt and then
// zeros.
class KindLanes {
 public:
  KindLanes(const Layer& layer, ModelKind kind, const LaneLaws& laws)
      : layer_(layer), kind_(kind), laws_(laws) {
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      if (layer.heads[h].kind == kind) heads_.push_back(h);
    }
  }

  [[nodiscard]] const std::vector<std::size_t>& heads() const { return heads_; }

  // Sums over the tokens of `count` prompts with tilts U_h times `queries` [D,kTrainLanes] and reads
  // V_h' times `misses` [m,kTrainLanes].
  void sum(std::int64_t L, const Stream& tokens, Index first, Index count, const Matrix& queries,
           const Matrix& misses) {
    if (heads_.empty()) return;
    const Index width = laws_.width();
    rows_.emplace(width - 1, static_cast<Index>(heads_.size()));
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const LayerHead& head = layer_.heads[heads_[i]];
      const Index at = static_cast<Index>(i) * width;
      laws_.add_back(head.U * queries, rows_->tilts().middleRows(at, width));
      laws_.add_back(head.V.transpose() * misses, rows_->reads().middleRows(at, width));
    }
    head_sums({.components = laws_.K, .below = laws_.below.data()}, kind_, L, tokens, first, count,
              *rows_);
  }

  // T and the product of head i, [D,kTrainLanes].
  [[nodiscard]] Matrix means(std::size_t i) { return of_head(rows_->means(), i); }
  [[nodiscard]] Matrix products(std::size_t i) { return of_head(rows_->products(), i); }

 private:
  [[nodiscard]] Matrix of_head(HeadRows::Rows rows, std::size_t i) const {
    return laws_.image(rows.middleRows(static_cast<Index>(i) * laws_.width(), laws_.width()));
  }

  const Layer& layer_;
  ModelKind kind_;
  const LaneLaws& laws_;
  std::vector<std::size_t> heads_;
  std::optional<HeadRows> rows_;
};

}  // namespace

double add_mixture_lanes(const Layer& layer, std::span<const LanePrompt> prompts, std::int64_t L,
                         const Stream& tokens, Index first, TaskLoss loss, Layer& gradient) {
  const LaneLaws laws(prompts);
  const Index m = layer.out_dim(), n = static_cast<Index>(prompts.size());
  Matrix queries = Matrix::Zero(layer.token_dim(), kTrainLanes);
  Matrix misses = Matrix::Zero(m, kTrainLanes);
  for (Index j = 0; j < n; ++j) {
    queries.col(j) = prompts[static_cast<std::size_t>(j)].node.query;
    misses.col(j).setOnes();
  }
  Matrix outs = layer.W * queries;
  std::vector<KindLanes> kinds;
  std::vector<std::vector<Matrix>> means;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    KindLanes& lanes = kinds.emplace_back(layer, kind, laws);
    lanes.sum(L, tokens, first, n, queries, misses);
    means.emplace_back();
    for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
      means.back().push_back(lanes.means(i));
      outs += layer.heads[lanes.heads()[i]].V * means.back().back();
    }
  }
  double sum = 0;
  Vector out, miss;
  for (Index j = 0; j < n; ++j) {
    out = outs.col(j);
    sum += prediction_loss(loss, out, prompts[static_cast<std::size_t>(j)].target, miss);
    misses.col(j) = miss;
  }
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    KindLanes& lanes = kinds[k];
    if (m > 1) lanes.sum(L, tokens, first, n, queries, misses);
    for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
      LayerHead& to = gradient.heads[lanes.heads()[i]];
      to.V += misses * means[k][i].transpose();
      Matrix products = lanes.products(i);
      if (m == 1) products.array().rowwise() *= misses.row(0).array();
      to.U += products * queries.transpose();
    }
  }
  gradient.W += misses * queries.transpose();
  return sum;
}

}  // namespace esscher
