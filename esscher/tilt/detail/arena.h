// Parts of one aligned block of T, handed out in order. The caller computes the size of the block
// beforehand; a formula that is too small is found by the assertion in every build without NDEBUG.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace esscher::detail {

template <class T>
class Arena {
 public:
  Arena(T* block, std::size_t size) : block_(block), size_(size) {}

  T* take(std::size_t n) {
    T* part = block_ + used_;
    used_ += n;
    assert(used_ <= size_);
    return part;
  }

  T* take_zero(std::size_t n) {
    T* part = take(n);
    std::fill_n(part, n, T(0));
    return part;
  }

  // The next part begins at a multiple of n.
  void align(std::size_t n) { used_ = (used_ + n - 1) / n * n; }

 private:
  T* block_;
  [[maybe_unused]] std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace esscher::detail
