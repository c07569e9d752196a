#include "esscher/base/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace esscher {
namespace {

TEST(Scratch, ABlockThatIsGivenBackServesTheNextOne) {
  const void* first = nullptr;
  {
    const Scratch one(1000);
    first = one.as<char>();
    EXPECT_GE(one.bytes(), 1000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % Scratch::kAlignment, 0U);
  }
  const Scratch two(900);
  EXPECT_EQ(two.as<char>(), first);
  const Scratch three(900);
  EXPECT_NE(three.as<char>(), first);
}

// Blocks in use are apart, of many sizes and on several threads.
TEST(Scratch, BlocksInUseDoNotOverlap) {
  const auto work = [](unsigned char mark) {
    for (std::size_t round = 0; round < 50; ++round) {
      std::vector<Scratch> blocks;
      for (std::size_t i = 0; i < 12; ++i) {
        blocks.emplace_back(1 + (i * 7919 + round * 131) % 5000);
        std::memset(blocks[i].as<char>(), static_cast<int>(mark + i), blocks[i].bytes());
      }
      for (std::size_t i = 0; i < 12; ++i) {
        const auto* bytes = blocks[i].as<unsigned char>();
        for (std::size_t k = 0; k < blocks[i].bytes(); ++k) ASSERT_EQ(bytes[k], mark + i);
      }
    }
  };
  std::thread other(work, static_cast<unsigned char>(100));
  work(1);
  other.join();
}

TEST(Scratch, MovesAndEmptyBlocksAreHarmless) {
  Scratch one(64);
  char* const memory = one.as<char>();
  Scratch two(std::move(one));
  EXPECT_EQ(two.as<char>(), memory);
  Scratch three;
  three = std::move(two);
  EXPECT_EQ(three.as<char>(), memory);
  EXPECT_EQ(Scratch(0).as<char>(), nullptr);
  const Scratch large(2 * Scratch::kMostKept);
  EXPECT_NE(large.as<char>(), nullptr);
}

}  // namespace
}  // namespace esscher
