#include "esscher/tilt/many.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/simd/tree.h"
#include "esscher/tilt/detail/leaf.h"
#include "esscher/tilt/detail/tokens.h"

namespace esscher {
namespace {

using detail::kQueryBlock;
using detail::LeafSums;
using detail::LeafTask;
using detail::ManySums;
using detail::ManyTask;

// The number of prompts in one piece of parallel work.
constexpr Index kPromptsPerTask = 8;

// The number of pairs of a block of queries and a leaf that are computed at once. It bounds the
// memory of their sums.
constexpr Index kWave = 1024;

struct MergeManySums {
  void operator()(ManySums& left, const ManySums& right) const {
    for (Index q = 0; q < left.norm.size(); ++q) {
      if (right.norm[q] == 0) continue;
      const double max = left.norm[q] == 0 ? right.max[q] : std::max(left.max[q], right.max[q]);
      const double a = left.norm[q] == 0 ? 0 : std::exp(left.max[q] - max);
      const double b = std::exp(right.max[q] - max);
      if (left.product.size() > 0) merge_products(left, right, q, a, b);
      left.norm[q] = a * left.norm[q] + b * right.norm[q];
      left.sum.row(q) = a * left.sum.row(q) + b * right.sum.row(q);
      left.max[q] = max;
    }
  }

  // The covariance of the union has a term for the gap between the means of its parts.
  static void merge_products(ManySums& left, const ManySums& right, Index q, double a, double b) {
    left.product.row(q) = a * left.product.row(q) + b * right.product.row(q);
    if (left.norm[q] != 0) {
      const double n1 = a * left.norm[q], n2 = b * right.norm[q];
      const double gap = left.t_sum[q] / left.norm[q] - right.t_sum[q] / right.norm[q];
      left.product.row(q) += n1 * n2 / (n1 + n2) * gap *
                             (left.sum.row(q) / left.norm[q] - right.sum.row(q) / right.norm[q]);
    }
    left.t_sum[q] = a * left.t_sum[q] + b * right.t_sum[q];
  }
};

ManySums neutral(Index q, Index dv, bool product) {
  return {Vector::Constant(q, -std::numeric_limits<double>::infinity()), Vector::Zero(q),
          Vector::Zero(q), Matrix::Zero(q, dv), product ? Matrix(Matrix::Zero(q, dv)) : Matrix()};
}

void check_weight(const char* where, double norm) {
  if (norm == 0) throw DomainError(std::string(where) + ": no token with a positive weight");
}

// The sums of `task` over queries [q0, q0 + q) and the leaf of tokens that starts at `first`.
template <class T>
ManySums leaf_sums(ManyTask<T> task, Index q0, Index q, Index first) {
  ManySums sums = neutral(q, task.values.d, task.r.n > 0);
  const Index n = std::min(kTiltLeaf, task.keys.n - first);
  task.visible += q0 - first;
  if (task.visible + q <= 1) return sums;  // the last query sees visible + q - 1 tokens
  task.queries = task.queries.slice(q0, q);
  if (task.r.n > 0) task.r = task.r.slice(q0, q);
  task.keys = task.keys.slice(first, n);
  task.values = task.values.slice(first, n);
  if (task.bias != nullptr) task.bias += first;
  run_many(task, sums);
  return sums;
}

// Blocks of queries and leaves of tokens are computed in any order, and each block is merged in the
// order of its leaves.
template <class T>
TiltRows run_blocks(const char* where, const ManyTask<T>& task) {
  const bool product = task.r.n > 0;
  const Index queries = task.queries.n, dv = task.values.d;
  TiltRows result{Matrix(queries, dv), Matrix(product ? queries : 0, product ? dv : 0),
                  Vector(queries)};
  const Index leaves = (task.keys.n + kTiltLeaf - 1) / kTiltLeaf;
  const Index blocks = (queries + kQueryBlock - 1) / kQueryBlock;
  const auto size = [&](Index block) {
    return std::min(kQueryBlock, queries - block * kQueryBlock);
  };
  std::vector<ManySums> parts;
  std::optional<simd::TreeFold<ManySums, MergeManySums>> fold;
  const auto finish = [&](Index block) {
    const ManySums total = fold->total();
    for (Index i = 0; i < size(block); ++i) {
      const Index row = block * kQueryBlock + i;
      check_weight(where, total.norm[i]);
      result.mean.row(row) = total.sum.row(i) / total.norm[i];
      if (product) result.product.row(row) = total.product.row(i) / total.norm[i];
      result.log_sum_exp[row] = total.max[i] + std::log(total.norm[i]);
    }
  };
  if (leaves == 0 && queries > 0) check_weight(where, 0);
  for (Index start = 0; start < blocks * leaves; start += kWave) {
    const Index count = std::min(kWave, blocks * leaves - start);
    parts.resize(static_cast<std::size_t>(count));
    parallel_for(count, [&](std::int64_t i) {
      const Index block = (start + i) / leaves, leaf = (start + i) % leaves;
      parts[static_cast<std::size_t>(i)] =
          leaf_sums(task, block * kQueryBlock, size(block), leaf * kTiltLeaf);
    });
    for (Index i = 0; i < count; ++i) {
      const Index block = (start + i) / leaves, leaf = (start + i) % leaves;
      if (leaf == 0) fold.emplace(neutral(size(block), dv, product));
      fold->push(std::move(parts[static_cast<std::size_t>(i)]));
      if (leaf == leaves - 1) finish(block);
    }
  }
  return result;
}

template <class T>
ManyTask<T> make_task(const char* where, const Rows<T>& queries, const Rows<T>& keys,
                      const Rows<T>& values, std::span<const T> log_weights) {
  check_dimension(where, "queries.d", queries.d, keys.d);
  ManyTask<T> task;
  task.queries = queries;
  detail::set_tokens(where, task, keys, values, log_weights);
  return task;
}

}  // namespace

template <class T>
TiltRows tilt_many(const Rows<T>& queries, const Rows<T>& keys, const Rows<T>& values,
                   std::span<const T> log_weights) {
  return run_blocks("tilt_many", make_task("tilt_many", queries, keys, values, log_weights));
}

template <class T>
TiltRows tilt_causal(const Rows<T>& queries, const Rows<T>& keys, const Rows<T>& values) {
  if (queries.n > keys.n) {
    throw_argument("tilt_causal", "queries.n", std::to_string(queries.n),
                   "at most the number of tokens, " + std::to_string(keys.n));
  }
  ManyTask<T> task = make_task<T>("tilt_causal", queries, keys, values, {});
  task.visible = keys.n - queries.n + 1;
  return run_blocks("tilt_causal", task);
}

template <class T>
TiltRows tilt_many_product(const Rows<T>& queries, const Rows<T>& r, const Rows<T>& tokens,
                           std::span<const T> log_weights) {
  constexpr const char* where = "tilt_many_product";
  check_dimension(where, "r.n", r.n, queries.n);
  check_dimension(where, "r.d", r.d, tokens.d);
  ManyTask<T> task = make_task(where, queries, tokens, tokens, log_weights);
  task.r = r;
  return run_blocks(where, task);
}

template <class T>
TiltRows tilt_batch(const Rows<T>& queries, const Rows<T>& r, const Rows<T>& tokens, Index length) {
  const Index d = tokens.d, prompts = queries.n;
  check_dimension("tilt_batch", "queries.d", queries.d, d);
  check_dimension("tilt_batch", "tokens.n", tokens.n, prompts * length);
  const bool with_product = r.n > 0;
  if (with_product) {
    check_dimension("tilt_batch", "r.n", r.n, prompts);
    check_dimension("tilt_batch", "r.d", r.d, d);
  }
  TiltRows result{Matrix(prompts, d), Matrix(with_product ? prompts : 0, with_product ? d : 0),
                  Vector(prompts)};
  const auto one = [&](Index p) {
    const std::span<const T> a(queries.data + p * queries.stride, static_cast<std::size_t>(d));
    const Rows<T> prompt = tokens.slice(p * length, length);
    const T* r_p = with_product ? r.data + p * r.stride : nullptr;
    double* product = with_product ? result.product.row(p).data() : nullptr;
    LeafSums sums{0, 0, 0, result.mean.row(p).data(), product, nullptr};
    if (length > 0 && length <= kTiltLeaf) {
      // The sums go straight into the result, because a short prompt costs less than allocating a
      // TiltState.
      run_leaf(LeafTask<T>{a.data(), r_p, prompt, prompt, nullptr, true, false}, sums);
    } else {
      const std::span<const T> r_span(r_p, with_product ? static_cast<std::size_t>(d) : 0);
      const TiltState state =
          with_product ? tilt_product<T>(a, r_span, prompt, prompt) : tilt<T>(a, prompt, prompt);
      sums.max = state.max;
      sums.norm = state.norm;
      result.mean.row(p) = state.sum;
      if (with_product) result.product.row(p) = state.product;
    }
    check_weight("tilt_batch", sums.norm);
    result.mean.row(p) /= sums.norm;
    if (with_product) result.product.row(p) /= sums.norm;
    result.log_sum_exp[p] = sums.max + std::log(sums.norm);
  };
  parallel_for((prompts + kPromptsPerTask - 1) / kPromptsPerTask, [&](std::int64_t task) {
    const Index end = std::min<Index>(prompts, (task + 1) * kPromptsPerTask);
    for (Index p = task * kPromptsPerTask; p < end; ++p) one(p);
  });
  return result;
}

#define ESSCHER_INSTANTIATE(T)                                                                     \
  template TiltRows tilt_many(const Rows<T>&, const Rows<T>&, const Rows<T>&, std::span<const T>); \
  template TiltRows tilt_causal(const Rows<T>&, const Rows<T>&, const Rows<T>&);                   \
  template TiltRows tilt_many_product(const Rows<T>&, const Rows<T>&, const Rows<T>&,              \
                                      std::span<const T>);                                         \
  template TiltRows tilt_batch(const Rows<T>&, const Rows<T>&, const Rows<T>&, Index);
ESSCHER_INSTANTIATE(float)
ESSCHER_INSTANTIATE(double)
#undef ESSCHER_INSTANTIATE

}  // namespace esscher
