// A reduction whose shape depends on the number of parts only.
//
// Parts are pushed in order, whichever thread computed them. Two neighbouring subtrees of 2^k parts
// are merged as soon as both are there, as a binary counter carries. The tree, and hence every bit
// of the result, is therefore the same for any thread count, chunk size or machine. Its depth is
// log2(parts), so rounding errors grow like the logarithm of the number of parts. It keeps one
// value per level.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace esscher::simd {

// Merge: void(T& left, const T& right), left becomes the merge of both.
template <class T, class Merge>
class TreeFold {
 public:
  explicit TreeFold(T neutral, Merge merge = Merge())
      : neutral_(std::move(neutral)), merge_(std::move(merge)) {}

  void push(T part) {
    for (std::uint64_t carry = count_; carry & 1; carry >>= 1) {
      merge_(levels_.back(), part);
      part = std::move(levels_.back());
      levels_.pop_back();
    }
    levels_.push_back(std::move(part));
    ++count_;
  }

  // The merge of everything pushed so far; neutral if nothing was.
  T total() const {
    if (levels_.empty()) return neutral_;
    T result = levels_.back();
    for (auto level = levels_.rbegin() + 1; level != levels_.rend(); ++level) {
      T left = *level;
      merge_(left, result);
      result = std::move(left);
    }
    return result;
  }

  std::uint64_t count() const { return count_; }

 private:
  T neutral_;
  Merge merge_;
  std::vector<T> levels_;  // subtrees of decreasing size, oldest first
  std::uint64_t count_ = 0;
};

}  // namespace esscher::simd
