// Every derivative of attention, for every measure, through the one gradient check.
#include <gtest/gtest.h>

#include "esscher/attention/attention.h"
#include "esscher/attention/multi_head.h"
#include "tests/gradient_check.h"
#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::close;
using testing::gradient_check;
using testing::zoo;
using testing::zoo_matrix;
using testing::zoo_vector;

constexpr double kScale = 0.4;

struct Fixture {
  Matrix K = zoo_matrix(201, 2, 3);
  Matrix Q = zoo_matrix(202, 2, 3);
  Matrix V = zoo_matrix(203, 4, 3);
  Vector z = zoo_vector(204, 3);
  Vector g = zoo_vector(205, 4);
  Attention T = Attention::from_kqv(K, Q, V, kScale);
};

using Evaluate = std::function<Vector(const Attention&, const AnyMeasure&, const Vector&)>;

void check_all(const char* label, const AnyMeasure& mu, const Evaluate& evaluate,
               const AttentionGradients& got) {
  const Fixture f;
  const auto value = [&](const Attention& T, const Vector& z) {
    return f.g.dot(evaluate(T, mu, z));
  };
  using OfVector = std::function<double(const Vector&)>;
  using OfMatrix = std::function<double(const Matrix&)>;
  EXPECT_TRUE(gradient_check(OfVector([&](const Vector& z) { return value(f.T, z); }), f.z, got.z))
      << label << " z";
  EXPECT_TRUE(gradient_check(
      OfMatrix([&](const Matrix& U) { return value(Attention::from_uv(U, f.V), f.z); }), f.T.U(),
      got.U))
      << label << " U";
  EXPECT_TRUE(gradient_check(OfMatrix([&](const Matrix& V) {
                               return value(Attention::from_kqv(f.K, f.Q, V, kScale), f.z);
                             }),
                             f.V, got.V))
      << label << " V";
  EXPECT_TRUE(gradient_check(OfMatrix([&](const Matrix& K) {
                               return value(Attention::from_kqv(K, f.Q, f.V, kScale), f.z);
                             }),
                             f.K, got.K))
      << label << " K";
  EXPECT_TRUE(gradient_check(OfMatrix([&](const Matrix& Q) {
                               return value(Attention::from_kqv(f.K, Q, f.V, kScale), f.z);
                             }),
                             f.Q, got.Q))
      << label << " Q";
}

TEST(AttentionGradient, SoftmaxVjpsForEveryMeasure) {
  const Fixture f;
  for (const auto& [label, mu] : zoo()) {
    check_all(
        label, mu,
        [](const Attention& T, const AnyMeasure& law, const Vector& z) { return T(law, z); },
        f.T.vjp(mu, f.z, f.g));
  }
}

TEST(AttentionGradient, LinearVjpsForEveryMeasure) {
  const Fixture f;
  for (const auto& [label, mu] : zoo()) {
    check_all(
        label, mu,
        [](const Attention& T, const AnyMeasure& law, const Vector& z) { return T.linear(law, z); },
        f.T.linear_vjp(mu, f.z, f.g));
  }
}

TEST(AttentionGradient, JacobiansAreTheVjpsOfUnitCotangents) {
  const Fixture f;
  for (const auto& [label, mu] : zoo()) {
    const Matrix Jz = f.T.jacobian_z(mu, f.z);
    const Matrix JU = f.T.jacobian_U(mu, f.z);
    const Matrix JV = f.T.jacobian_V(mu, f.z);
    ASSERT_EQ(Jz.rows(), 4);
    ASSERT_EQ(JU.cols(), 9);
    ASSERT_EQ(JV.cols(), 12);
    for (Index i = 0; i < 4; ++i) {
      const AttentionGradients row = f.T.vjp(mu, f.z, Vector::Unit(4, i));
      EXPECT_TRUE(close(Jz.row(i).transpose(), row.z, 1e-12)) << label;
      EXPECT_TRUE(close(JU.row(i).transpose(), Eigen::Map<const Vector>(row.U.data(), 9), 1e-12))
          << label;
      EXPECT_TRUE(close(JV.row(i).transpose(), Eigen::Map<const Vector>(row.V.data(), 12), 1e-12))
          << label;
    }
  }
}

// The Jacobians of linear attention against differences of its own output.
TEST(AttentionGradient, LinearJacobiansAreTheDifferencesOfTheLinearOutput) {
  const Fixture f;
  using OfVector = std::function<double(const Vector&)>;
  using OfMatrix = std::function<double(const Matrix&)>;
  for (const auto& [label, mu] : zoo()) {
    const AnyMeasure& law = mu;
    const Matrix Jz = f.T.linear_jacobian_z(mu, f.z);
    const Matrix JU = f.T.linear_jacobian_U(mu, f.z);
    const Matrix JV = f.T.linear_jacobian_V(mu, f.z);
    for (Index i = 0; i < 4; ++i) {
      EXPECT_TRUE(gradient_check(OfVector([&](const Vector& z) { return f.T.linear(law, z)(i); }),
                                 f.z, Vector(Jz.row(i).transpose())))
          << label << " z";
      const auto of_U = [&](const Matrix& U) {
        return Attention::from_uv(U, f.V).linear(law, f.z)(i);
      };
      EXPECT_TRUE(gradient_check(OfMatrix(of_U), f.T.U(),
                                 Matrix(Eigen::Map<const Matrix>(JU.row(i).data(), 3, 3))))
          << label << " U";
      const auto of_V = [&](const Matrix& V) {
        return Attention::from_uv(f.T.U(), V).linear(law, f.z)(i);
      };
      EXPECT_TRUE(gradient_check(OfMatrix(of_V), f.V,
                                 Matrix(Eigen::Map<const Matrix>(JV.row(i).data(), 4, 3))))
          << label << " V";
    }
  }
  EXPECT_THROW((void)f.T.linear_jacobian_z(Rademacher(3), Vector::Ones(2)), DimensionError);
}

TEST(AttentionGradient, WithoutKeysThereAreNoKeyGradients) {
  const Fixture f;
  const AttentionGradients got = Attention::from_uv(f.T.U(), f.V).vjp(Rademacher(3), f.z, f.g);
  EXPECT_EQ(got.K.size(), 0);
  EXPECT_EQ(got.Q.size(), 0);
  EXPECT_TRUE(close(got.U, f.T.vjp(Rademacher(3), f.z, f.g).U, 1e-15));
}

MultiHead two_heads(const Matrix& O) {
  return {{Attention::from_kqv(zoo_matrix(211, 2, 3), zoo_matrix(212, 2, 3), zoo_matrix(213, 2, 3),
                               kScale),
           Attention::from_uv(0.5 * zoo_matrix(214, 3, 3), zoo_matrix(215, 3, 3))},
          O};
}

TEST(MultiHead, IsTheOutputMatrixOnTheStackedHeads) {
  const Matrix O = zoo_matrix(216, 4, 5);
  const MultiHead layer = two_heads(O);
  const AnyMeasure mu = Empirical(zoo_matrix(217, 6, 3));
  const Vector z = zoo_vector(218, 3);
  Vector stacked(5);
  stacked << layer.heads()[0](mu, z), layer.heads()[1](mu, z);
  EXPECT_TRUE(close(layer(mu, z), O * stacked, 1e-14));
  EXPECT_THROW(two_heads(Matrix::Ones(4, 6)), DimensionError);
  EXPECT_THROW(MultiHead({}, O), ArgumentError);
  EXPECT_THROW((void)layer.vjp(mu, z, Vector::Ones(3)), DimensionError);
}

TEST(MultiHead, VjpsOfOutputsQueriesAndHeads) {
  const Matrix O = zoo_matrix(216, 4, 5);
  const MultiHead layer = two_heads(O);
  const Vector z = zoo_vector(218, 3);
  const Vector g = zoo_vector(219, 4);
  using OfVector = std::function<double(const Vector&)>;
  using OfMatrix = std::function<double(const Matrix&)>;
  for (const auto& [label, mu] : zoo()) {
    const AnyMeasure& law = mu;
    const MultiHeadGradients got = layer.vjp(mu, z, g);
    EXPECT_TRUE(
        gradient_check(OfVector([&](const Vector& x) { return g.dot(layer(law, x)); }), z, got.z))
        << label;
    EXPECT_TRUE(gradient_check(
        OfMatrix([&](const Matrix& X) { return g.dot(two_heads(X)(law, z)); }), O, got.O))
        << label;
    const auto with_second_V = [&](const Matrix& X) {
      return g.dot(
          MultiHead({layer.heads()[0], Attention::from_uv(layer.heads()[1].U(), X)}, O)(law, z));
    };
    EXPECT_TRUE(gradient_check(OfMatrix(with_second_V), layer.heads()[1].V(), got.heads[1].V))
        << label;
    const MultiHeadGradients linear = layer.linear_vjp(mu, z, g);
    EXPECT_TRUE(gradient_check(
        OfVector([&](const Vector& x) { return g.dot(layer.linear(law, x)); }), z, linear.z))
        << label;
  }
}

}  // namespace
}  // namespace esscher
