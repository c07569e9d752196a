#include "esscher/risk/detail/layer_lanes.h"

#include <optional>
#include <utility>
#include <vector>

#include "esscher/risk/detail/head_lanes.h"
#include "esscher/risk/detail/head_visits.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// A product with at least one factor of kTrainLanes columns or rows. Eigen takes longer for those.
Matrix product(const MatrixView& A, const MatrixView& B) {
  Matrix out = Matrix::Zero(A.rows(), B.cols());
  add_product(A, B, out);
  return out;
}

// Which tokens are drawn.
struct LaneTokens {
  std::int64_t L;
  const Stream& stream;
  Index first, count;
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

  // Means of all heads with tilts U_h times `queries` [D,kTrainLanes]. With one output their products
  // too, with reads V_h; memory is then not asked for.
  void visit(const LaneTokens& tokens, const Matrix& queries, KeptTokens* kept) {
    if (heads_.empty()) return;
    const Index width = laws_.width(), H = static_cast<Index>(heads_.size());
    rows_.emplace(width - 1, H);
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      laws_.add_back(product(head(i).U, queries), of_head(rows_->tilts(), i));
    }
    if (kept != nullptr) {
      weights_.emplace(H, width, tokens.L);
      return head_means(white(), kind_, tokens.L, tokens.stream, tokens.first, tokens.count, *rows_,
                        *kept, *weights_);
    }
    if (layer_.out_dim() == 1) set_reads(Matrix::Ones(1, kTrainLanes));
    sum(tokens);
  }

  // Products with reads V_h' times `misses` [m,kTrainLanes].
  void visit_again(const LaneTokens& tokens, const Matrix& misses, const KeptTokens* kept) {
    if (heads_.empty()) return;
    set_reads(misses);
    if (kept == nullptr) return sum(tokens);
    head_products(kind_, tokens.L, tokens.count, *rows_, *kept, *weights_);
  }

  // T and the product of head i, [D,kTrainLanes].
  [[nodiscard]] Matrix means(std::size_t i) { return laws_.image(of_head(rows_->means(), i)); }
  [[nodiscard]] Matrix products(std::size_t i) {
    return laws_.image(of_head(rows_->products(), i));
  }

 private:
  [[nodiscard]] const LayerHead& head(std::size_t i) const { return layer_.heads[heads_[i]]; }
  [[nodiscard]] HeadRows::Rows of_head(HeadRows::Rows rows, std::size_t i) const {
    const Index width = laws_.width();
    return {rows.data() + static_cast<Index>(i) * width * kTrainLanes, width, kTrainLanes};
  }
  [[nodiscard]] WhiteTokens white() const {
    return {.components = laws_.components(), .below = laws_.below()};
  }

  void set_reads(const Matrix& misses) {
    rows_->reads().setZero();
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      laws_.add_back(product(head(i).V.transpose(), misses), of_head(rows_->reads(), i));
    }
  }

  // Means and products from tilts and reads, in one visit.
  void sum(const LaneTokens& tokens) {
    rows_->clear_sums();
    head_sums(white(), kind_, tokens.L, tokens.stream, tokens.first, tokens.count, *rows_);
  }

  const Layer& layer_;
  ModelKind kind_;
  const LaneLaws& laws_;
  std::vector<std::size_t> heads_;
  std::optional<HeadRows> rows_;
  std::optional<KeptWeights> weights_;
};

// Returns the losses of n prompts, summed; the first n columns of `misses` are their slopes.
double losses_of(TaskLoss loss, const Matrix& outs, const Matrix& targets, Matrix& misses) {
  const Index n = targets.cols();
  if (loss == TaskLoss::squared) {
    misses.leftCols(n) = outs.leftCols(n) - targets;
    return misses.leftCols(n).squaredNorm() / 2;
  }
  double sum = 0;
  Vector slope;
  for (Index j = 0; j < n; ++j) {
    sum += prediction_loss(loss, outs.col(j), targets.col(j), slope);
    misses.col(j) = slope;
  }
  return sum;
}

}  // namespace

double add_mixture_lanes(const Layer& layer, const LanePrompts& prompts, std::int64_t L,
                         const Stream& tokens, Index first, TaskLoss loss, Layer& gradient) {
  const Index m = layer.out_dim(), n = prompts.queries.cols();
  Matrix queries = Matrix::Zero(layer.token_dim(), kTrainLanes);
  Matrix misses = Matrix::Zero(m, kTrainLanes);
  queries.leftCols(n) = prompts.queries;
  const Matrix transposed = queries.transpose();
  Matrix outs = product(layer.W, queries);
  const LaneTokens drawn{L, tokens, first, n};
  const LaneLaws& laws = prompts.laws;
  std::optional<KeptTokens> memory;
  if (m > 1 && fit_two_visits(laws.width(), static_cast<Index>(layer.heads.size()), L)) {
    memory.emplace(laws.width(), L);
  }
  KeptTokens* const kept = memory ? &*memory : nullptr;
  std::vector<KindLanes> kinds;
  std::vector<std::vector<Matrix>> means;
  for (const ModelKind kind : {ModelKind::softmax, ModelKind::linear}) {
    KindLanes& lanes = kinds.emplace_back(layer, kind, laws);
    lanes.visit(drawn, queries, kept);
    means.emplace_back();
    for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
      means.back().push_back(lanes.means(i));
      add_product(layer.heads[lanes.heads()[i]].V, means.back().back(), outs);
    }
  }
  const double sum = losses_of(loss, outs, prompts.targets, misses);
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    KindLanes& lanes = kinds[k];
    if (m > 1) lanes.visit_again(drawn, misses, kept);
    for (std::size_t i = 0; i < lanes.heads().size(); ++i) {
      LayerHead& to = gradient.heads[lanes.heads()[i]];
      add_product(misses, Matrix(means[k][i].transpose()), to.V);
      Matrix products = lanes.products(i);
      if (m == 1) products.array().rowwise() *= misses.row(0).array();
      add_product(products, transposed, to.U);
    }
  }
  add_product(misses, transposed, gradient.W);
  return sum;
}

}  // namespace esscher
