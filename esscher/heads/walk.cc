#include "esscher/heads/walk.h"

#include <algorithm>
#include <utility>

#include "esscher/heads/truth.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// Keys that enter the sums together: few enough for the caches.
constexpr Index kPiece = 512;

// Rows of `rows`, which start at key `first`, on the wanted side of the split.
Matrix half(const Matrix& rows, Index first, bool fitted) {
  Matrix out(rows.rows(), rows.cols());
  Index used = 0;
  for (Index l = 0; l < rows.rows(); ++l) {
    if (is_fitted(first + l) == fitted) out.row(used++) = rows.row(l);
  }
  out.conservativeResize(used, Eigen::NoChange);
  return out;
}

// At most `most` evenly spaced rows of a source with n rows, of all or of the fitted ones only.
Matrix spaced_rows(const RowSource& source, Index n, Index width, Index most, bool fitted_only) {
  Index available = 0;
  for (Index l = 0; l < n; ++l) available += !fitted_only || is_fitted(l) ? 1 : 0;
  const Index count = std::min(available, most);
  Matrix out(count, width);
  Index done = 0;
  Index seen = 0;
  for (Index first = 0; first < n && done < count; first += kHeadChunk) {
    const Matrix chunk = source(first, std::min(kHeadChunk, n - first));
    for (Index l = 0; l < chunk.rows() && done < count; ++l) {
      if (fitted_only && !is_fitted(first + l)) continue;
      if (seen++ == done * available / count) out.row(done++) = chunk.row(l);
    }
  }
  return out;
}

Vector mean_row(const Matrix& rows) { return rows.colwise().mean(); }

class Walk {
 public:
  Walk(const Head& head, const std::vector<Index>& queries, std::vector<SurrogateModel>& models,
       const std::function<void(std::size_t)>& reached)
      : models_(models),
        reached_(reached),
        origin_k_(models.front().moments.origin_k()),
        origin_v_(models.front().moments.origin_v()),
        a_(static_cast<Index>(queries.size()), head.dk),
        all_(a_.rows(), head.dv),
        unseen_(a_.rows(), head.dv),
        results_(queries.size()) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
      a_.row(static_cast<Index>(i)) = head.scale * head.Q(queries[i], 1).row(0);
      ends_.push_back(head.prompt_end(queries[i]));
    }
  }

  [[nodiscard]] Index last_end() const { return *std::max_element(ends_.begin(), ends_.end()); }
  std::vector<PromptResult> results() && { return std::move(results_); }

  // Keys [first, first + rows) of the head, in absolute coordinates.
  void add_chunk(Index first, Matrix keys, Matrix values) {
    keys.rowwise() -= origin_k_.transpose();
    values.rowwise() -= origin_v_.transpose();
    Matrix scores = Matrix::Zero(keys.rows(), a_.rows());
    add_product(keys, Matrix(a_.transpose()), scores);
    std::vector<Matrix> shares;
    for (const SurrogateModel& model : models_) {
      shares.push_back(model.fit ? responsibilities(*model.fit, keys)
                                 : Matrix::Ones(keys.rows(), 1));
    }
    for (Index at = 0; at < keys.rows();) {
      Index stop = std::min(keys.rows(), at + kPiece);  // or where a prompt ends before that
      for (const Index end : ends_) {
        if (end - first > at) stop = std::min(stop, end - first);
      }
      advance(first + at, keys.middleRows(at, stop - at), values.middleRows(at, stop - at),
              scores.middleRows(at, stop - at), shares, at);
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i] != first + stop) continue;
        results_[i] = evaluate(static_cast<Index>(i));
        if (reached_) reached_(i);
      }
      at = stop;
    }
  }

 private:
  // Keys that start at key number `first`, all inside or all outside every prompt.
  void advance(Index first, const Matrix& keys, const Matrix& values, const Matrix& scores,
               const std::vector<Matrix>& shares, Index share_row) {
    std::vector<Index> active;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i] >= first + keys.rows()) active.push_back(static_cast<Index>(i));
    }
    all_.add(scores, values, active, first);
    unseen_.add(half(scores, first, false), half(values, first, false), active, first);
    const Matrix fit_keys = half(keys, first, true);
    const Matrix fit_values = half(values, first, true);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const Matrix share = shares[m].middleRows(share_row, keys.rows());
      if (models_[m].split) {
        models_[m].moments.add(fit_keys, fit_values, half(share, first, true));
      } else {
        models_[m].moments.add(keys, values, share);
      }
    }
  }

  [[nodiscard]] PromptResult evaluate(Index i) const {
    PromptResult out;
    out.a = a_.row(i);
    const PromptMoments& gaussian = models_.front().moments;
    const Vector T = origin_v_ + all_.output(i);
    const Vector mean_v = gaussian.mean_v();
    const Vector linear = gaussian.output(out.a, 0.0) - mean_v;  // Cov(V,K) a
    out.n = all_.count(i);
    out.norm = T.norm();
    out.signal = (T - mean_v).norm();
    out.ess = all_.effective_sample_size(i);
    out.kurtosis = all_.score_kurtosis(i);
    out.top_weight = all_.top_weight(i);
    out.top_key = all_.top_key(i);
    out.moments = {.tau2 = all_.score_variance(i),
                   .signal2 = linear.squaredNorm(),
                   .value_var = gaussian.value_variance()};
    out.uncentred = (T - linear - mean_v * gaussian.mean_k().dot(out.a)).norm();
    const Vector T_unseen = unseen_.count(i) > 0 ? Vector(origin_v_ + unseen_.output(i)) : T;
    for (const SurrogateModel& model : models_) {
      if (!(model.moments.count() > 0)) {  // no fitted key yet: nothing is said, nothing is missed
        out.errors.push_back(0);
        continue;
      }
      const Vector& truth = model.split ? T_unseen : T;
      out.errors.push_back((truth - model.moments.output(out.a, model.floor())).norm());
      if (model.split && model.k == 1) {
        out.norm_unseen = T_unseen.norm();
        out.signal_unseen = (T_unseen - model.moments.mean_v()).norm();
      }
    }
    return out;
  }

  std::vector<SurrogateModel>& models_;
  const std::function<void(std::size_t)>& reached_;
  Vector origin_k_;
  Vector origin_v_;
  Matrix a_;  // [queries,dk]
  std::vector<Index> ends_;
  PromptTruth all_;
  PromptTruth unseen_;
  std::vector<PromptResult> results_;
};

}  // namespace

bool is_fitted(Index key) { return Stream(0x5eed).rademacher(static_cast<std::uint64_t>(key)) > 0; }

std::vector<SurrogateModel> fit_models(const Head& head, const HeadOptions& options,
                                       const std::vector<bool>& splits) {
  std::vector<SurrogateModel> models;
  Matrix keys = spaced_rows(head.K, head.n, head.dk, options.fit_keys, false);
  const Vector origin_k = mean_row(keys);
  const Vector origin_v = mean_row(spaced_rows(head.V, head.n, head.dv, options.fit_keys, false));
  for (const bool split : splits) {
    if (split) keys = spaced_rows(head.K, head.n, head.dk, options.fit_keys, true);
    keys.rowwise() -= origin_k.transpose();
    models.push_back({1, split, std::nullopt, {1, origin_k, origin_v}});
    for (const Index k : options.components) {
      if (4 * k > keys.rows()) continue;
      models.push_back({k,
                        split,
                        fit_mixture(keys, k, Stream(options.seed).split(k), options.fit),
                        {k, origin_k, origin_v}});
    }
  }
  return models;
}

std::vector<PromptResult> walk_prompt(const Head& head, const std::vector<Index>& queries,
                                      std::vector<SurrogateModel>& models,
                                      const std::function<void(std::size_t)>& reached) {
  Walk walk(head, queries, models, reached);
  const Index last = walk.last_end();
  for (Index first = 0; first < last; first += kHeadChunk) {
    const Index rows = std::min(kHeadChunk, last - first);
    walk.add_chunk(first, head.K(first, rows), head.V(first, rows));
  }
  return std::move(walk).results();
}

}  // namespace esscher
