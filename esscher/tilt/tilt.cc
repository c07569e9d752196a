#include "esscher/tilt/tilt.h"

#include <algorithm>

#include "esscher/base/parallel.h"
#include "esscher/simd/tree.h"
#include "esscher/tilt/detail/leaf.h"
#include "esscher/tilt/detail/tokens.h"

namespace esscher {
namespace {

using detail::LeafTask;
using TiltFold = simd::TreeFold<TiltState, MergeTiltStates>;

// The number of leaves that are computed at once. It bounds the memory of states on long streams.
constexpr Index kWave = 1024;

template <class T>
LeafTask<T> slice(LeafTask<T> task, Index first, Index n) {
  task.keys = task.keys.slice(first, n);
  task.values = task.values.slice(first, n);
  if (task.bias != nullptr) task.bias += first;
  return task;
}

// Computes the leaves of the task in parallel and pushes them in order.
template <class T>
void push_leaves(const LeafTask<T>& task, TiltFold& fold) {
  const Index n = task.keys.n, leaves = (n + kTiltLeaf - 1) / kTiltLeaf;
  std::vector<TiltState> states;
  for (Index start = 0; start < leaves; start += kWave) {
    const Index count = std::min(kWave, leaves - start);
    states.resize(static_cast<std::size_t>(count));
    parallel_for(count, [&](std::int64_t i) {
      const Index first = (start + i) * kTiltLeaf;
      states[static_cast<std::size_t>(i)] =
          leaf_state(slice(task, first, std::min(kTiltLeaf, n - first)));
    });
    for (TiltState& state : states) fold.push(std::move(state));
  }
}

template <class T>
TiltState run(const LeafTask<T>& task) {
  if (task.keys.n <= kTiltLeaf) return leaf_state(task);
  const Index d = task.of_keys ? task.keys.d : task.values.d;
  TiltFold fold(TiltState::neutral(d, task.r != nullptr, task.second));
  push_leaves(task, fold);
  return fold.total();
}

template <class T>
LeafTask<T> make_task(const char* where, std::span<const T> a, std::span<const T> r,
                      const Rows<T>& keys, const Rows<T>& values, std::span<const T> log_weights) {
  check_dimension(where, "a", static_cast<long>(a.size()), keys.d);
  if (!r.empty()) check_dimension(where, "r", static_cast<long>(r.size()), values.d);
  LeafTask<T> task;
  task.a = a.data();
  task.r = r.empty() ? nullptr : r.data();
  detail::set_tokens(where, task, keys, values, log_weights);
  return task;
}

}  // namespace

template <class T>
TiltState tilt(std::span<const T> a, const Rows<T>& keys, const Rows<T>& values,
               std::span<const T> log_weights) {
  return run(make_task<T>("tilt", a, {}, keys, values, log_weights));
}

template <class T>
TiltState tilt_product(std::span<const T> a, std::span<const T> r, const Rows<T>& keys,
                       const Rows<T>& values, std::span<const T> log_weights) {
  check_dimension("tilt_product", "r", static_cast<long>(r.size()), values.d);
  LeafTask<T> task = make_task<T>("tilt_product", a, r, keys, values, log_weights);
  task.of_keys = true;
  return run(task);
}

template <class T>
TiltState tilt_second(std::span<const T> a, const Rows<T>& tokens, std::span<const T> log_weights) {
  LeafTask<T> task = make_task<T>("tilt_second", a, {}, tokens, tokens, log_weights);
  task.second = true;
  return run(task);
}

template <class T>
Matrix tilt_prefixes(std::span<const T> a, const Rows<T>& keys, const Rows<T>& values,
                     std::span<const Index> lengths, std::span<const T> log_weights) {
  const LeafTask<T> task = make_task<T>("tilt_prefixes", a, {}, keys, values, log_weights);
  // Leaves end at multiples of kTiltLeaf and at the requested lengths.
  std::vector<Index> ends;
  Index at = 0;
  for (const Index length : lengths) {
    if (length <= at || length > keys.n) {
      throw_argument("tilt_prefixes", "lengths", std::to_string(length),
                     "increasing lengths from 1 to " + std::to_string(keys.n));
    }
    for (at = (at / kTiltLeaf + 1) * kTiltLeaf; at < length; at += kTiltLeaf) ends.push_back(at);
    ends.push_back(at = length);
  }
  Matrix means(static_cast<Index>(lengths.size()), values.d);
  TiltFold fold(TiltState::neutral(values.d));
  std::vector<TiltState> states;
  std::size_t next = 0;
  for (std::size_t start = 0; start < ends.size(); start += kWave) {
    const std::size_t count = std::min<std::size_t>(kWave, ends.size() - start);
    states.resize(count);
    parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i) {
      const std::size_t leaf = start + static_cast<std::size_t>(i);
      const Index first = leaf == 0 ? 0 : ends[leaf - 1];
      states[static_cast<std::size_t>(i)] = leaf_state(slice(task, first, ends[leaf] - first));
    });
    for (std::size_t i = 0; i < count; ++i) {
      fold.push(std::move(states[i]));
      if (ends[start + i] != lengths[next]) continue;
      means.row(static_cast<Index>(next++)) = fold.total().mean();
    }
  }
  return means;
}

template <class T>
struct TiltStream<T>::State {
  TiltFold fold;
  bool ended;  // a chunk ended within a leaf, so no other chunk may follow
};

template <class T>
TiltStream<T>::TiltStream(std::vector<T> a, std::vector<T> r) : a_(std::move(a)), r_(std::move(r)) {
  const auto d = static_cast<Index>(a_.size());
  if (!r_.empty()) check_dimension("TiltStream", "r", static_cast<long>(r_.size()), d);
  state_ = std::make_unique<State>(State{TiltFold(TiltState::neutral(d, !r_.empty())), false});
}

template <class T>
TiltStream<T>::~TiltStream() = default;

template <class T>
void TiltStream<T>::push(const Rows<T>& tokens) {
  if (state_->ended) {
    throw_argument("TiltStream::push", "tokens", "a chunk after the last one",
                   "chunks of a multiple of " + std::to_string(kTiltLeaf) + " tokens before it");
  }
  LeafTask<T> task = make_task<T>("TiltStream::push", a_, r_, tokens, tokens, {});
  task.of_keys = true;
  state_->ended = tokens.n % kTiltLeaf != 0;
  push_leaves(task, state_->fold);
}

template <class T>
TiltState TiltStream<T>::total() const {
  return state_->fold.total();
}

#define ESSCHER_INSTANTIATE(T)                                                                     \
  template TiltState tilt(std::span<const T>, const Rows<T>&, const Rows<T>&, std::span<const T>); \
  template TiltState tilt_product(std::span<const T>, std::span<const T>, const Rows<T>&,          \
                                  const Rows<T>&, std::span<const T>);                             \
  template TiltState tilt_second(std::span<const T>, const Rows<T>&, std::span<const T>);          \
  template class TiltStream<T>;                                                                    \
  template Matrix tilt_prefixes(std::span<const T>, const Rows<T>&, const Rows<T>&,                \
                                std::span<const Index>, std::span<const T>);
ESSCHER_INSTANTIATE(float)
ESSCHER_INSTANTIATE(double)
#undef ESSCHER_INSTANTIATE

}  // namespace esscher
