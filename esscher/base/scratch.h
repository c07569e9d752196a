// Memory for work that a thread does again and again. A block that is given back stays with its
// thread and serves the next one who asks. The heap would return blocks of this size to the system,
// and their pages would have to be filled with zeros again: at eight heads in 20 dimensions that
// can take as long as the rest of a training step.
#pragma once

#include <cstddef>
#include <utility>

namespace esscher {

class Scratch {
 public:
  static constexpr std::size_t kAlignment = 128;                  // of every vector register
  static constexpr std::size_t kMostKept = std::size_t{1} << 23;  // larger blocks are freed

  Scratch() = default;
  // At least this many bytes, with any content.
  explicit Scratch(std::size_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace esscher
