#include "esscher/measure/score_law.h"

#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <functional>
#include <string>

#include "esscher/base/error.h"
#include "esscher/measure/affine.h"
#include "esscher/measure/categorical.h"
#include "esscher/measure/coordinates.h"
#include "esscher/measure/dirac.h"
#include "esscher/measure/elliptical.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "esscher/measure/product.h"
#include "esscher/measure/single_index.h"
#include "esscher/measure/sphere.h"
#include "esscher/measure/student.h"
#include "esscher/measure/sum.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

Vector normals(std::uint64_t seed, Index n, double scale) {
  return random_matrix(Stream(seed), n, 1, scale);
}

std::vector<AnyMeasure> measures() {
  const Matrix G = testing::random_psd(Stream(1), 4);
  const Matrix tokens = random_matrix(Stream(2), 7, 4);
  const Gaussian gaussian(normals(3, 4, 0.5), G);
  const AnyMeasure few = Product({Uniform(2), Categorical(Vector{{0.2, 0.8}})});
  return {gaussian,
          Empirical(tokens),
          Empirical(random_matrix(Stream(4), 3000, 4, 0.7)),
          Categorical(Vector{{0.1, 0.4, 0.2, 0.3}}),
          Sphere(4, 1.3),
          Ball(4, 2.0),
          Rademacher(4),
          Uniform(4),
          Laplace(4, 0.3),
          Dirac(normals(20, 4, 1)),
          Elliptical(normals(21, 4, 0.3), G, gamma_scales(2, 3)),
          SingleIndex(G.topLeftCorner(3, 3), normals(22, 3, 1), Link(LinkName::tanh), 0.1),
          SingleIndex(G.topLeftCorner(3, 3), normals(22, 3, 1), Link(LinkName::relu)),
          SingleIndex(G.topLeftCorner(3, 3), normals(22, 3, 1), Link(LinkName::sign), 0.2),
          SingleIndex(G.topLeftCorner(3, 3), normals(22, 3, 2), Link(LinkName::sin), 0.1),
          SingleIndex(G.topLeftCorner(3, 3), normals(22, 3, 1), Link::polynomial(1, 1, 0.01)),
          few,
          Affine(normals(5, 4, 1), random_matrix(Stream(6), 4, 5), Sphere(5, 1)),
          Affine(normals(5, 4, 1), random_matrix(Stream(6), 4, 16, 0.4), Rademacher(16)),
          Sum({Uniform(4), gaussian}),
          Sum({Sphere(4, 2), Gaussian(G), Empirical(tokens)}),
          Mixture(Vector{{0.3, 0.7}}, {Ball(4, 1), Sum({Sphere(4, 3), Gaussian(G)})})};
}

// The tilted moments are sums with g(s) = e^s.
TEST(ScoreLaw, TiltedMomentsAreTheClosedForms) {
  const Matrix V = random_matrix(Stream(7), 3, 4);
  for (const AnyMeasure& mu : measures()) {
    for (const double scale : {1e-3, 0.4, 2.0}) {
      const Vector a = normals(8, 4, scale).cwiseMin(3.1).cwiseMax(-3.1);
      const std::string where = mu.name() + " at |a| = " + std::to_string(a.norm());
      const Vector m = V * mu.tilted_mean(a), c = m + normals(9, 3, 0.1);
      const ScoreLaw law = score_law(mu, {a, V, c});
      EXPECT_TRUE(close(law.p.sum(), 1, 1e-13)) << where;
      const Vector growth = (law.s.array() - mu.log_mgf(a)).exp();
      EXPECT_TRUE(close(law.p.dot(growth), 1, 2e-12)) << where;
      EXPECT_TRUE(close(law.first.transpose() * growth, m - c, 1e-11, 1)) << where;
      const double trace = (V * mu.tilted_cov(a)).cwiseProduct(V).sum();
      EXPECT_TRUE(close(law.second.dot(growth), trace + (m - c).squaredNorm(), 1e-11)) << where;
      for (Index i = 1; i < law.size(); ++i) ASSERT_LT(law.s[i - 1], law.s[i]) << where;
    }
  }
}

// g(s) = y^j e^-y, where a rule that is too coarse would show.
double laplace_weight(int j, double log_y) { return std::exp(j * log_y - std::exp(log_y)); }

void expect_sums(const ScoreLaw& law, const std::function<Vector(int, double)>& want,
                 double tight) {
  for (int j = 0; j <= 2; ++j) {
    for (const double u : {-9.0, -3.0, -0.7, 0.0, 1.1, 4.0}) {
      Vector got = Vector::Zero(2 + law.width());
      for (Index i = 0; i < law.size(); ++i) {
        const double g = laplace_weight(j, u + law.s[i]);
        got[0] += g * law.p[i];
        got[1] += g * law.second[i];
        got.tail(law.width()) += g * law.first.row(i).transpose();
      }
      EXPECT_TRUE(close(got, want(j, u), tight)) << "j = " << j << ", u = " << u;
    }
  }
}

TEST(ScoreLaw, LatticeOfSignsIsTheSumOverAllOfThem) {
  constexpr Index d = 13;
  const Vector a = normals(10, d, 0.6), c = normals(11, 2, 1);
  const Matrix V = random_matrix(Stream(12), 2, d);
  const ScoreLaw law = score_law(Rademacher(d), {a, V, c});
  ASSERT_LT(law.size(), 1 << d);
  expect_sums(
      law,
      [&](int j, double u) {
        Vector sum = Vector::Zero(4);
        for (int bits = 0; bits < (1 << d); ++bits) {
          Vector z(d);
          for (Index k = 0; k < d; ++k) z[k] = (bits >> k) % 2 == 0 ? -1 : 1;
          const Vector x = V * z - c;
          const double g = laplace_weight(j, u + a.dot(z)) / (1 << d);
          sum[0] += g;
          sum[1] += g * x.squaredNorm();
          sum.tail(2) += g * x;
        }
        return sum;
      },
      1e-12);
}

// A sphere and Gaussian noise: the cosine by a fine rule of its own, and the noise by another.
// Two coordinates with slow tails, against the sum over all pairs of their nodes: the lattice, the
// reading along one vector each, and what is left out at the ends of the sum.
TEST(ScoreLaw, CoordinatesAreTheSumOverAllPairsOfNodes) {
  const double b = 0.6;
  const Vector a{{0.9, -0.7}}, c{{0.3, -0.1, 0.2}};
  const Matrix V = random_matrix(Stream(13), 3, 2);
  const ScoreLaw law = score_law(Laplace(2, b), {a, V, c});
  std::vector<ScoreLaw> parts;
  for (const Index j : {0, 1}) {
    const ScoreReading own{a.segment(j, 1), Matrix::Ones(1, 1), Vector::Zero(1)};
    parts.push_back(score_law(Laplace(1, b), own));
  }
  for (const double log_t : {-35.0, -20.0, -3.0, 0.0, 4.0}) {
    for (const int j : {0, 1, 2}) {
      const auto g = [&](double s) {
        const double y = std::exp(log_t + s);
        return std::pow(y, j) * std::exp(-y);
      };
      double p = 0, second = 0;
      Vector first = Vector::Zero(3);
      for (Index i = 0; i < parts[0].size(); ++i) {
        for (Index k = 0; k < parts[1].size(); ++k) {
          const double w = parts[0].p[i] * parts[1].p[k] * g(parts[0].s[i] + parts[1].s[k]);
          const Vector x = V.col(0) * (parts[0].first(i, 0) / parts[0].p[i]) +
                           V.col(1) * (parts[1].first(k, 0) / parts[1].p[k]) - c;
          p += w;
          first += w * x;
          second += w * x.squaredNorm();
        }
      }
      const double size = std::sqrt(p * second);
      const Vector weights = law.s.unaryExpr(g);
      const std::string where = std::to_string(log_t) + " " + std::to_string(j);
      EXPECT_TRUE(close(law.p.dot(weights), p, 1e-12)) << where;
      EXPECT_TRUE(close(law.second.dot(weights), second, 1e-12)) << where;
      EXPECT_LT((law.first.transpose() * weights - first).norm(), 1e-12 * size) << where;
    }
  }
}

TEST(ScoreLaw, SphereWithNoiseIsADoubleIntegral) {
  for (const Index d : {2, 3, 6, 7}) {
    const Vector a = Vector::Unit(d, 0) * 4.0, c = Vector::Zero(1);
    const Matrix V = Matrix::Ones(1, d);
    const AnyMeasure mu = Sum({Sphere(d, 1.5), Gaussian(0.04 * Matrix::Identity(d, d))});
    expect_sums(
        score_law(mu, {a, V, c}),
        [&](int j, double u) {
          Vector sum = Vector::Zero(3);
          double total = 0;
          const int n = 4000;
          for (int i = 0; i < n; ++i) {  // x = cos t: smooth at its ends for every d
            const double v = -4.0 + 8.0 * (i + 0.5) / n;
            const double t = 0.5 * M_PI * (1 + std::tanh(std::sinh(v)));
            const double density = std::pow(std::sin(t), static_cast<double>(d - 2)) *
                                   std::cosh(v) / std::pow(std::cosh(std::sinh(v)), 2);
            total += density;
            for (double g = -9; g <= 9; g += 0.25) {
              const double along = 1.5 * std::cos(t) + 0.2 * g;
              const double rest = (d - 1) * (0.04 + 2.25 * std::pow(std::sin(t), 2) / (d - 1));
              const double w = 0.25 * std::exp(-0.5 * g * g) / std::sqrt(2 * M_PI) * density *
                               laplace_weight(j, u + 4 * along);
              sum[0] += w;
              sum[1] += w * (along * along + rest);
              sum[2] += w * along;
            }
          }
          return Vector(sum / total);
        },
        1e-11);
  }
}

// E[g(t)] of Student's t by the trapezoidal rule in v, t = sinh v, |v| <= reach.
Vector student_sum(double nu, const std::function<Vector(double)>& g, double h, double reach) {
  const double c = std::exp(std::lgamma((nu + 1) / 2) - std::lgamma(nu / 2)) / std::sqrt(nu * M_PI);
  Vector sum = Vector::Zero(g(0).size());
  const int n = static_cast<int>(reach / h);
  for (int i = -n; i <= n; ++i) {
    const double t = std::sinh(h * i);
    sum += h * std::cosh(h * i) * c * std::exp(-0.5 * (nu + 1) * std::log1p(t * t / nu)) * g(t);
  }
  return sum;
}

// Sums over nodes in the middle; the density and the mass of the tails.
TEST(ScoreLaw, StudentIsOneIntegral) {
  for (const double nu : {2.5, 5.0, 40.0}) {
    for (const double tau : {0.02, 1.0, 6.0}) {
      const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
      Vector a{{0.7, -0.4}};
      a *= tau / std::sqrt(a.dot(G * a));
      const Vector m{{0.2, -0.1}}, c{{0.5}};
      const Matrix V{{1.0, 2.0}};
      const Vector Vb = V * G * a / tau;
      const double rest = (V * G * V.transpose())(0, 0) - Vb.squaredNorm();
      const ScoreLaw law = score_law(Student(nu, m, G), {a, V, c});
      ASSERT_TRUE(law.tails);
      EXPECT_TRUE(close(law.p.sum(), 1, 1e-13));
      const LongTail& tail = law.tails->parts.front();
      const auto moments = [&](double t, double g) {
        const double x = (V * m)(0) + t * Vb(0) - c(0);
        return Vector{{g, g * (x * x + rest * (nu + t * t) / (nu - 1)), g * x}};
      };
      for (int j = 0; j <= 2; ++j) {
        for (const double u : {-70.3, -30.0, -3.0, 0.0, 1.1, 9.0, 60.0}) {
          if (-u > law.tails->high || -u < law.tails->low) continue;
          if (j == 0 && u < -5) continue;  // a step that the rule does not see
          const Vector want = student_sum(
              nu, [&](double t) { return moments(t, laplace_weight(j, u + a.dot(m) + tau * t)); },
              1.0 / 1024, 40);
          Vector got = Vector::Zero(3);
          for (Index i = 0; i < law.size(); ++i) {
            const double g = laplace_weight(j, u + law.s[i]);
            got += g * Vector{{law.p[i], law.second[i], law.first(i, 0)}};
          }
          // Without y, second moments beyond the nodes are missing.
          const Index known = j == 0 ? 1 : 3;
          EXPECT_TRUE(close(got.head(known), want.head(known), 1e-11, 1e-13))
              << "nu " << nu << ", tau " << tau << ", j " << j << ", u " << u;
        }
      }
      for (const double t : {-70.0, -3.0, -0.1, 0.7, 2.0, 30.0, 4e5}) {
        const double s = a.dot(m) + tau * t;
        const double half = 0.5 * boost::math::ibeta(nu / 2, 0.5, nu / (nu + t * t));
        EXPECT_TRUE(close(tail.above(s), t > 0 ? half : 1 - half, 1e-12)) << nu << " " << t;
        EXPECT_TRUE(close(tail.below(s) + tail.above(s), 1, 1e-14));
        const double norm = std::tgamma((nu + 1) / 2) / std::tgamma(nu / 2) / std::sqrt(nu * M_PI);
        const double density = norm / tau * std::pow(1 + t * t / nu, -(nu + 1) / 2);
        EXPECT_TRUE(close(tail.density(s), density, 1e-12)) << nu << " " << t;
      }
    }
  }
}

TEST(ScoreLaw, StudentMixturesKeepTheirTailsAndSumsAreRefused) {
  const Matrix I = Matrix::Identity(2, 2);
  const AnyMeasure student = Student(4, Vector{{1.0, 0.0}}, I);
  const ScoreReading reading{Vector{{0.8, 0.3}}, I, Vector::Zero(2)};
  const ScoreLaw alone = score_law(student, reading);
  const AnyMeasure wide = Gaussian(400 * I);
  const ScoreLaw mixture = score_law(Mixture(Vector{{0.25, 0.75}}, {student, wide}), reading);
  EXPECT_TRUE(
      close(mixture.tails->parts[0].above(300), 0.25 * alone.tails->parts[0].above(300), 1e-14));
  EXPECT_TRUE(close(mixture.p.sum(), 1, 1e-13));
  const ScoreLaw gaussian = score_law(wide, reading);
  EXPECT_GE(mixture.tails->high, gaussian.s[gaussian.size() - 1] + 45);
  EXPECT_LE(mixture.tails->low, gaussian.s[0] - 7);
  EXPECT_GT(mixture.tails->high, alone.tails->high);
  const Vector c{{0.5, -1.0}};
  const ScoreLaw image = score_law(Affine(c, I, student), reading);
  EXPECT_TRUE(close(image.tails->high, alone.tails->high + reading.a.dot(c), 1e-14));
  EXPECT_TRUE(close(image.tails->parts[0].above(100 + reading.a.dot(c)),
                    alone.tails->parts[0].above(100), 1e-10));
  EXPECT_FALSE(has_score_law(Sum({student, Gaussian(I)})));
  EXPECT_FALSE(has_score_law(Product({student, Uniform(1)})));
  EXPECT_FALSE(has_score_law(Student(2.1, I)));
  EXPECT_TRUE(has_score_law(Mixture(Vector{{0.5, 0.5}}, {student, Uniform(2)})));
}

TEST(ScoreLaw, TokensThatTheQueryDoesNotSeeHaveOneScore) {
  const Matrix V = Matrix::Identity(2, 2);
  const ScoreLaw law = score_law(Uniform(2), {Vector::Zero(2), V, Vector::Ones(2)});
  ASSERT_EQ(law.size(), 1);
  EXPECT_TRUE(close(law.second[0], 2 + 2.0 / 3, 1e-14));
}

TEST(ScoreLaw, RefusalsNameTheEngineThatServes) {
  const Matrix V = Matrix::Identity(2, 2);
  const Vector c = Vector::Zero(2);
  const auto message = [&](const AnyMeasure& mu, const Vector& a) {
    return testing::message_of<CapabilityError>([&] { return score_law(mu, {a, V, c}); });
  };
  EXPECT_EQ(message(Sphere(2, 1), Vector{{3e3, 0.0}}),
            "exact: scores of sphere tokens reach 3000 here, their nodes reach 1000; the direct "
            "engine can serve them");
  EXPECT_NE(message(Laplace(2, 1), Vector{{0.999, 0.0}}).find("laplace"), std::string::npos);
  EXPECT_EQ(message(Laplace(2, 1), Vector{{0.5, 0.0}}), "no error");
}

}  // namespace
}  // namespace esscher
