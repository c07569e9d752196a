#include "esscher/tilt/many.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "esscher/base/parallel.h"
#include "esscher/simd/tree.h"
#include "esscher/tilt/detail/leaf.h"

namespace esscher {
namespace {

using detail::kQueryBlock;
using detail::LeafSums;
using detail::LeafTask;
using detail::ManySums;
using detail::ManyTask;

// The number of prompts in one piece of parallel work.
constexpr Index kPromptsPerTask = 8;

// The number of leaves that tilt_many computes at once.
constexpr Index kWave = 256;

struct MergeManySums {
  void operator()(ManySums& left, const ManySums& right) const {
    for (Index q = 0; q < left.norm.size(); ++q) {
      if (right.norm[q] == 0) continue;
      const double max = left.norm[q] == 0 ? right.max[q] : std::max(left.max[q], right.max[q]);
      const double a = left.norm[q] == 0 ? 0 : std::exp(left.max[q] - max);
      const double b = std::exp(right.max[q] - max);
      left.norm[q] = a * left.norm[q] + b * right.norm[q];
      left.sum.row(q) = a * left.sum.row(q) + b * right.sum.row(q);
      left.max[q] = max;
    }
  }
};

ManySums neutral(Index q, Index dv) {
  return {Vector::Constant(q, -std::numeric_limits<double>::infinity()), Vector::Zero(q),
          Matrix::Zero(q, dv)};
}

void check_weight(const char* where, double norm) {
  if (norm == 0) throw DomainError(std::string(where) + ": no token with a positive weight");
}

}  // namespace

template <class T>
TiltRows tilt_many(const Rows<T>& queries, const Rows<T>& keys, const Rows<T>& values,
                   std::span<const T> log_weights) {
  check_dimension("tilt_many", "queries.d", queries.d, keys.d);
  check_dimension("tilt_many", "values.n", values.n, keys.n);
  if (!log_weights.empty()) {
    check_dimension("tilt_many", "log_weights", static_cast<long>(log_weights.size()), keys.n);
  }
  TiltRows result{Matrix(queries.n, values.d), Matrix(), Vector(queries.n)};
  const Index leaves = (keys.n + kTiltLeaf - 1) / kTiltLeaf;
  for (Index q0 = 0; q0 < queries.n; q0 += kQueryBlock) {
    const Index q = std::min(kQueryBlock, queries.n - q0);
    simd::TreeFold<ManySums, MergeManySums> fold(neutral(q, values.d));
    std::vector<ManySums> parts;
    for (Index start = 0; start < leaves; start += kWave) {
      const Index count = std::min(kWave, leaves - start);
      parts.assign(static_cast<std::size_t>(count), neutral(q, values.d));
      parallel_for(count, [&](std::int64_t i) {
        const Index first = (start + i) * kTiltLeaf, n = std::min(kTiltLeaf, keys.n - first);
        const ManyTask<T> task{queries.slice(q0, q), keys.slice(first, n), values.slice(first, n),
                               log_weights.empty() ? nullptr : log_weights.data() + first};
        run_many(task, parts[static_cast<std::size_t>(i)]);
      });
      for (ManySums& part : parts) fold.push(std::move(part));
    }
    const ManySums total = fold.total();
    for (Index i = 0; i < q; ++i) {
      check_weight("tilt_many", total.norm[i]);
      result.mean.row(q0 + i) = total.sum.row(i) / total.norm[i];
      result.log_sum_exp[q0 + i] = total.max[i] + std::log(total.norm[i]);
    }
  }
  return result;
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
  template TiltRows tilt_batch(const Rows<T>&, const Rows<T>&, const Rows<T>&, Index);
ESSCHER_INSTANTIATE(float)
ESSCHER_INSTANTIATE(double)
#undef ESSCHER_INSTANTIATE

}  // namespace esscher
