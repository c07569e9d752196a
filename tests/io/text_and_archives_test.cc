// .csv, .safetensors and .npz: what is read, and what is refused with which message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "esscher/io/csv.h"
#include "esscher/io/matrix.h"
#include "esscher/io/npy.h"
#include "esscher/io/npz.h"
#include "esscher/io/safetensors.h"
#include "tests/io/files.h"

namespace esscher {
namespace {

using testing::data_file;
using testing::file_error;
using ::testing::HasSubstr;
using testing::kA;
using testing::little_endian;

Matrix csv(const std::string& text) { return parse_csv("t.csv", as_bytes(text)); }
std::string csv_error(const std::string& text) {
  return file_error([&] { (void)csv(text); });
}

TEST(Csv, ReadsCommonSpellings) {
  for (const char* text :
       {"1.5,-2.25,3\n4,5e-3,-6\n", "x,y,z\n1.5,-2.25,3\n4,5e-3,-6",
        "# c\n\n1.5;-2.25;3\r\n4;5e-3;-6\r\n", "1.5\t-2.25\t3\n4\t5e-3\t-6\n",
        "  1.5   -2.25 +3 \n4 0.005 -6\n",
        "\xEF\xBB\xBF\"x\",\"y\",\"z\"\n \"1.5\" , -2.25, 3.0 \n#\n4, .005, -6e0\n"}) {
    EXPECT_EQ(csv(text), kA) << text;
  }
  EXPECT_EQ(csv("1\n2\n"), (Matrix(2, 1) << 1, 2).finished());
}

TEST(Csv, NamesLineAndColumn) {
  EXPECT_EQ(csv_error("1,2\n# c\n3\n"), "t.csv:3: has 1 fields, expected 2 as in the first row");
  EXPECT_EQ(csv_error("1,2\n3,x\n"), "t.csv:2: column 2 is \"x\", expected a finite number");
  EXPECT_EQ(csv_error("a,b\n3,\n"), "t.csv:2: column 2 is \"\", expected a finite number");
  EXPECT_EQ(csv_error("a,b\nc,d\n"), "t.csv:2: column 1 is \"c\", expected a finite number");
  EXPECT_EQ(csv_error("1,x\n"), "t.csv:1: column 2 is \"x\", expected a finite number");
  for (const char* bad : {"nan", "inf", "-inf", "1e999", "0x10", "1,5;2", "+-1", "1 2"}) {
    EXPECT_THAT(csv_error("1;2\n" + std::string(bad) + ";2\n"), HasSubstr("t.csv:2: ")) << bad;
  }
  EXPECT_THAT(csv_error("nan,nan\n1,2\n"), HasSubstr("t.csv:1: column 1"));
  for (const char* empty : {"", "\n\n", "# only\n", "a,b\n"}) {
    EXPECT_EQ(csv_error(empty), "t.csv: has no numbers") << empty;
  }
}

TEST(Csv, WritesWhatItReads) { EXPECT_EQ(csv(encode_csv(kA / 3)), Matrix(kA / 3)); }

std::string safetensors(const std::string& header, const std::string& data) {
  return little_endian(header.size(), 8) + header + data;
}

std::string tensors_error(const std::string& file) {
  return file_error([&] { (void)parse_safetensors("t", as_bytes(file)); });
}

TEST(Safetensors, ReadsEveryType) {
  const std::string file = safetensors(
      R"({"__metadata__":{"by":"me"},"h":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]},)"
      R"("u":{"dtype":"U8","shape":[],"data_offsets":[6,7]},)"
      R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[7,7]}})",
      std::string("\x00\xC0\x80\x3F\x00\xC0\x07", 7));
  const Safetensors read = parse_safetensors("t", as_bytes(file));
  EXPECT_EQ(read.metadata.at("by"), "me");
  EXPECT_EQ(read.tensors.at("h").at(0), -2);
  EXPECT_EQ(to_matrix("t", read.tensors.at("b")), (Matrix(2, 1) << 1, -2).finished());
  EXPECT_EQ(to_matrix("t", read.tensors.at("u")), Matrix::Constant(1, 1, 7));
  EXPECT_THROW((void)to_matrix("t", read.tensors.at("e")), FileError);
}

TEST(Safetensors, RefusesHostileFiles) {
  const auto one = [](const std::string& entry, const std::string& data) {
    return tensors_error(safetensors("{\"x\":" + entry + "}", data));
  };
  const std::string four(4, '\0');
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", four), "no error");
  for (const std::uint64_t length : {std::uint64_t{1} << 63, UINT64_MAX, std::uint64_t{3}}) {
    EXPECT_THAT(tensors_error(little_endian(length, 8) + "{}"), HasSubstr("header length is"));
  }
  for (int n = 0; n < 8; ++n) EXPECT_NE(tensors_error(std::string(n, '\0')), "no error");
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", four),
              HasSubstr("needs 8 bytes, data_offsets give 4"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", four),
              HasSubstr("data_offsets are [0,8]"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", four),
              HasSubstr("data_offsets are [4,0]"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", four),
              HasSubstr("shape is"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})", four),
              HasSubstr("2^63"));
  EXPECT_THAT(one(R"({"dtype":"F99","shape":[1],"data_offsets":[0,4]})", four), HasSubstr("F99"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", four),
              HasSubstr("shape is"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1]})", four), HasSubstr("data_offsets"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", four + "x"),
              HasSubstr("1 bytes at the end"));
  EXPECT_THAT(one("3", four), HasSubstr("expected exactly"));
  EXPECT_THAT(tensors_error(safetensors("[]", "")), HasSubstr("object"));
  EXPECT_THAT(tensors_error(safetensors(R"({"x":{},"x":{}})", "")), HasSubstr("duplicate key"));
  const std::string two =
      R"({"x":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"y":{"dtype":"U8","shape":[2],)";
  EXPECT_THAT(tensors_error(safetensors(two + R"("data_offsets":[2,4]}})", four)),
              HasSubstr("overlaps"));
  EXPECT_THAT(tensors_error(safetensors(two + R"("data_offsets":[4,6]}})", four + "ab")),
              HasSubstr("hole"));
}

TEST(Safetensors, WritesWhatItReads) {
  const std::map<std::string, Array> tensors{{"a \"q\"", array_of(kA)},
                                             {"f", array_of(std::vector<float>{1, 2}, {2, 1})}};
  const auto bytes = encode_safetensors(tensors, {{"k", "v"}});
  const Safetensors read = parse_safetensors("t", bytes);
  EXPECT_EQ(to_matrix("t", read.tensors.at("a \"q\"")), kA);
  EXPECT_EQ(to_matrix("t", read.tensors.at("f")), (Matrix(2, 1) << 1, 2).finished());
  EXPECT_EQ(read.metadata.at("k"), "v");
  Array fortran = array_of(kA);
  fortran.fortran = true;
  EXPECT_THROW((void)encode_safetensors({{"x", fortran}}), ArgumentError);
}

TEST(Npz, ReadsWhatNumPyWrites) {
  for (const char* name : {"stored.npz#a", "deflated.npz#a"}) {
    EXPECT_EQ(read_matrix(data_file(name)), kA) << name;
  }
  EXPECT_EQ(read_matrix(data_file("deflated.npz#zeros")), Matrix(Matrix::Zero(100, 10)));
  EXPECT_THAT(file_error([] { (void)read_matrix(data_file("stored.npz")); }),
              HasSubstr("the file has: a, b"));
  EXPECT_THAT(file_error([] { (void)read_matrix(data_file("stored.npz#c")); }),
              HasSubstr("no array \"c\""));
}

TEST(Npz, RefusesEveryCutAndFindsEveryFlippedDataByte) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string good = read_text(data_file(name));
    for (std::size_t n = 0; n < good.size(); ++n) {
      const std::string cut = good.substr(0, n);
      EXPECT_NE(file_error([&] { (void)parse_npz("t", as_bytes(cut)); }), "no error") << n;
    }
    for (std::size_t i = 60; i < good.size() / 3; ++i) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
      EXPECT_NE(file_error([&] { (void)parse_npz("t", as_bytes(flipped)); }), "no error") << i;
    }
  }
}

TEST(Npz, RefusesAMemberThatClaimsTooMuch) {
  std::string bomb = read_text(data_file("deflated.npz"));
  const std::size_t entry = bomb.find("PK\x01\x02");
  ASSERT_NE(entry, std::string::npos);
  bomb.replace(entry + 24, 4, little_endian(0xFFFFFFF0, 4));
  EXPECT_THAT(file_error([&] { (void)parse_npz("t", as_bytes(bomb)); }),
              HasSubstr("claims 4294967280 bytes"));
}

TEST(Npz, WritesWhatItReads) {
  const std::map<std::string, Array> arrays{{"a", array_of(kA)},
                                            {"v", vector_array(Vector(kA.row(0)))}};
  const auto bytes = encode_npz(arrays);
  const auto read = parse_npz("t", bytes);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(to_matrix("t", read.at("a")), kA);
  EXPECT_EQ(read.at("v").shape, std::vector<std::int64_t>{3});
  EXPECT_TRUE(parse_npz("t", encode_npz({})).empty());
}

TEST(ReadMatrix, NeedsAKnownExtension) {
  EXPECT_THAT(file_error([] { (void)read_matrix("x.pt"); }), HasSubstr("unknown kind"));
}

}  // namespace
}  // namespace esscher
