// Files in every layout say the same, and say the rules of their heads.
#include "esscher/heads/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>

#include "esscher/base/error.h"
#include "esscher/heads/load.h"
#include "esscher/io/npy.h"
#include "esscher/io/safetensors.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::HasSubstr;

constexpr double kHidden = -std::numeric_limits<double>::infinity();

class Layouts : public ::testing::Test {
 protected:
  static constexpr Index kB = 2, kH = 4, kG = 2, kN = 6, kD = 3;

  // Number (b,h,n,d) of a tensor, stored in the order of the letters of `layout`.
  static Array stored(const std::string& layout, Index heads, double start, DType dtype) {
    std::map<char, Index> extent = {{'b', kB}, {'h', heads}, {'n', kN}, {'d', kD}};
    std::vector<std::int64_t> shape;
    for (const char c : layout) shape.push_back(extent[c]);
    const auto total = static_cast<std::size_t>(kB * heads * kN * kD);
    std::vector<float> values(total);
    for (Index b = 0; b < kB; ++b) {
      for (Index h = 0; h < heads; ++h) {
        for (Index n = 0; n < kN; ++n) {
          for (Index d = 0; d < kD; ++d) {
            std::map<char, Index> at = {{'b', b}, {'h', h}, {'n', n}, {'d', d}};
            Index place = 0;
            for (const char c : layout) place = place * extent[c] + at[c];
            values[static_cast<std::size_t>(place)] = static_cast<float>(
                start + static_cast<double>(((b * heads + h) * kN + n) * kD + d));
          }
        }
      }
    }
    Array out = array_of(values, shape);
    if (dtype == DType::bf16) {  // the upper halves of the floats
      auto bytes = std::make_shared<std::vector<std::byte>>();
      for (std::size_t i = 0; i < total; ++i) {
        bytes->push_back(out.data[4 * i + 2]);
        bytes->push_back(out.data[4 * i + 3]);
      }
      out.dtype = DType::bf16;
      out.data = *bytes;
      out.owner = bytes;
    }
    return out;
  }

  static std::filesystem::path file(const std::string& layout, DType dtype, bool named) {
    const auto path = std::filesystem::path(::testing::TempDir()) /
                      (layout + std::string(name(dtype)) + (named ? "n" : "u") + ".safetensors");
    const std::map<std::string, Array> tensors = {{"x.Q", stored(layout, kH, 1, dtype)},
                                                  {"x.K", stored(layout, kG, 2, dtype)},
                                                  {"x.V", stored(layout, kG, 3, dtype)}};
    write_file(path,
               encode_safetensors(tensors, named ? Metadata{{"layout", layout}} : Metadata{}));
    return path;
  }
};

TEST_F(Layouts, BatchesHeadsAndGroupsComeOutTheSame) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const char* layout : {"bhnd", "bnhd"}) {
      const std::vector<Head> heads = load_heads(file(layout, dtype, true));
      ASSERT_EQ(heads.size(), 8u);
      EXPECT_EQ(heads[5].name, "x.1.1");
      for (Index b = 0; b < kB; ++b) {
        for (Index h = 0; h < kH; ++h) {
          const Head& head = heads[static_cast<std::size_t>(b * kH + h)];
          ASSERT_EQ(head.n, kN);
          ASSERT_EQ(head.dk, kD);
          for (Index n = 0; n < kN; ++n) {
            const double q = 1.0 + static_cast<double>(((b * kH + h) * kN + n) * kD + 2);
            const double k = 2.0 + static_cast<double>(((b * kG + h / 2) * kN + n) * kD + 2);
            EXPECT_EQ(head.Q(n, 1)(0, 2), q) << layout;
            EXPECT_EQ(head.K(n, 1)(0, 2), k) << layout;
          }
        }
      }
    }
  }
}

TEST_F(Layouts, FourDimensionsAreNeverGuessed) {
  const auto path = file("bnhd", DType::f32, false);
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.Q: shape [2,6,4,3], expected a named layout: bhnd for [b,h,n,d], "
                        "bnhd for [b,n,h,d]"));
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::bnhd}).size(), 8u);
  // Read the other way round, there are more queries than keys.
  EXPECT_THAT(
      testing::message_of<FileError>(
          [&] { return load_heads(path, {.causal = true, .layout = HeadLayout::bhnd}); }),
      HasSubstr("Q [2,6,4,3], K [2,6,2,3], V [2,6,2,3] in the layout bhnd: 4 queries of a causal "
                "head, expected at most its 2 keys"));
  EXPECT_THAT(
      testing::message_of<FileError>([&] { return load_heads(path, {.layout = HeadLayout::hnd}); }),
      HasSubstr("shape [2,6,4,3], expected [n,d] or stacked heads in the layout hnd"));
}

TEST_F(Layouts, MoreHeadsThanTokensMustBeMeant) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "three.safetensors";
  const Array x = array_of(std::vector<float>(60, 1.0f), {10, 2, 3});
  write_file(path, encode_safetensors({{"Q", x}, {"K", x}, {"V", x}}));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("shape [10,2,3], expected a named layout: hnd for 10 heads of 2 tokens, "
                        "nhd for 2 heads of 10 tokens"));
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::nhd}).size(), 2u);
  EXPECT_EQ(load_heads(path, {.layout = HeadLayout::hnd}).size(), 10u);
}

TEST_F(Layouts, RulesComeFromTheFile) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "rules.safetensors";
  const Array x = array_of(std::vector<float>(24, 1.0f), {2, 4, 3});
  Array mask = array_of(std::vector<float>(4, 1.0f), {4});
  const auto flags = std::make_shared<std::vector<std::byte>>(4, std::byte{1});
  (*flags)[3] = std::byte{0};
  mask.dtype = DType::boolean;
  mask.data = *flags;
  mask.owner = flags;
  const std::map<std::string, Array> tensors = {
      {"x.Q", x},
      {"x.K", x},
      {"x.V", x},
      {"x.mask", mask},
      {"x.causal", array_of(std::vector<float>{1.0f}, {1})},
      {"x.sliding", array_of(std::vector<float>{3.0f}, {1})},
      {"x.sink", array_of(std::vector<float>{0.5f, -2.0f}, {2})},
      {"x.softcap", array_of(std::vector<float>{50.0f}, {1})}};
  write_file(path, encode_safetensors(tensors));
  const std::vector<Head> heads = load_heads(path);
  EXPECT_EQ(heads[1].rules.window, 3);
  EXPECT_EQ(heads[1].rules.sink, -2.0);
  EXPECT_EQ(heads[0].rules.softcap, 50.0);
  EXPECT_EQ(heads[0].rules.bias(2)(3), kHidden);
  EXPECT_EQ(heads[0].rules.bias(2)(0), 0.0);
  auto rows = tensors;
  rows["x.mask"] = array_of(std::vector<float>(20, 0.0f), {5, 4});
  write_file(path, encode_safetensors(rows));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.0.mask: shape [5,4], expected 1 or 4 queries"));
  auto wrong = tensors;
  wrong["x.mask"] = array_of(std::vector<float>(15, 0.0f), {5, 3});
  write_file(path, encode_safetensors(wrong));
  EXPECT_THAT(testing::message_of<FileError>([&] { return load_heads(path); }),
              HasSubstr("head x.0.mask: shape [5,3], expected the 4 keys last"));
}

}  // namespace
}  // namespace esscher
