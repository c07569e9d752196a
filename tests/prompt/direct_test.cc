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

Matrix normals(std::uint64_t seed, Index n, Index d) {
  Matrix x(n, d);
  const Stream stream(seed, 3);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = stream.normal(static_cast<std::uint64_t>(i));
  return x;
}

struct Problem {
  Attention attention =
      Attention::from_kqv(normals(1, 3, 4) * 0.5, normals(2, 3, 4) * 0.5, normals(3, 2, 4), 0.7);
  Vector z = normals(4, 4, 1);
  Vector g = normals(5, 2, 1);
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
    const Empirical plain(normals(6, n, 4));
    const Empirical weighted(normals(6, n, 4), normals(7, n, 1).cwiseAbs());
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
  const Empirical prompt(normals(8, 777, 4));
  const Matrix queries = normals(9, 70, 4);
  const Matrix outputs = direct_outputs(p.attention, prompt, queries);
  for (Index i = 0; i < queries.rows(); ++i) {
    const Vector z = queries.row(i);
    EXPECT_TRUE(close(outputs.row(i).transpose(), p.attention(prompt, z), 1e-13, 1.0)) << i;
  }
}

TEST(Direct, PrefixesAgreeWithShorterPrompts) {
  const Problem p;
  const Matrix tokens = normals(10, 300, 4);
  const std::vector<Index> lengths = {1, 17, 300};
  const Matrix outputs = direct_prefixes(p.attention, Empirical(tokens), p.z, lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Empirical prefix(tokens.topRows(lengths[i]));
    EXPECT_TRUE(close(outputs.row(static_cast<Index>(i)).transpose(), p.attention(prefix, p.z),
                      1e-13, 1.0));
  }
}

struct TemporaryFile {
  std::filesystem::path path = std::filesystem::path(ESSCHER_BINARY_DIR) / "direct_test.npy";
  ~TemporaryFile() { std::filesystem::remove(path); }
};

// More than one chunk: 16 MiB hold 524288 rows of 4 doubles.
TEST(Direct, AFileGivesTheSameBitsAsMemory) {
  const Problem p;
  const TemporaryFile file;
  const Matrix tokens = normals(11, 524288 + 4096 + 11, 4);
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
      normals(12, b * length, 4).cast<float>();
  const Matrix queries = normals(13, b, 4), g = normals(14, b, 2);
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

TEST(Direct, ShapesAreChecked) {
  const Problem p;
  const Empirical prompt(normals(15, 5, 3));
  EXPECT_THROW(direct_output(p.attention, prompt, p.z), DimensionError);
  EXPECT_THROW(direct_vjp(p.attention, Empirical(normals(15, 5, 4)), p.z, p.z), DimensionError);
}

}  // namespace
}  // namespace esscher
