#include "esscher/random/stream.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

namespace esscher {
namespace {

TEST(Stream, BlocksAreRandom123Philox4x32Rounds10) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 0xFFFFFFFFFFFFFFFFULL, 0x0123456789ABCDEFULL}) {
    for (const std::uint64_t index : {0ULL, 1ULL, 0xFFFFFFFFULL, 0x100000000ULL}) {
      const std::uint64_t id = 0x9E3779B97F4A7C15ULL * (seed + 1);
      const r123::Philox4x32_R<10>::ctr_type counter = {
          {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
           static_cast<std::uint32_t>(id), static_cast<std::uint32_t>(id >> 32)}};
      const r123::Philox4x32_R<10>::key_type key = {
          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
      const auto want = r123::Philox4x32_R<10>()(counter, key);
      const Stream::Block got = Stream(seed, id).block(index);
      for (int word = 0; word < 4; ++word) EXPECT_EQ(got[word], want[word]);
    }
  }
}

}  // namespace
}  // namespace esscher
