#include "esscher/attention/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::close;
using ::testing::HasSubstr;
using testing::message_of;
using testing::zoo_matrix;
using testing::zoo_vector;

std::uint64_t random_seed() { return *rc::gen::inRange<std::uint64_t>(100, 1000000); }
Index random_index(Index low, Index high) { return *rc::gen::inRange<Index>(low, high); }

Gaussian random_gaussian(const Vector& mean, Index rank) {
  const Matrix F = zoo_matrix(random_seed(), mean.size(), rank);
  return {mean, F * F.transpose()};
}

// Lemma 2.1: mu = N(m,G) gives T[mu](z) = Vm + V G K'Q z, singular G included (rank 0 to d).
RC_GTEST_PROP(Attention, Lemma21GaussianLimitIsAffine, ()) {
  const Index d = random_index(1, 6);
  const Index dk = random_index(1, 6);
  const Index dv = random_index(1, 6);
  const Gaussian mu = random_gaussian(zoo_vector(random_seed(), d), random_index(0, d + 1));
  const Matrix K = zoo_matrix(random_seed(), dk, d);
  const Matrix Q = zoo_matrix(random_seed(), dk, d);
  const Matrix V = zoo_matrix(random_seed(), dv, d);
  const Vector z = zoo_vector(random_seed(), d);
  const Attention T = Attention::from_kqv(K, Q, V);
  const Vector want = V * mu.mean() + V * mu.cov() * K.transpose() * Q * z;
  RC_ASSERT(close(T(mu, z), want, 1e-13, 1.0));
  RC_ASSERT(close(T(AnyMeasure(mu), z), want, 1e-13, 1.0));
}

RC_GTEST_PROP(Attention, LinearAttentionIsExactForCentredGaussiansOnly, ()) {
  const Index d = random_index(1, 6);
  const Attention T =
      Attention::from_uv(zoo_matrix(random_seed(), d, d), zoo_matrix(random_seed(), 2, d));
  const Vector z = zoo_vector(random_seed(), d);
  const Gaussian centred = random_gaussian(Vector::Zero(d), random_index(1, d + 1));
  RC_ASSERT(close(T(centred, z), T.linear(centred, z), 1e-13, 1.0));

  const Vector m = Vector::Ones(d) + zoo_vector(random_seed(), d).cwiseAbs();
  const Gaussian shifted(m, centred.cov());
  // T - T_lin = V m (1 - m'Uz), which vanishes only where m'Uz = 1.
  const Vector difference = T(shifted, z) - T.linear(shifted, z);
  const Vector want = T.V() * m * (1 - m.dot(T.U() * z));
  RC_ASSERT(close(difference, want, 1e-11, 1.0));
  RC_ASSERT(difference.norm() > 0);
}

// Against the definition: softmax over the prompt, scores <Kz_l, Qz> * scale.
RC_GTEST_PROP(Attention, OnAPromptIsOrdinarySoftmaxAttention, ()) {
  const Index n = random_index(1, 12);
  const Matrix tokens = zoo_matrix(random_seed(), n, 3);
  const Matrix K = zoo_matrix(random_seed(), 2, 3);
  const Matrix Q = zoo_matrix(random_seed(), 2, 3);
  const Matrix V = zoo_matrix(random_seed(), 4, 3);
  const Vector z = zoo_vector(random_seed(), 3);
  const double scale = 1 / std::sqrt(2.0);
  const Vector scores = scale * (tokens * K.transpose()) * (Q * z);
  const Vector weights = (scores.array() - scores.maxCoeff()).exp();
  const Vector softmax = V * (tokens.transpose() * weights) / weights.sum();
  const Vector linear = V * (tokens.transpose() * scores) / static_cast<double>(n);
  const Attention T = Attention::from_kqv(K, Q, V, scale);
  RC_ASSERT(close(T(Empirical(tokens), z), softmax, 1e-12, 1.0));
  RC_ASSERT(close(T.linear(Empirical(tokens), z), linear, 1e-12, 1.0));
}

TEST(Attention, KeepsItsParameters) {
  const Matrix K = zoo_matrix(1, 2, 3);
  const Matrix Q = zoo_matrix(2, 2, 3);
  const Matrix V = zoo_matrix(3, 4, 3);
  const Attention T = Attention::from_kqv(K, Q, V, 0.5);
  EXPECT_TRUE(T.has_kq());
  EXPECT_TRUE(close(T.U(), 0.5 * K.transpose() * Q, 1e-15));
  EXPECT_TRUE(close(T.K(), K, 0));
  EXPECT_TRUE(close(T.Q(), Q, 0));
  EXPECT_EQ(T.scale(), 0.5);
  EXPECT_EQ(T.output_dim(), 4);
  EXPECT_EQ(T.dim(), 3);
  EXPECT_FALSE(Attention::from_uv(T.U(), V).has_kq());
}

TEST(Attention, TypedErrors) {
  const Matrix I = Matrix::Identity(2, 2);
  const Attention T = Attention::from_uv(I, I);
  const Vector z = Vector::Ones(2);
  EXPECT_THAT(message_of<DimensionError>([&] { (void)T(Rademacher(3), z); }),
              HasSubstr("measure has dimension 3, expected 2"));
  EXPECT_THAT(message_of<DimensionError>([&] { (void)T(Rademacher(2), Vector::Ones(5)); }),
              HasSubstr("z has dimension 5"));
  EXPECT_THROW((void)T.vjp(Rademacher(2), z, Vector::Ones(3)), DimensionError);
  EXPECT_THROW((void)T.linear(Rademacher(3), z), DimensionError);
  EXPECT_THROW((void)Attention::from_uv(Matrix::Ones(2, 3), I), DimensionError);
  EXPECT_THROW((void)Attention::from_uv(I, Matrix::Ones(2, 3)), DimensionError);
  EXPECT_THROW((void)Attention::from_kqv(I, Matrix::Ones(3, 2), I), DimensionError);
  EXPECT_THROW((void)Attention::from_kqv(I, Matrix::Ones(2, 3), I), DimensionError);
  EXPECT_THROW((void)Attention::from_kqv(I, I, I, NAN), ArgumentError);
  EXPECT_THROW((void)Attention::from_uv(I * NAN, I), ArgumentError);
  EXPECT_THROW((void)T.K(), CapabilityError);
  Vector bad = z;
  bad(1) = NAN;
  EXPECT_THROW((void)T(Rademacher(2), bad), ArgumentError);
  EXPECT_THROW((void)Attention::from_uv(10 * I, I)(Laplace(2, 1), z), DomainError);
}

}  // namespace
}  // namespace esscher
