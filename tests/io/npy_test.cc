#include "esscher/io/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "esscher/io/matrix.h"
#include "tests/io/files.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::data_file;
using testing::file_error;
using ::testing::HasSubstr;
using testing::kA;
using testing::little_endian;

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' +
         little_endian(header.size(), major == 1 ? 2 : 4) + header + data;
}

std::string error_of(const std::string& file) {
  return file_error([&] { (void)to_matrix("t", parse_npy("t", as_bytes(file))); });
}

constexpr const char* kHeader = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";

TEST(Npy, ReadsWhatNumPyWrites) {
  for (const char* name : {"c_f64.npy", "version2.npy", "version3.npy"}) {
    EXPECT_EQ(read_matrix(data_file(name)), kA) << name;
  }
  EXPECT_EQ(read_matrix(data_file("fortran_f32.npy")), Matrix(kA.cast<float>().cast<double>()));
  EXPECT_TRUE(testing::close(read_matrix(data_file("half.npy")), kA, 1e-3));
  EXPECT_EQ(read_matrix(data_file("half.npy"))(1, 2), -6);
  EXPECT_EQ(read_matrix(data_file("int64.npy")),
            (Matrix(2, 2) << 1, 2, -3, 9007199254740992.0).finished());
  EXPECT_EQ(read_matrix(data_file("vector_f32.npy")), (Matrix(5, 1) << 0, 1, 2, 3, 4).finished());
}

TEST(Npy, RefusesTypesWithoutARealNumber) {
  const auto message = [](const char* name) {
    return file_error([&] { (void)read_matrix(data_file(name)); });
  };
  EXPECT_THAT(message("big_endian.npy"), HasSubstr("big-endian"));
  EXPECT_THAT(message("pickled.npy"), HasSubstr("pickled"));
  EXPECT_THAT(message("structured.npy"), HasSubstr("structured"));
  EXPECT_THAT(message("complex.npy"), HasSubstr("'<c16'"));
}

TEST(Npy, RefusesHostileFiles) {
  const std::string good = npy(kHeader, std::string(16, '\0'));
  EXPECT_EQ(error_of(good), "no error");
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_NE(error_of(good.substr(0, n)), "no error") << "cut to " << n;
  }
  EXPECT_THAT(error_of(good + "x"), HasSubstr("needs 16 bytes of data, the file has 17"));
  EXPECT_THAT(error_of("\x93NUMPZ" + good.substr(6)), HasSubstr("magic"));
  EXPECT_THAT(error_of(npy(kHeader, std::string(16, '\0'), 9)), HasSubstr("version 9"));
  std::string long_header = npy(kHeader, std::string(16, '\0'), 2);
  long_header.replace(8, 4, little_endian(0xFFFFFFFF, 4));
  EXPECT_THAT(error_of(long_header), HasSubstr("header length is 4294967295"));
}

TEST(Npy, RefusesHugeShapesWithoutAllocating) {
  for (const char* shape :
       {"(9223372036854775807, 2)", "(4611686018427387904, 4611686018427387904)",
        "(18446744073709551616,)", "(-1, 2)", "(1000000000000,)", "(0, 4611686018427387904)"}) {
    const std::string header =
        "{'descr': '<f8', 'fortran_order': False, 'shape': " + std::string(shape) + ", }";
    EXPECT_NE(error_of(npy(header, "")), "no error") << shape;
  }
  // (2^61 + 1) * 8 bytes is 8 modulo 2^64: exactly the data that is there.
  EXPECT_NE(error_of(npy("{'descr': '<f8', 'fortran_order': False, 'shape': "
                         "(2305843009213693953,), }",
                         std::string(8, '\0'))),
            "no error");
}

TEST(Npy, RefusesMalformedHeaders) {
  for (const char* header :
       {"", "{", "{}", "{'descr': '<f8'}", "{'descr': '<f8', 'descr': '<f8', 'shape': ()}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), 'x': 1}",
        "{'descr': '<f8', 'fortran_order': Fals, 'shape': (1, 2)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2)} x",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f8, 'fortran_order': False, 'shape': (1, 2)}"}) {
    EXPECT_NE(error_of(npy(header, std::string(16, '\0'))), "no error") << header;
  }
}

TEST(Npy, NamesThePositionOfWhatIsNotFinite) {
  const auto with = [](double x) {
    std::string data(16, '\0');
    std::memcpy(data.data() + 8, &x, 8);
    return error_of(npy(kHeader, data));
  };
  EXPECT_EQ(with(std::nan("")), "t: row 0, column 1 (from 0) is nan, expected a finite number");
  EXPECT_THAT(with(-std::numeric_limits<double>::infinity()), HasSubstr("is -inf"));
}

TEST(Npy, WritesWhatItReads) {
  const testing::TemporaryFolder folder;
  write_npy(folder.file("a.npy"), kA);
  EXPECT_EQ(read_matrix(folder.file("a.npy")), kA);
  EXPECT_EQ(encode_npy(array_of(kA)).size() % 64, 48U % 64);  // 128 of header, 48 of data
  Array bf16;
  bf16.dtype = DType::bf16;
  EXPECT_THROW((void)encode_npy(bf16), CapabilityError);
}

TEST(Npy, ReaderGivesAnyRows) {
  const NpyReader c(data_file("c_f64.npy"));
  const NpyReader fortran(data_file("fortran_f32.npy"));
  ASSERT_EQ(c.rows(), 2);
  ASSERT_EQ(c.cols(), 3);
  EXPECT_EQ(c.read(1, 1), Matrix(kA.bottomRows(1)));
  EXPECT_EQ(c.read(2, 0).rows(), 0);
  EXPECT_EQ(fortran.read(1, 1), Matrix(kA.bottomRows(1).cast<float>().cast<double>()));
  EXPECT_THROW((void)c.read(1, 2), ArgumentError);
  EXPECT_THROW((void)c.read(-1, 1), ArgumentError);
  EXPECT_THROW((void)c.read(0, std::numeric_limits<Index>::max()), ArgumentError);
  EXPECT_TRUE(c.floats().empty());
  EXPECT_TRUE(fortran.floats().empty());
  const NpyReader vector(data_file("vector_f32.npy"));
  ASSERT_EQ(vector.floats().size(), 5U);
  EXPECT_EQ(vector.floats()[4], 4.0F);
}

TEST(Half, KnowsEveryKindOfNumber) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0F);
  EXPECT_EQ(half_to_float(0xC000), -2.0F);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(half_to_float(0x0400), std::ldexp(1.0F, -14));
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_TRUE(std::isinf(half_to_float(0x7C00)));
  EXPECT_TRUE(std::isnan(half_to_float(0x7C01)));
}

TEST(File, ErrorsNameTheFile) {
  EXPECT_THAT(file_error([] { (void)read_matrix("no-such.npy"); }), HasSubstr("no-such.npy"));
  EXPECT_THAT(file_error([] { (void)read_matrix("."); }), HasSubstr("unknown kind"));
  EXPECT_THAT(file_error([] { (void)read_text(std::filesystem::temp_directory_path()); }),
              HasSubstr("regular file"));
  EXPECT_THAT(file_error([] { write_text("no-such-folder/x", "y"); }), HasSubstr("no-such-folder"));
}

TEST(File, WritingReplacesInOneStep) {
  const testing::TemporaryFolder folder;
  write_text(folder.file("x"), "old");
  write_text(folder.file("x"), "new");
  EXPECT_EQ(read_text(folder.file("x")), "new");
  const auto files = std::filesystem::directory_iterator(folder.file("x").parent_path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace
}  // namespace esscher
