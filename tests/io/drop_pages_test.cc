#include "esscher/io/drop_pages.h"

#include <gtest/gtest.h>

#include <string>

namespace esscher {
namespace {

TEST(DropPages, ContentComesBackFromTheFileAndOtherMemoryStays) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "drop_pages.bin";
  std::string text(1 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 / 7);
  write_text(path, text);
  const MappedFile file(path);
  ASSERT_EQ(as_text(file.bytes()), text);  // every page is resident now
  drop_pages(file, file.bytes().subspan(100, 900'000));
  EXPECT_EQ(as_text(file.bytes()), text);
  drop_pages(file, {});
  std::string heap = text;
  drop_pages(file, as_bytes(heap));
  EXPECT_EQ(heap, text);
}

}  // namespace
}  // namespace esscher
