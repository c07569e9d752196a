#include "esscher/config/matrix_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/io/npy.h"
#include "tests/io/files.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using ::testing::HasSubstr;
using testing::message_of;

Matrix spec(const std::string& text, Index rows = kAnySize, Index cols = kAnySize) {
  const Config config = Config::parse("m = " + text, "t");
  Matrix out = read_matrix_spec(config.root(), "m", rows, cols);
  config.check_all_used();
  return out;
}

Matrix cov(const std::string& text, Index dim = kAnySize) {
  const Config config = Config::parse("m = " + text, "t");
  Matrix out = read_cov_spec(config.root(), "m", dim);
  config.check_all_used();
  return out;
}

TEST(MatrixSpec, EveryKind) {
  const Matrix I = Matrix::Identity(2, 2);
  EXPECT_EQ(spec("0.5", 2, 2), Matrix(0.5 * I));
  EXPECT_EQ(spec("2", 2), Matrix(2 * I));
  EXPECT_EQ(spec("[[1, 2], [3, 4]]"), (Matrix(2, 2) << 1, 2, 3, 4).finished());
  EXPECT_EQ(spec("{ kind = 'identity', scale = 3 }", 2), Matrix(3 * I));
  EXPECT_EQ(spec("{ kind = 'identity', shape = [1, 2] }"), (Matrix(1, 2) << 1, 0).finished());
  EXPECT_EQ(spec("{ kind = 'diagonal', values = [1, 2] }"),
            (Matrix(2, 2) << 1, 0, 0, 2).finished());
  EXPECT_EQ(spec("{ kind = 'kcm', rho = 0.5 }", 3, 3),
            (Matrix(3, 3) << 1, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 1).finished());
  EXPECT_EQ(spec("{ kind = 'kcm', rho = -0.5 }", 2, 2),
            (Matrix(2, 2) << 1, -0.5, -0.5, 1).finished());
  EXPECT_EQ(spec("{ kind = 'dense', rows = [[1, 2, 3]], scale = -2 }", 1, 3),
            (Matrix(1, 3) << -2, -4, -6).finished());
}

TEST(MatrixSpec, RandomDependsOnTheSeedOnly) {
  const Matrix random = spec("{ kind = 'random', seed = 4 }", 3, 5);
  EXPECT_EQ(random, spec("{ kind = 'random', seed = 4, shape = [3, 5] }"));
  EXPECT_NE(random, spec("{ kind = 'random', seed = 5 }", 3, 5));
  EXPECT_EQ(spec("{ kind = 'random' }", 2, 2), spec("{ kind = 'random', seed = 0 }", 2, 2));
}

TEST(MatrixSpec, OperatorNorm) {
  const Matrix random = spec("{ kind = 'random', seed = 4, operator_norm = 0.22 }", 4, 3);
  EXPECT_TRUE(close(max_eigenvalue(random.transpose() * random), 0.22 * 0.22, 1e-12));
  // The factor cancels, and squares of 1e200 would overflow.
  EXPECT_TRUE(
      close(spec("{ kind = 'diagonal', values = [3, 4], scale = 1e200, operator_norm = 2 }"),
            (Matrix(2, 2) << 1.5, 0, 0, 2).finished(), 1e-15));
  EXPECT_TRUE(close(spec("{ kind = 'identity', scale = 1e-200, operator_norm = 1 }", 2, 2),
                    Matrix::Identity(2, 2), 1e-15));
  EXPECT_EQ(spec("{ kind = 'identity', scale = 0, operator_norm = 0 }", 1, 1), Matrix::Zero(1, 1));
}

TEST(MatrixSpec, FilesAreReadAndSized) {
  const testing::TemporaryFolder folder;
  const Matrix m = (Matrix(2, 2) << 1, 2, 3, 4).finished();
  write_npy(folder.file("m.npy"), m);
  write_text(folder.file("m.csv"), "1,2\n3,4\n");
  for (const char* name : {"m.npy", "m.csv"}) {
    const std::string text =
        "{ kind = 'file', scale = 2, path = '" + folder.file(name).string() + "' }";
    EXPECT_EQ(spec(text, 2, 2), Matrix(2 * m)) << name;
    EXPECT_THAT(message_of<ConfigError>([&] { return spec(text, 3, 3); }),
                HasSubstr("m: shape is [2,2], expected [3,3]"))
        << name;
  }
  EXPECT_THROW((void)spec("{ kind = 'file', path = 'none.npy' }"), FileError);
}

TEST(MatrixSpec, RefusesWithPathAndValue) {
  struct Case {
    const char* spec;
    const char* says;
  };
  for (const Case& bad : {
           Case{"'x'", "t:1: m is \"x\", expected a matrix: a number, rows"},
           Case{"true", "t:1: m is true, expected"},
           Case{"nan", "t:1: m is nan, expected a number"},
           Case{"[[1, inf], [0, 1]]", "t:1: m[0][1] is inf, expected a number"},
           Case{"[[1, 'x'], [0, 1]]", "t:1: m[0][1] is \"x\", expected a number"},
           Case{"[1, 2]", "t:1: m[0] is 1, expected a row of numbers"},
           Case{"[[1, 2], [3]]", "t:1: m[1] is [3], expected 2 numbers as in the first row"},
           Case{"[]", "t:1: m: shape is [0,0], expected [2,2]"},
           Case{"[[]]", "t:1: m: shape is [1,0], expected [2,2]"},
           Case{"[[1, 2]]", "t:1: m: shape is [1,2], expected [2,2]"},
           Case{"{ scale = 2 }", "t:1: m.kind is missing"},
           Case{"{ kind = 'cube' }", "t:1: m.kind is \"cube\", expected one of \"identity\""},
           Case{"{ kind = 3 }", "t:1: m.kind is 3, expected one of"},
           Case{"{ kind = 'kcm' }", "t:1: m.rho is missing"},
           Case{"{ kind = 'kcm', rho = 2.0 }", "t:1: m.rho is 2.0, expected a number in [-1, 1]"},
           Case{"{ kind = 'diagonal', values = [1] }", "t:1: m: shape is [1,1], expected [2,2]"},
           Case{"{ kind = 'diagonal', values = 1 }", "t:1: m.values is 1, expected an array"},
           Case{"{ kind = 'diagonal', values = [], operator_norm = 0 }", "t:1: m: shape is [0,0]"},
           Case{"{ kind = 'identity', shape = [0, 2] }",
                "t:1: m.shape[0] is 0, expected an integer"},
           Case{"{ kind = 'identity', shape = [2] }", "t:1: m.shape is [2], expected [rows, cols]"},
           Case{"{ kind = 'identity', shape = [3, 2] }", "t:1: m: shape is [3,2], expected [2,2]"},
           Case{"{ kind = 'random', shape = [1000000000, 2] }", "t:1: m.shape[0] is 1000000000"},
           Case{"{ kind = 'random', seed = -1 }", "t:1: m.seed is -1, expected an integer >= 0"},
           Case{"{ kind = 'random', seed = 0.5 }", "t:1: m.seed is 0.5, expected an integer"},
           Case{"{ kind = 'identity', scale = 'x' }", "t:1: m.scale is \"x\", expected a number"},
           Case{"{ kind = 'identity', operator_norm = -1 }",
                "t:1: m.operator_norm is -1, expected a number >= 0"},
           Case{"{ kind = 'identity', scale = 0, operator_norm = 1 }",
                "t:1: m.operator_norm is 1, expected 0, because the matrix is zero"},
           Case{"{ kind = 'diagonal', values = [1e300, 1], scale = 1e300 }",
                "t:1: m: entries overflow, expected finite numbers"},
           Case{"{ kind = 'diagonal', values = [1e300, 1], scale = 1e300, operator_norm = 1 }",
                "t:1: m: entries overflow, expected finite numbers"},
           Case{"{ kind = 'file' }", "t:1: m.path is missing"},
           Case{"{ kind = 'file', path = '' }", "t:1: m.path is \"\", expected a file name"},
           Case{"{ kind = 'identity', rho = 0.5 }", "t:1: unknown key m.rho"},
       }) {
    EXPECT_THAT(message_of<ConfigError>([&] { return spec(bad.spec, 2, 2); }), HasSubstr(bad.says))
        << bad.spec;
  }
}

TEST(MatrixSpec, RefusesASizeThatNothingSays) {
  EXPECT_THAT(message_of<ConfigError>([] { return spec("1.0"); }),
              HasSubstr("t:1: m is 1.0, expected rows [[..], ..]: the size is not known here"));
  EXPECT_THAT(message_of<ConfigError>([] { return spec("{ kind = 'identity' }"); }),
              HasSubstr("t:1: m: the size is not known here, add shape = [rows, cols]"));
}

TEST(CovSpec, IsPositiveSemidefinite) {
  EXPECT_EQ(cov("2.0", 2), Matrix(2 * Matrix::Identity(2, 2)));
  EXPECT_EQ(cov("0.0", 2), Matrix(Matrix::Zero(2, 2)));
  EXPECT_EQ(cov("[[1, 1], [1, 1]]"), Matrix(Matrix::Ones(2, 2)));
  // G G'/cols: fewer columns than rows give that rank.
  const Matrix low = cov("{ kind = 'random', seed = 1, shape = [5, 2] }", 5);
  EXPECT_EQ(psd_factor("test", "low", low).cols(), 2);
}

TEST(CovSpec, RefusesWithPathAndValue) {
  struct Case {
    const char* spec;
    const char* says;
  };
  for (const Case& bad : {
           Case{"{ kind = 'identity', shape = [2, 2], scale = -2 }",
                "t:1: m: covariance: matrix is not a covariance: its smallest eigenvalue is -2, "
                "expected"},
           Case{"{ kind = 'diagonal', values = [1, -0.5] }", "its smallest eigenvalue is -0.5"},
           Case{"[[1, 2], [2, 1]]", "its smallest eigenvalue is -1,"},
           Case{"[[1, 0.5], [0, 1]]", "matrix is asymmetric by 0.5, expected a symmetric matrix"},
           Case{"[[1, 2]]", "t:1: m: shape is [1,2], expected a square matrix"},
           Case{"{ kind = 'kcm', rho = 1.5, shape = [2, 2] }", "t:1: m.rho is 1.5"},
       }) {
    EXPECT_THAT(message_of<ConfigError>([&] { return cov(bad.spec); }), HasSubstr(bad.says))
        << bad.spec;
  }
  EXPECT_THAT(message_of<ConfigError>([] { return cov("[[1]]", 2); }),
              HasSubstr("t:1: m: shape is [1,1], expected [2,2]"));
}

}  // namespace
}  // namespace esscher
