// Third and fourth cumulants of tilted measures: enumeration, 50-digit arithmetic, differences.
#include "esscher/measure/higher_cumulants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "esscher/measure/bessel_tilt.h"
#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::close;
using testing::zoo;
using testing::zoo_matrix;
using testing::zoo_vector;

struct Pair {
  Matrix W, Y;
};

Pair random_pair(std::uint64_t seed, Index d) {
  const Matrix F = zoo_matrix(seed, d, 2), G = zoo_matrix(seed + 1, d, d);
  return {F * F.transpose(), G * G.transpose()};
}

// Cumulants are compared on the scale of the moments that they make.
::testing::AssertionResult same(const HigherCumulants& got, const HigherCumulants& want,
                                const Matrix& C, const Pair& p, double tolerance) {
  const Vector zero = Vector::Zero(C.rows());
  const double scale4 = fourth_moment(want, C, zero, p.W, p.Y);
  const double size = std::sqrt(C.trace());
  const auto first = close(got.third_w, want.third_w, tolerance, (p.W * C).trace() * size);
  if (!first) return first;
  const auto second = close(got.third_y, want.third_y, tolerance, (p.Y * C).trace() * size);
  return second ? close(got.fourth, want.fourth, tolerance, scale4) : second;
}

// Atoms of the tilted law and their weights, by the definition. Scores are shifted before exp.
HigherCumulants enumerated(const Matrix& atoms, const Vector& p, const Vector& a, const Pair& pair,
                           Matrix& C) {
  const Vector score = atoms * a;
  Vector r = p.array() * (score.array() - score.maxCoeff()).exp();
  r /= r.sum();
  Index top = 0;
  score.maxCoeff(&top);
  const Index d = atoms.cols();
  Vector shift = Vector::Zero(d);
  for (Index l = 0; l < r.size(); ++l) shift += r(l) * (atoms.row(l) - atoms.row(top)).transpose();
  HigherCumulants out = no_higher_cumulants(d);
  C = Matrix::Zero(d, d);
  for (Index l = 0; l < r.size(); ++l) {
    const Vector x = (atoms.row(l) - atoms.row(top)).transpose() - shift;
    const double w = x.dot(pair.W * x), y = x.dot(pair.Y * x);
    C += r(l) * x * x.transpose();
    out.third_w += r(l) * w * x;
    out.third_y += r(l) * y * x;
    out.fourth += r(l) * w * y;
  }
  out.fourth -= (pair.W * C).trace() * (pair.Y * C).trace() + 2 * (pair.W * C * pair.Y * C).trace();
  return out;
}

Matrix cube(Index d) {
  Matrix atoms(Index(1) << d, d);
  for (Index l = 0; l < atoms.rows(); ++l) {
    for (Index i = 0; i < d; ++i) atoms(l, i) = ((l >> i) & 1) != 0 ? 1 : -1;
  }
  return atoms;
}

// The same law of atoms, written in several ways.
TEST(HigherCumulants, OfDiscreteLawsByEnumeration) {
  struct Case {
    const char* label;
    AnyMeasure law;
    Matrix atoms;
    Vector p;
  };
  const Index d = 3;
  const Vector equal = Vector::Constant(8, 0.125);
  const Matrix six = zoo_matrix(31, 6, d), B = zoo_matrix(32, d, d);
  const Vector six_weights = Vector::LinSpaced(6, 1, 4) / Vector::LinSpaced(6, 1, 4).sum();
  const Vector c = zoo_vector(33, d);
  const Vector probs = Vector::LinSpaced(d, 1, 4) / Vector::LinSpaced(d, 1, 4).sum();
  const Matrix image = (cube(d) * B.transpose()).rowwise() + c.transpose();
  Matrix both(14, d);
  both << image, six;
  Vector both_weights(14);
  both_weights << 0.4 * equal, 0.6 * six_weights;
  Matrix sums(48, d);
  Vector sum_weights(48);
  for (Index i = 0; i < 8; ++i) {
    for (Index j = 0; j < 6; ++j) {
      sums.row(6 * i + j) = cube(d).row(i) + six.row(j);
      sum_weights(6 * i + j) = equal(i) * six_weights(j);
    }
  }
  const AnyMeasure moved = Affine(c, B, Rademacher(d));
  const Empirical atoms(six, six_weights);
  const std::vector<Case> cases = {
      {"rademacher", Rademacher(d), cube(d), equal},
      {"empirical", atoms, six, six_weights},
      {"categorical", Categorical(probs), Matrix::Identity(d, d), probs},
      {"affine", moved, image, equal},
      {"product", Product({Rademacher(1), Rademacher(2)}), cube(d), equal},
      {"sum", Sum({Rademacher(d), atoms}), sums, sum_weights},
      {"mixture", Mixture(Vector{{0.4, 0.6}}, {moved, atoms}), both, both_weights}};
  for (const Case& test : cases) {
    for (const double size : {1e-3, 0.7, 4.0, 8.0, 16.0}) {
      const Pair pair = random_pair(40, d);
      const Vector a = size * zoo_vector(34, d).normalized();
      Matrix C;
      const HigherCumulants want = enumerated(test.atoms, test.p, a, pair, C);
      EXPECT_TRUE(same(test.law.higher_cumulants(a, pair.W, pair.Y), want, C, pair, 1e-11))
          << test.label << " |a| = " << size;
    }
  }
}

// A measure of a user: the members of the concept and no more.
struct Plain {
  AnyMeasure inner;
  [[nodiscard]] Index dim() const { return inner.dim(); }
  [[nodiscard]] Length cardinality() const { return inner.cardinality(); }
  [[nodiscard]] Vector mean() const { return inner.mean(); }
  [[nodiscard]] Matrix second_moment() const { return inner.second_moment(); }
  [[nodiscard]] double log_mgf(const VectorView& a) const { return inner.log_mgf(a); }
  [[nodiscard]] Vector tilted_mean(const VectorView& a) const { return inner.tilted_mean(a); }
  [[nodiscard]] Matrix tilted_cov(const VectorView& a) const { return inner.tilted_cov(a); }
  [[nodiscard]] Vector tilted_cov_times(const VectorView& a, const VectorView& v) const {
    return inner.tilted_cov_times(a, v);
  }
  [[nodiscard]] Empirical sample(const Stream& s, Index n) const { return inner.sample(s, n); }
  [[nodiscard]] double sub_gaussian() const { return inner.sub_gaussian(); }
  [[nodiscard]] std::string name() const { return "plain"; }
};

// Closed forms of every measure against differences of its covariance, which is also what a measure
// of a user gets.
TEST(HigherCumulants, OfEveryMeasureAreDerivativesOfItsCovariance) {
  for (const auto& [label, mu] : zoo()) {
    const AnyMeasure user = Plain{mu};
    for (const double size : {0.0, 0.5, 2.0, 6.0}) {
      const Pair pair = random_pair(50, mu.dim());
      const Vector a = size * zoo_vector(51, mu.dim()).normalized();
      EXPECT_TRUE(same(user.higher_cumulants(a, pair.W, pair.Y),
                       mu.higher_cumulants(a, pair.W, pair.Y), mu.tilted_cov(a), pair, 1e-7))
          << label << " |a| = " << size;
    }
  }
}

// Near the edge of the domain differences take shorter steps.
TEST(HigherCumulants, DifferencesStayInTheDomain) {
  const AnyMeasure law = Laplace(2, 1.0), user = Plain{law};
  const Pair pair = random_pair(52, 2);
  const Vector a{{0.9, -0.3}};
  EXPECT_TRUE(same(user.higher_cumulants(a, pair.W, pair.Y),
                   law.higher_cumulants(a, pair.W, pair.Y), law.tilted_cov(a), pair, 1e-7));
}

struct BesselValues {
  Index d;
  double k, across, along, along3, along4, mixed3, mixed4;
};

// A = I_{nu+1}(k)/I_nu(k) by mpmath 1.2 with 120 digits, and its derivatives from
// A' = 1 - A^2 - (d-1)A/k, differentiated twice.
const std::vector<BesselValues>& bessel_values() {
  static const std::vector<BesselValues> values = {
      {2, 1e-3, 0.49999993750001041666, 0.49999981250005208332, -0.00037499979166674186976,
       -0.37499937500037597641, -0.00012499995833334407812, -0.12499987500005371092},
      {2, 0.5, 0.4849992251616038907, 0.45619471273655707217, -0.1636450573499570126,
       -0.24000549054178479493, -0.057609024850093637066, -0.096854015299539476936},
      {2, 7, 0.13221888725630745493, 0.011171239526181591625, -0.0033861629276520365052,
       0.0015614297815531391768, -0.017292521104303694758, 0.0044569827544221932872},
      {2, 49, 0.020198831813157304806, 0.00021043950130900691542, -8.6355714797723099362e-6,
       5.3159919656261374251e-7, -0.00040792637371118975287, 0.00001647381991719606522},
      {2, 1e5, 9.99994999987499875e-6, 5.0000250003750078127e-11, -1.0000075001500039064e-15,
       3.0000300007500234384e-20, -9.9998999996249949999e-11, 1.9999699998499974999e-15},
      {3, 2, 0.26865736036377404794, 0.17397817016192890075, -0.092282873624648189588,
       0.036236768976143779205, -0.047339595100922573596, 0.0011981582885984788021},
      {3, 3e6, 3.3333322222222222222e-7, 1.1111111111111111111e-13, -7.4074074074074074074e-20,
       7.4074074074074074074e-26, -1.1111103703703703704e-13, 7.4074e-20},
      {5, 30, 0.031149425287356321839, 0.0021442726912405866033, -0.00014021804000892934429,
       0.000013739030958778131401, -0.00096683841987052450786, 0.000059781959991070655715},
      {5, 51, 0.018846597462514417532, 0.00075340253748558246828, -0.000029231472058258136011,
       1.7006748269563609418e-6, -0.00035476852794174186399, 0.000013339325173043639058},
      {5, 1e3, 0.000998001001001001001, 1.997996995994993993e-6, -3.9939879799699579439e-9,
       1.1975939879789663495e-11, -9.9600300400500600701e-7, 1.9880120200300420561e-9},
      {50, 0.1, 0.019999923077492872366, 0.019999769233618197732, -4.6152706574238078805e-6,
       -0.000046150427458084241363, -1.5384387467463408711e-6, -0.000015383931639311260529},
      {50, 40, 0.013925409181760416612, 0.0073877166866078808901, -0.00022148491583286588361,
       8.4700873288327338089e-6, -0.00016344231237881339305, 2.6349927231190225621e-6},
      {50, 1000, 0.00097578812171736426269, 0.000023923551147457690726, -4.7270120048647154e-8,
       1.4007867877027773215e-10, -9.5186457056990657196e-7, 1.8564590210911659899e-9},
      {50, 1e4, 0.000099755287903377294302, 2.4442416527848539776e-7, -4.8827241275573775083e-11,
       1.4630893219892774177e-14, -9.9510863738098808905e-9, 1.9853345506344188006e-12},
      {300, 100, 0.0030291625698155997349, 0.0025221328814171978823, -0.000011971335786806942273,
       4.2345484946066717611e-9, -5.0702968839840185258e-6, -1.8307420188389052209e-8},
      {300, 5e4, 0.000019940288804578949066, 5.9622389460277756219e-8, -2.3813432925927427232e-12,
       1.4266745803637698028e-16, -3.976133283023734262e-10, 1.5856906266243082193e-14},
      {300, 1e5, 9.9850611004798442592e-6, 1.4927798941626945835e-8, -2.9833396541147129217e-13,
       8.9433585078934593573e-18, -9.9701333015382173134e-11, 1.9910433206535287498e-15},
  };
  return values;
}

TEST(HigherCumulants, OfTheSphereTo120Digits) {
  for (const BesselValues& want : bessel_values()) {
    const BesselTilt tilt = bessel_tilt(want.d, want.k);
    const BesselCumulants got = bessel_cumulants(want.d, want.k);
    const auto label = std::to_string(want.d) + " " + std::to_string(want.k);
    EXPECT_TRUE(close(tilt.across, want.across, 1e-14)) << label;
    EXPECT_TRUE(close(tilt.along, want.along, 1e-13)) << label;
    EXPECT_TRUE(close(got.along3, want.along3, 1e-12)) << label;
    EXPECT_TRUE(close(got.mixed3, want.mixed3, 1e-12)) << label;
    EXPECT_TRUE(close(got.mixed4, want.mixed4, 1e-12)) << label;
    EXPECT_TRUE(close(got.across4, want.mixed3 / want.k, 1e-12)) << label;
    // Fourth moments are along4 + 3 along^2.
    EXPECT_TRUE(close(got.along4, want.along4, 1e-12, 3 * want.along * want.along)) << label;
  }
}

TEST(HigherCumulants, OfTheSphereAtTinyTilts) {
  for (const Index d : {2, 3, 40}) {
    const BesselCumulants zero = bessel_cumulants(d, 0), tiny = bessel_cumulants(d, 1e-7);
    EXPECT_TRUE(close(tiny.along4, zero.along4, 1e-12)) << d;
    EXPECT_TRUE(close(tiny.mixed4, zero.mixed4, 1e-12)) << d;
    EXPECT_TRUE(close(tiny.along3, 1e-7 * zero.along4, 1e-12)) << d;
    EXPECT_EQ(zero.along3, 0);
  }
}

// A tilt along an axis, where the entry of the matrix is the variance along the tilt itself.
TEST(RadialMeasure, VarianceAlongTheTiltKeepsItsDigits) {
  for (const BesselValues& want : bessel_values()) {
    const Index d = want.d;
    const Vector a = want.k * Vector::Unit(d, d - 1);
    const Sphere sphere(d, 1.0);
    EXPECT_TRUE(close(sphere.tilted_cov(a)(d - 1, d - 1), want.along, 1e-13)) << d << " " << want.k;
    const Vector u = zoo_vector(60, d).normalized();
    EXPECT_TRUE(close(u.dot(sphere.tilted_cov_times(want.k * u, u)), want.along, 1e-13))
        << d << " " << want.k;
    if (d < 3) continue;
    const Vector b = want.k * Vector::Unit(d - 2, 0);
    EXPECT_TRUE(close(Ball(d - 2, 1.0).tilted_cov(b)(0, 0), want.along, 1e-13)) << d;
  }
}

}  // namespace
}  // namespace esscher
