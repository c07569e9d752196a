#include "esscher/base/scratch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <new>

namespace esscher {
namespace {

struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

// The blocks of a thread that nobody uses now. There are few sizes, so a fixed number of places
// serves.
struct Spares {
  std::array<Block, 8> blocks;

  Spares() = default;
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;
  ~Spares() {
    for (const Block& block : blocks) std::free(block.memory);
  }

  // The smallest block of at least this size, or none.
  Block take(std::size_t bytes) {
    Block* best = nullptr;
    for (Block& block : blocks) {
      if (block.bytes >= bytes && (best == nullptr || block.bytes < best->bytes)) best = &block;
    }
    return best == nullptr ? Block{} : std::exchange(*best, Block{});
  }

  // Keeps a block in the place of the smallest one, and returns what has to be freed.
  Block keep(Block block) {
    Block& least =
        *std::min_element(blocks.begin(), blocks.end(),
                          [](const Block& a, const Block& b) { return a.bytes < b.bytes; });
    if (block.bytes > least.bytes) std::swap(block, least);
    return block;
  }
};

Spares& spares() {
  thread_local Spares own;
  return own;
}

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes == 0) return;
  const Block spare = spares().take(bytes);
  if (spare.memory != nullptr) {
    memory_ = spare.memory;
    bytes_ = spare.bytes;
    return;
  }
  bytes_ = std::max(kAlignment, std::bit_ceil(bytes));
  memory_ = std::aligned_alloc(kAlignment, bytes_);
  if (memory_ == nullptr) throw std::bad_alloc();
}

Scratch::~Scratch() {
  if (memory_ == nullptr) return;
  std::free(bytes_ <= kMostKept ? spares().keep({memory_, bytes_}).memory : memory_);
}

}  // namespace esscher
