#include "esscher/heads/detail/walk.h"

#include <algorithm>
#include <utility>

#include "esscher/base/parallel.h"
#include "esscher/heads/detail/truth.h"
#include "esscher/simd/gemm.h"

namespace esscher {
namespace {

// The number of keys that enter the sums together, few enough for the caches.
constexpr Index kPiece = 512;
// The number of queries whose scores are held at the same time.
constexpr std::size_t kBatch = 64;

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
  Walk(const Head& head, const std::vector<Index>& queries, std::vector<SurrogateModel>& models)
      : models_(models),
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
    for (const SurrogateModel& model : models_) shares.push_back(share(model, keys, first));
    for (Index at = 0; at < keys.rows();) {
      Index stop = std::min(keys.rows(), at + kPiece);  // or where a prompt ends before that
      for (const Index end : ends_) {
        if (end - first > at) stop = std::min(stop, end - first);
      }
      advance(first + at, keys.middleRows(at, stop - at), values.middleRows(at, stop - at),
              scores.middleRows(at, stop - at), shares, at);
      std::vector<Index> here;
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i] == first + stop) here.push_back(static_cast<Index>(i));
      }
      evaluate(here);
      at = stop;
    }
  }

 private:
  // Responsibilities [rows,k] for keys that start at key number `first`; those on the other side of
  // a split are not looked at and stay 0.
  static Matrix share(const SurrogateModel& model, const Matrix& keys, Index first) {
    if (!model.fit) return Matrix::Ones(keys.rows(), 1);
    if (!model.split) return responsibilities(*model.fit, keys);
    const Matrix fitted = responsibilities(*model.fit, half(keys, first, true));
    Matrix out = Matrix::Zero(keys.rows(), fitted.cols());
    Index used = 0;
    for (Index l = 0; l < keys.rows(); ++l) {
      if (is_fitted(first + l)) out.row(l) = fitted.row(used++);
    }
    return out;
  }

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

  // The queries whose prompt is exactly what the sums hold.
  void evaluate(const std::vector<Index>& queries) {
    for (std::size_t first = 0; first < queries.size(); first += kBatch) {
      const std::size_t count = std::min(kBatch, queries.size() - first);
      Matrix A(static_cast<Index>(count), a_.cols());
      for (std::size_t i = 0; i < count; ++i) {
        A.row(static_cast<Index>(i)) = a_.row(queries[first + i]);
        results_[queries[first + i]] = measure(queries[first + i]);
      }
      for (const SurrogateModel& model : models_) {
        const std::vector<ScoreMixture> scores = model.moments.scores(A, model.floor());
        for (std::size_t i = 0; i < count; ++i) judge(model, queries[first + i], scores[i]);
      }
    }
  }

  // All that needs no surrogate.
  [[nodiscard]] PromptResult measure(Index i) const {
    PromptResult out;
    const PromptMoments& gaussian = models_.front().moments;
    out.a = a_.row(i);
    out.n = all_.count(i);
    out.T = origin_v_ + all_.output(i);
    out.norm = out.T.norm();
    out.signal = (out.T - gaussian.mean_v()).norm();
    out.ess = all_.effective_sample_size(i);
    out.kurtosis = all_.score_kurtosis(i);
    out.top_weight = all_.top_weight(i);
    out.top_key = all_.top_key(i);
    out.moments = {
        .tau2 = all_.score_variance(i), .signal2 = 0, .value_var = gaussian.value_variance()};
    return out;
  }

  // Compares one surrogate with query i.
  void judge(const SurrogateModel& model, Index i, const ScoreMixture& scores) {
    PromptResult& out = results_[i];
    const PromptMoments& moments = model.moments;
    const Vector T = origin_v_ + all_.output(i);
    if (model.k == 1 && !model.split) {
      const Vector linear = scores.cross.row(0);  // Cov(V,K) a
      out.moments.signal2 = linear.squaredNorm();
      out.uncentred = (T - linear - moments.mean_v() * moments.mean_k().dot(out.a)).norm();
    }
    if (!(moments.count() > 0)) {  // no key of the fitting half has come yet
      out.errors.push_back(0);
      out.controls.push_back(kNoControl);
      return;
    }
    const bool unseen = model.split && unseen_.count(i) > 0;
    const Vector truth = unseen ? Vector(origin_v_ + unseen_.output(i)) : T;
    out.errors.push_back((truth - origin_v_ - limit(scores)).norm());
    out.controls.push_back(model.fit && !model.split ? mixture_control(scores, out.n) : kNoControl);
    if (model.split && model.k == 1) {
      out.norm_unseen = truth.norm();
      out.signal_unseen = (truth - moments.mean_v()).norm();
    }
  }

  std::vector<SurrogateModel>& models_;
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
  std::vector<Matrix> keys;        // one per split
  std::vector<std::size_t> which;  // the keys of each model
  const Matrix all = spaced_rows(head.K, head.n, head.dk, options.fit_keys, false);
  const Vector origin_k = mean_row(all);
  const Vector origin_v = mean_row(spaced_rows(head.V, head.n, head.dv, options.fit_keys, false));
  for (const bool split : splits) {
    keys.push_back(split ? spaced_rows(head.K, head.n, head.dk, options.fit_keys, true) : all);
    keys.back().rowwise() -= origin_k.transpose();
    models.push_back({1, split, std::nullopt, {1, origin_k, origin_v}});
    for (const Index k : options.components) {
      if (4 * k > keys.back().rows()) continue;
      models.push_back({k, split, std::nullopt, {k, origin_k, origin_v}});
    }
    which.resize(models.size(), keys.size() - 1);
  }
  parallel_for(static_cast<std::int64_t>(models.size()), [&](std::int64_t i) {
    SurrogateModel& model = models[static_cast<std::size_t>(i)];
    if (model.k == 1) return;
    model.fit = fit_mixture(keys[which[static_cast<std::size_t>(i)]], model.k,
                            Stream(options.seed).split(model.k), options.fit);
  });
  return models;
}

std::vector<PromptResult> walk_prompt(const Head& head, const std::vector<Index>& queries,
                                      std::vector<SurrogateModel>& models) {
  Walk walk(head, queries, models);
  const Index last = walk.last_end();
  for (Index first = 0; first < last; first += kHeadChunk) {
    const Index rows = std::min(kHeadChunk, last - first);
    walk.add_chunk(first, head.K(first, rows), head.V(first, rows));
  }
  return std::move(walk).results();
}

std::vector<PromptResult> few_of(const std::vector<PromptResult>& results) {
  constexpr std::size_t kQueries = 16;
  std::vector<PromptResult> few;
  const std::size_t count = std::min(kQueries, results.size());
  for (std::size_t i = 0; i < count; ++i) few.push_back(results[i * results.size() / count]);
  return few;
}

}  // namespace esscher
