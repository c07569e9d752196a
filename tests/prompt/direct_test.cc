#include "esscher/prompt/direct.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/random/stream.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

struct Problem {
  Attention attention = Attention::from_kqv(random_matrix(Stream(1, 3), 3, 4) * 0.5,
                                            random_matrix(Stream(2, 3), 3, 4) * 0.5,
                                            random_matrix(Stream(3, 3), 2, 4), 0.7);
  Vector z = random_matrix(Stream(4, 3), 4, 1);
  Vector g = random_matrix(Stream(5, 3), 2, 1);
};

void expect_same(const AttentionGradients& got, const AttentionGradients& want, double tolerance) {
  EXPECT_TRUE(close(got.z, want.z, tolerance, 1.0));
  EXPECT_TRUE(close(got.U, want.U, tolerance, 1.0));
  EXPECT_TRUE(close(got.V, want.V, tolerance, 1.0));
  EXPECT_TRUE(close(got.K, want.K, tolerance, 1.0));
  EXPECT_TRUE(close(got.Q, want.Q, tolerance, 1.0));
}

TEST(Direct, AgreesWithTheOperatorOnEmpirical) {
  const Problem p;
  for (const Index n : {1, 2, 100, 5000}) {
    const Empirical plain(random_matrix(Stream(6, 3), n, 4));
    const Empirical weighted(random_matrix(Stream(6, 3), n, 4),
                             random_matrix(Stream(7, 3), n, 1).cwiseAbs());
    for (const Empirical& prompt : {plain, weighted}) {
      const Vector output = p.attention(prompt, p.z);
      EXPECT_TRUE(close(direct_output(p.attention, prompt, p.z), output, 1e-13, 1.0));
      const DirectResult both = direct_vjp(p.attention, prompt, p.z, p.g);
      EXPECT_TRUE(close(both.output, output, 1e-13, 1.0));
      expect_same(both.gradients, p.attention.vjp(prompt, p.z, p.g), 1e-12);
    }
  }
}

TEST(Direct, ManyQueriesAgreeWithOne) {
  const Problem p;
  const Empirical prompt(random_matrix(Stream(8, 3), 777, 4));
  const Matrix queries = random_matrix(Stream(9, 3), 70, 4);
  const Matrix outputs = direct_outputs(p.attention, prompt, queries);
  for (Index i = 0; i < queries.rows(); ++i) {
    const Vector z = queries.row(i);
    EXPECT_TRUE(close(outputs.row(i).transpose(), p.attention(prompt, z), 1e-13, 1.0)) << i;
  }
}

// The gradients of many queries are the sums of those of each, in double and in float.
TEST(Direct, GradientsOfManyQueriesAgreeWithOne) {
  const Problem p;
  const Matrix tokens = random_matrix(Stream(8, 3), 777, 4);
  const Empirical plain(tokens), weighted(tokens, random_matrix(Stream(7, 3), 777, 1).cwiseAbs());
  const Matrix queries = random_matrix(Stream(9, 3), 70, 4),
               g = random_matrix(Stream(14, 3), 70, 2);
  const auto compare = [&](const DirectRows& got, const Empirical& prompt, double tolerance) {
    AttentionGradients want{Vector(), Matrix::Zero(4, 4), Matrix::Zero(2, 4), Matrix::Zero(3, 4),
                            Matrix::Zero(3, 4)};
    for (Index i = 0; i < queries.rows(); ++i) {
      const Vector z = queries.row(i), g_i = g.row(i);
      const AttentionGradients one = p.attention.vjp(prompt, z, g_i);
      EXPECT_TRUE(close(got.outputs.row(i).transpose(), p.attention(prompt, z), tolerance, 1.0));
      EXPECT_TRUE(close(got.z.row(i).transpose(), one.z, tolerance, 1.0)) << i;
      want.U += one.U;
      want.V += one.V;
      want.K += one.K;
      want.Q += one.Q;
    }
    expect_same(got.gradients, want, tolerance);
  };
  compare(direct_vjps(p.attention, plain, queries, g), plain, 1e-12);
  compare(direct_vjps(p.attention, weighted, queries, g), weighted, 1e-12);
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> floats =
      tokens.cast<float>();
  compare(direct_vjps(p.attention, Rows<float>(floats.data(), 777, 4), queries, g), plain, 5e-6);
  EXPECT_THROW(direct_vjps(p.attention, plain, queries, g.topRows(3)), DimensionError);
}

TEST(Direct, PrefixesAgreeWithShorterPrompts) {
  const Problem p;
  const Matrix tokens = random_matrix(Stream(10, 3), 300, 4);
  const std::vector<Index> lengths = {1, 17, 300};
  const Matrix outputs = direct_prefixes(p.attention, Empirical(tokens), p.z, lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Empirical prefix(tokens.topRows(lengths[i]));
    EXPECT_TRUE(close(outputs.row(static_cast<Index>(i)).transpose(), p.attention(prefix, p.z),
                      1e-13, 1.0));
  }
}

struct TemporaryFile {
  std::filesystem::path path = std::filesystem::path(testing::binary_dir()) / "direct_test.npy";
  ~TemporaryFile() { std::filesystem::remove(path); }
};

// More than one chunk: 16 MiB hold 524288 rows of 4 doubles.
TEST(Direct, AFileGivesTheSameBitsAsMemory) {
  const Problem p;
  const TemporaryFile file;
  const Matrix tokens = random_matrix(Stream(11, 3), 524288 + 4096 + 11, 4);
  write_npy(file.path, tokens);
  const NpyReader reader(file.path);
  const Empirical prompt(tokens);
  EXPECT_EQ(direct_output(p.attention, reader, p.z), direct_output(p.attention, prompt, p.z));
  const DirectResult streamed = direct_vjp(p.attention, reader, p.z, p.g);
  const DirectResult whole = direct_vjp(p.attention, prompt, p.z, p.g);
  EXPECT_EQ(streamed.output, whole.output);
  EXPECT_EQ(streamed.gradients.U, whole.gradients.U);
}

TEST(Direct, BatchAgreesWithPromptsOneByOne) {
  const Problem p;
  const Index b = 13, length = 201;
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> tokens =
      random_matrix(Stream(12, 3), b * length, 4).cast<float>();
  const Matrix queries = random_matrix(Stream(13, 3), b, 4), g = random_matrix(Stream(14, 3), b, 2);
  const DirectBatch got =
      direct_batch(p.attention, Rows<float>(tokens.data(), tokens.rows(), 4), length, queries, g);
  AttentionGradients want{Vector::Zero(4), Matrix::Zero(4, 4), Matrix::Zero(2, 4),
                          Matrix::Zero(3, 4), Matrix::Zero(3, 4)};
  for (Index i = 0; i < b; ++i) {
    const Empirical prompt(tokens.middleRows(i * length, length).cast<double>());
    const Vector z = queries.row(i), g_i = g.row(i);
    EXPECT_TRUE(close(got.outputs.row(i).transpose(), p.attention(prompt, z), 2e-6, 1.0));
    const AttentionGradients one = p.attention.vjp(prompt, z, g_i);
    want.U += one.U;
    want.V += one.V;
    want.K += one.K;
    want.Q += one.Q;
  }
  EXPECT_TRUE(close(got.gradients.U, want.U, 5e-6, 1.0));
  EXPECT_TRUE(close(got.gradients.V, want.V, 5e-6, 1.0));
  EXPECT_TRUE(close(got.gradients.K, want.K, 5e-6, 1.0));
  EXPECT_TRUE(close(got.gradients.Q, want.Q, 5e-6, 1.0));
}

TEST(Direct, TokensOfSomebodyElseAreReadInPlace) {
  const Problem p;
  const Matrix wide = random_matrix(Stream(16, 3), 5000, 6);  // the tokens are its middle columns
  const Rows<double> tokens(wide.data() + 1, wide.rows(), 4, 6);
  const Empirical prompt(wide.middleCols(1, 4));
  const Matrix queries = random_matrix(Stream(17, 3), 3, 4);
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Floats narrow = wide.cast<float>();
  const Rows<float> floats(narrow.data() + 1, wide.rows(), 4, 6);
  for (const Index count : {1, 3}) {
    const Matrix outputs = direct_outputs(p.attention, tokens, queries.topRows(count));
    const Matrix rough = direct_outputs(p.attention, floats, queries.topRows(count));
    for (Index i = 0; i < count; ++i) {
      const Vector want = p.attention(prompt, queries.row(i).transpose());
      EXPECT_TRUE(close(outputs.row(i).transpose(), want, 1e-13, 1.0));
      EXPECT_TRUE(close(rough.row(i).transpose(), want, 1e-5, 1.0));
    }
  }
  const AttentionGradients want = p.attention.vjp(prompt, p.z, p.g);
  expect_same(direct_vjp(p.attention, tokens, p.z, p.g).gradients, want, 1e-12);
  expect_same(direct_vjp(p.attention, floats, p.z, p.g).gradients, want, 1e-4);
}

TEST(Direct, TokensThatAreNotFiniteAreNamed) {
  const Attention head = Attention::from_uv(Matrix::Identity(2, 2), Matrix::Identity(2, 2));
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    for (const Index n : {3, 5000}) {
      Matrix x = random_matrix(Stream(18, 3), n, 2);
      x(n - 2, 1) = bad;
      const Rows<double> tokens(x.data(), n, 2);
      for (const double sign : {1.0, 0.0, -1.0}) {
        for (const Index count : {1, 2}) {
          EXPECT_THROW(direct_outputs(head, tokens, Matrix::Constant(count, 2, sign)),
                       ArgumentError)
              << bad << " " << n << " " << sign << " " << count;
        }
        EXPECT_THROW(direct_vjp(head, tokens, Vector::Constant(2, sign), Vector::Ones(2)),
                     ArgumentError);
      }
    }
  }
  EXPECT_THROW(direct_outputs(head, Rows<double>(nullptr, 0, 2), Matrix::Zero(1, 2)),
               ArgumentError);
}

TEST(Direct, ShapesAreChecked) {
  const Problem p;
  const Empirical prompt(random_matrix(Stream(15, 3), 5, 3));
  EXPECT_THROW(direct_output(p.attention, prompt, p.z), DimensionError);
  EXPECT_THROW(direct_vjp(p.attention, Empirical(random_matrix(Stream(15, 3), 5, 4)), p.z, p.z),
               DimensionError);
}

}  // namespace
}  // namespace esscher
