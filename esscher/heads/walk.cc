#include "esscher/heads/detail/walk.h"

#include <algorithm>
#include <optional>
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

Matrix rows_at(const Matrix& rows, const std::vector<Index>& places) {
  Matrix out(static_cast<Index>(places.size()), rows.cols());
  for (std::size_t i = 0; i < places.size(); ++i) {
    out.row(static_cast<Index>(i)) = rows.row(places[i]);
  }
  return out;
}

// Which rows of a chunk of keys go where.
struct Sides {
  std::vector<char> fitted;   // the half of the split
  std::vector<char> sampled;  // what mixtures take of a long prompt

  // Rows [from, from + count) of one half, or of both.
  [[nodiscard]] std::vector<Index> places(Index from, Index count, std::optional<bool> half,
                                          bool sample) const {
    std::vector<Index> out;
    for (Index l = 0; l < count; ++l) {
      const auto at = static_cast<std::size_t>(from + l);
      if (half && (fitted[at] != 0) != *half) continue;
      if (!sample || sampled[at] != 0) out.push_back(l);
    }
    return out;
  }
};

// At most `most` evenly spaced rows of a source with n rows, of all or of the fitted ones only.
std::vector<Index> spaced_places(Index n, Index most, bool fitted_only) {
  std::vector<Index> available;
  for (Index l = 0; l < n; ++l) {
    if (!fitted_only || is_fitted(l)) available.push_back(l);
  }
  const auto all = static_cast<Index>(available.size());
  const Index count = std::min(all, most);
  std::vector<Index> out;
  for (Index i = 0; i < count; ++i) {
    out.push_back(available[static_cast<std::size_t>(i * all / count)]);
  }
  return out;
}

Matrix rows_of(const RowSource& source, const std::vector<Index>& places, Index n, Index width) {
  Matrix out(static_cast<Index>(places.size()), width);
  const bool sparse = 4 * out.rows() < n;  // few of many rows are read one by one
  Index done = 0;
  for (Index first = 0; first < n && done < out.rows(); first += kHeadChunk) {
    const Index end = std::min(n, first + kHeadChunk);
    const Matrix chunk = sparse ? Matrix() : source(first, end - first);
    for (; done < out.rows() && places[static_cast<std::size_t>(done)] < end; ++done) {
      const Index place = places[static_cast<std::size_t>(done)];
      if (sparse) {
        out.row(done) = source(place, 1).row(0);
      } else {
        out.row(done) = chunk.row(place - first);
      }
    }
  }
  return out;
}

Vector mean_row(const Matrix& rows) { return rows.colwise().mean(); }

class Walk {
 public:
  Walk(const Head& head, const std::vector<Index>& queries, std::vector<SurrogateModel>& models,
       Index mixture_keys)
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
    stride_ = mixture_stride(last_end(), mixture_keys);
  }

  [[nodiscard]] Index last_end() const { return *std::max_element(ends_.begin(), ends_.end()); }
  std::vector<PromptResult> results() && { return std::move(results_); }

  // Keys [first, first + rows) of the head, in absolute coordinates.
  void add_chunk(Index first, Matrix keys, Matrix values) {
    keys.rowwise() -= origin_k_.transpose();
    values.rowwise() -= origin_v_.transpose();
    Matrix scores = Matrix::Zero(keys.rows(), a_.rows());
    add_product(keys, Matrix(a_.transpose()), scores);
    const Sides sides = sides_of(first, keys.rows());
    std::vector<Matrix> shares;
    for (const SurrogateModel& model : models_) shares.push_back(share(model, keys, sides));
    for (Index at = 0; at < keys.rows();) {
      Index stop = std::min(keys.rows(), at + kPiece);  // or where a prompt ends before that
      for (const Index end : ends_) {
        if (end - first > at) stop = std::min(stop, end - first);
      }
      advance(first + at, keys.middleRows(at, stop - at), values.middleRows(at, stop - at),
              scores.middleRows(at, stop - at), shares, sides, at);
      std::vector<Index> here;
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i] == first + stop) here.push_back(static_cast<Index>(i));
      }
      evaluate(here);
      at = stop;
    }
  }

 private:
  [[nodiscard]] Sides sides_of(Index first, Index count) const {
    Sides out;
    for (Index l = first; l < first + count; ++l) {
      out.fitted.push_back(is_fitted(l) ? 1 : 0);
      out.sampled.push_back(l % stride_ == 0 ? 1 : 0);
    }
    return out;
  }

  [[nodiscard]] std::vector<Index> places_of(const SurrogateModel& model, const Sides& sides,
                                             Index from, Index count) const {
    return sides.places(from, count, model.split ? std::optional(true) : std::nullopt,
                        model.fit.has_value());
  }

  // Responsibilities [rows,k]; those of keys that the model does not take are not looked at and stay 0.
  [[nodiscard]] Matrix share(const SurrogateModel& model, const Matrix& keys,
                             const Sides& sides) const {
    if (!model.fit) return Matrix::Ones(keys.rows(), 1);
    const std::vector<Index> places = places_of(model, sides, 0, keys.rows());
    const Matrix taken = responsibilities(*model.fit, rows_at(keys, places));
    Matrix out = Matrix::Zero(keys.rows(), model.k);
    for (std::size_t i = 0; i < places.size(); ++i) {
      out.row(places[i]) = taken.row(static_cast<Index>(i));
    }
    return out;
  }

  // Keys that start at key number `first`, all inside or all outside every prompt.
  void advance(Index first, const Matrix& keys, const Matrix& values, const Matrix& scores,
               const std::vector<Matrix>& shares, const Sides& sides, Index share_row) {
    std::vector<Index> active;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i] >= first + keys.rows()) active.push_back(static_cast<Index>(i));
    }
    all_.add(scores, values, active, first);
    const std::vector<Index> unseen = sides.places(share_row, keys.rows(), false, false);
    unseen_.add(rows_at(scores, unseen), rows_at(values, unseen), active, first);
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const Matrix share = shares[m].middleRows(share_row, keys.rows());
      const std::vector<Index> places = places_of(models_[m], sides, share_row, keys.rows());
      if (!models_[m].fit) {
        models_[m].moments.add(models_[m].split ? rows_at(keys, places) : keys,
                               models_[m].split ? rows_at(values, places) : values);
      } else if (static_cast<Index>(places.size()) == keys.rows()) {
        models_[m].moments.add(keys, values, share);
      } else {
        models_[m].moments.add(rows_at(keys, places), rows_at(values, places),
                               rows_at(share, places));
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
  Index stride_ = 1;  // of the keys that mixtures take
  PromptTruth all_;
  PromptTruth unseen_;
  std::vector<PromptResult> results_;
};

}  // namespace

Index mixture_stride(Index n, Index mixture_keys) {
  return std::max<Index>(1, (n + mixture_keys - 1) / mixture_keys);
}

bool is_fitted(Index key) { return Stream(0x5eed).rademacher(static_cast<std::uint64_t>(key)) > 0; }

std::vector<SurrogateModel> fit_models(const Head& head, const HeadOptions& options,
                                       const std::vector<bool>& splits) {
  std::vector<SurrogateModel> models;
  std::vector<Matrix> keys;        // one per split
  std::vector<std::size_t> which;  // the keys of each model
  const std::vector<Index> spaced = spaced_places(head.n, options.fit_keys, false);
  const Matrix all = rows_of(head.K, spaced, head.n, head.dk);
  const Vector origin_k = mean_row(all);
  const Vector origin_v = mean_row(rows_of(head.V, spaced, head.n, head.dv));
  for (const bool split : splits) {
    keys.push_back(
        split ? rows_of(head.K, spaced_places(head.n, options.fit_keys, true), head.n, head.dk)
              : all);
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
                                      std::vector<SurrogateModel>& models, Index mixture_keys) {
  Walk walk(head, queries, models, mixture_keys);
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
