// Dirac, elliptical, Student and single-index laws against values that do not come from them:
// brute-force quadrature on a fine grid, Gaussian mixtures, closed forms of truncated Gaussians.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "esscher/measure/link_pair.h"
#include "esscher/measure/tail_growth.h"
#include "tests/testing.h"
#include "tests/zoo.h"

namespace esscher {
namespace {

using testing::agrees;
using testing::close;
using ::testing::HasSubstr;
using testing::message_of;
using testing::zoo_matrix;
using testing::zoo_vector;

double phi(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// log int e^{c v + beta g(rho v)} dN(v) by a trapezoidal rule that breaks at 0; the step is 1e-4 and
// the rule is refined by one Richardson step, which is exact to 1e-13 for these links.
struct BruteForce {
  double log_mgf = 0, mean_h = 0, mean_y = 0, var_h = 0, var_y = 0, cross = 0;
};

BruteForce brute_force(const std::function<double(double)>& g, double rho, double c, double beta) {
  constexpr int kPanels = 6000;
  constexpr double kReach = 30;
  // Simpson's rule on each side of 0, with one-sided values at 0.
  std::array<double, 6> sum{};
  const auto add = [&](double v, double side, double weight) {
    const double y = g(side * 1e-300 + rho * v);
    const double density = weight * std::exp(c * v + beta * y - 0.5 * v * v) / std::sqrt(2 * M_PI);
    const double H = rho * v;
    for (const auto& [k, f] :
         {std::pair{0, 1.0}, {1, H}, {2, y}, {3, H * H}, {4, y * y}, {5, H * y}})
      sum[static_cast<std::size_t>(k)] += density * f;
  };
  const double step = kReach / kPanels;
  for (const double side : {-1.0, 1.0}) {
    for (int i = 0; i < kPanels; ++i) {
      const double a = side * i * step, b = side * (i + 1) * step;
      // Boole's rule on each panel.
      for (const auto& [t, w] :
           {std::pair{0.0, 7.0}, {0.25, 32.0}, {0.5, 12.0}, {0.75, 32.0}, {1.0, 7.0}})
        add(a + t * (b - a), side, w * step / 90);
    }
  }
  BruteForce out;
  out.log_mgf = std::log(sum[0]);
  out.mean_h = sum[1] / sum[0];
  out.mean_y = sum[2] / sum[0];
  out.var_h = sum[3] / sum[0] - out.mean_h * out.mean_h;
  out.var_y = sum[4] / sum[0] - out.mean_y * out.mean_y;
  out.cross = sum[5] / sum[0] - out.mean_h * out.mean_y;
  return out;
}

struct LinkCase {
  const char* label;
  Link link;
  std::function<double(double)> g;
};

std::vector<LinkCase> link_cases() {
  const auto sign = [](double t) { return t > 0 ? 1.0 : -1.0; };
  const auto wave = [](double t) { return std::cos(2 * t) + 0.3 * std::abs(t); };
  const LinkFunction many = [wave](std::span<const double> t, std::span<double> out) {
    for (std::size_t i = 0; i < t.size(); ++i) out[i] = wave(t[i]);
  };
  return {{"sign", Link(LinkName::sign), sign},
          {"probit", Link(LinkName::probit), phi},
          {"tanh", Link(LinkName::tanh), [](double t) { return std::tanh(t); }},
          {"relu", Link(LinkName::relu), [](double t) { return t > 0 ? t : 0; }},
          {"sin", Link(LinkName::sin), [](double t) { return std::sin(t); }},
          {"erf", Link(LinkName::erf), [](double t) { return std::erf(t); }},
          {"square", Link::polynomial(0.3, -0.5, 0.02),
           [](double t) { return 0.3 - 0.5 * t + 0.02 * t * t; }},
          {"custom", Link::custom(many, {0.0}), wave}};
}

TEST(LinkPair, AgreesWithBruteForceForEveryLink) {
  for (const auto& [label, link, g] : link_cases()) {
    for (const double rho : {0.2, 1.0, 3.0}) {
      const LinkPair pair(rho, link);
      for (const auto& [c, beta] : {std::pair{0.0, 0.0},
                                    {0.3, 0.05},
                                    {0.0, 1.0},
                                    {-2.0, 2.5},
                                    {3.0, -4.0},
                                    {-6.0, 8.0},
                                    {8.0, -1.0}}) {
        if (label == std::string("square") && beta > 1) continue;
        const Vector a{{c / rho, beta}};
        const BruteForce want = brute_force(g, rho, c, beta);
        const std::string where = std::string(label) + " rho " + std::to_string(rho) + " at " +
                                  std::to_string(c) + "," + std::to_string(beta);
        EXPECT_TRUE(close(pair.log_mgf(a), want.log_mgf, 2e-12, 1)) << where;
        const Vector mean = pair.tilted_mean(a);
        EXPECT_TRUE(close(mean(0), want.mean_h, 1e-11, rho)) << where;
        EXPECT_TRUE(close(mean(1), want.mean_y, 1e-11, 1)) << where;
        const Matrix cov = pair.tilted_cov(a);
        EXPECT_TRUE(close(cov(0, 0), want.var_h, 1e-9, 0.1 * rho * rho)) << where;
        EXPECT_TRUE(close(cov(1, 1), want.var_y, 1e-9, 0.1)) << where;
        EXPECT_TRUE(close(cov(0, 1), want.cross, 1e-9, 0.1)) << where;
      }
    }
  }
}

// relu and sign are truncated Gaussians: closed forms at tilts where no grid would do.
TEST(LinkPair, LargeTiltsOfPiecewiseLinearLinks) {
  for (const double beta : {30.0, 1e3, 1e4}) {
    const double rho = 0.7;
    const LinkPair relu(rho, Link(LinkName::relu));
    const Vector a{{0.2, beta}};
    // On H > 0 the law is N(rho^2 (eta + beta), rho^2) far from 0.
    const double centre = rho * rho * (0.2 + beta);
    EXPECT_TRUE(close(relu.tilted_mean(a), Vector{{centre, centre}}, 1e-12)) << beta;
    EXPECT_TRUE(close(relu.tilted_cov(a), Matrix::Constant(2, 2, rho * rho), 1e-10)) << beta;
    EXPECT_TRUE(close(relu.log_mgf(a), 0.5 * rho * rho * (0.2 + beta) * (0.2 + beta), 1e-12));
    const LinkPair sign(rho, Link(LinkName::sign));
    const Vector b{{0.0, beta}};
    EXPECT_TRUE(close(sign.tilted_mean(b), Vector{{rho * std::sqrt(2 / M_PI), 1.0}}, 1e-12));
    EXPECT_TRUE(close(sign.tilted_cov(b)(0, 0), rho * rho * (1 - 2 / M_PI), 1e-10));
  }
  // Far beyond what is resolved, the law moves along the ray.
  const LinkPair relu(1, Link(LinkName::relu));
  EXPECT_TRUE(close(relu.tilted_mean(Vector{{0.0, 1e12}}), Vector{{1e12, 1e12}}, 1e-9));
}

// Derivatives of the link law at tiny tilts are its covariance, to relative accuracy.
TEST(LinkPair, TinyTiltsKeepTheirRelativeAccuracy) {
  for (const auto& [label, link, g] : link_cases()) {
    const LinkPair pair(0.8, link);
    const Matrix cov = pair.tilted_cov(Vector::Zero(2));
    const Vector a{{3e-11, -2e-11}};
    EXPECT_TRUE(close(pair.mean_shift(a), cov * a, 1e-9)) << label;
    EXPECT_TRUE(close(pair.centred_log_mgf(a), 0.5 * a.dot(cov * a), 1e-9)) << label;
  }
}

// At beta = 0 an infinite prompt of sign labels answers 2 Phi(h/rho) - 1.
TEST(SingleIndex, PredictsTheSmoothedLink) {
  const Matrix sigma{{1.0, 0.3}, {0.3, 0.5}};
  const Vector w{{0.7, -0.4}};
  const double rho = std::sqrt(w.dot(sigma * w));
  const SingleIndex law(sigma, w, Link(LinkName::sign));
  const Vector alpha{{0.9, 1.3}};
  const double h = w.dot(sigma * alpha);
  const Vector m = law.tilted_mean(Vector{{alpha(0), alpha(1), 0.0}});
  EXPECT_TRUE(close(m(2), 2 * phi(h / rho) - 1, 1e-13));
  EXPECT_TRUE(close(m.head(2), sigma * alpha, 1e-13));
}

// The formulas of Psi, with derivatives by quadrature of the one-dimensional law.
TEST(SingleIndex, FollowsTheFormulasOfPsi) {
  const Matrix sigma{{1.0, 0.3}, {0.3, 0.5}};
  const Vector w{{0.7, -0.4}};
  const double rho2 = w.dot(sigma * w), rho = std::sqrt(rho2), noise = 0.3;
  const SingleIndex law(sigma, w, Link(LinkName::relu), noise);
  const Vector a{{0.9, 1.3, -0.8}};
  const Vector alpha = a.head(2), Sw = sigma * w;
  const double beta = a(2), h = w.dot(sigma * alpha);
  const BruteForce p = brute_force([](double t) { return t > 0 ? t : 0; }, rho, h / rho, beta);
  const double psi = p.log_mgf - 0.5 * h * h / rho2 + 0.5 * beta * beta * noise;
  EXPECT_TRUE(close(law.log_mgf(a), 0.5 * alpha.dot(sigma * alpha) + psi, 1e-11));
  const Vector m = law.tilted_mean(a);
  EXPECT_TRUE(close(m.head(2), sigma * alpha + Sw * ((p.mean_h - h) / rho2), 1e-11));
  EXPECT_TRUE(close(m(2), p.mean_y + beta * noise, 1e-11, 1));
  const Matrix C = law.tilted_cov(a);
  EXPECT_TRUE(close(C.topLeftCorner(2, 2),
                    sigma + (p.var_h / rho2 / rho2 - 1 / rho2) * Sw * Sw.transpose(), 1e-9));
  EXPECT_TRUE(close(C.topRightCorner(2, 1), Sw * (p.cross / rho2), 1e-9));
  EXPECT_TRUE(close(C(2, 2), p.var_y + noise, 1e-9));
}

// In one dimension nothing is left of x beside the index, and rounding must not make it negative.
TEST(SingleIndex, OneFeature) {
  for (const double variance : {0.7, 0.3, 1.1, 3.3}) {
    const SingleIndex law(Matrix::Constant(1, 1, variance), Vector::Constant(1, 1.2),
                          Link(LinkName::tanh));
    EXPECT_TRUE(close(law.second_moment()(0, 0), variance, 1e-14));
  }
}

TEST(SingleIndex, SpecialCasesAreGaussian) {
  const Matrix sigma = Matrix::Identity(2, 2);
  const Vector w{{2.0, 1.0}};
  const auto linear = gaussian_law(SingleIndex(sigma, w, Link::polynomial(1, 0.5, 0), 0.25));
  ASSERT_TRUE(linear);
  EXPECT_TRUE(close(linear->mean, Vector{{0.0, 0.0, 1.0}}, 1e-15));
  const Matrix cov{{1, 0, 1}, {0, 1, 0.5}, {1, 0.5, 1.5}};
  EXPECT_TRUE(close(linear->cov, cov, 1e-14));
  const auto flat = gaussian_law(SingleIndex(sigma, Vector::Zero(2), Link(LinkName::tanh), 1));
  ASSERT_TRUE(flat);
  EXPECT_TRUE(close(flat->cov, Matrix::Identity(3, 3), 1e-15));
  EXPECT_FALSE(gaussian_law(SingleIndex(sigma, w, Link(LinkName::tanh))));
}

TEST(SingleIndex, RefusesWhatItCannotServe) {
  const Matrix I = Matrix::Identity(2, 2);
  const Vector w = Vector::Ones(2);
  EXPECT_THROW(SingleIndex(I, Vector::Ones(3), Link(LinkName::tanh)), DimensionError);
  EXPECT_THAT(message_of<ArgumentError>([&] { SingleIndex s(I, w, Link(LinkName::tanh), -1); }),
              HasSubstr("noise_variance is -1"));
  const SingleIndex square(I, w, Link::polynomial(0, 0, 1));
  EXPECT_TRUE(std::isinf(square.sub_gaussian()));
  EXPECT_THAT(message_of<DomainError>([&] {
                (void)square.log_mgf(Vector{{0.0, 0.0, 0.3}});
              }),
              HasSubstr("beta is 0.3, expected 2 beta c2 rho^2 < 1"));
  const LinkFunction steep = [](std::span<const double> t, std::span<double> out) {
    for (std::size_t i = 0; i < t.size(); ++i) out[i] = t[i] * t[i];
  };
  EXPECT_THAT(message_of<ArgumentError>([&] { (void)Link::custom(steep); }),
              HasSubstr("at most linear growth"));
}

// A scale mixture written as a mixture of Gaussians is the same law.
TEST(Elliptical, IsAMixtureOfGaussians) {
  const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
  const Vector m{{0.4, -1.0}};
  const ScaleLaw scales{Vector{{0.25, 1.0, 3.0}}, Vector{{1.0, 2.0, 1.0}}};
  const Elliptical law(m, G, scales);
  const Mixture twin(scales.weights, {Gaussian(m, 0.25 * G), Gaussian(m, G), Gaussian(m, 3 * G)});
  const Matrix W{{1.0, 0.2}, {0.2, 2.0}}, Y{{0.5, -0.3}, {-0.3, 1.0}};
  for (const double size : {1e-9, 0.1, 1.0, 4.0, 30.0}) {
    const Vector a = size * Vector{{0.7, -0.4}};
    EXPECT_TRUE(close(law.centred_log_mgf(a), twin.centred_log_mgf(a), 1e-12)) << size;
    EXPECT_TRUE(close(law.mean_shift(a), twin.mean_shift(a), 1e-12)) << size;
    EXPECT_TRUE(close(law.tilted_cov(a), twin.tilted_cov(a), 1e-12)) << size;
    const HigherCumulants got = law.higher_cumulants(a, W, Y),
                          want = twin.higher_cumulants(a, W, Y);
    EXPECT_TRUE(close(got.third_w, want.third_w, 1e-10, 1e-9)) << size;
    EXPECT_TRUE(close(got.third_y, want.third_y, 1e-10, 1e-9)) << size;
    EXPECT_TRUE(close(got.fourth, want.fourth, 1e-10, 1)) << size;
  }
  EXPECT_TRUE(close(law.sub_gaussian(), std::sqrt(3 * max_eigenvalue(G)), 1e-14));
  EXPECT_TRUE(close(tail_growth(law)->forms.front(), 3 * G, 1e-14));
}

// Moments of the gamma law on [0, bound], by quadrature on a grid in sqrt(w).
TEST(Elliptical, GammaScalesHaveTheMomentsOfTheGammaLaw) {
  for (const auto& [shape, bound] : {std::pair{1.0, 3.0}, {2.5, 4.0}, {0.6, 10.0}, {8.0, 20.0}}) {
    const ScaleLaw law = gamma_scales(shape, bound);
    const auto moment = [&, shape = shape, bound = bound](double q) {
      // w = bound x^{1/shape} takes the power out; the rest is integrated by x = y^4 panels.
      double sum = 0;
      constexpr int kSteps = 200000;
      for (int i = 0; i < kSteps; ++i) {
        const double y = (i + 0.5) / kSteps, x = y * y * y * y;
        const double w = bound * std::pow(x, 1 / shape);
        sum += 4 * y * y * y * std::exp((q - shape) * w);
      }
      return sum / kSteps;
    };
    for (const double q : {0.5, 2.0, 5.0}) {
      const double got = std::log(law.weights.dot((q * law.scales.array()).exp().matrix()));
      EXPECT_TRUE(close(got, std::log(moment(q) / moment(0)), 1e-7)) << shape << " " << q;
    }
  }
  // Shape 1 has a closed form: K(q) = log of (e^{(q-1)b} - 1)/((q-1)) / (1 - e^{-b}).
  const ScaleLaw law = gamma_scales(1, 3);
  const double want = std::log(std::expm1(3.0 * 3) / 3 / -std::expm1(-3.0));
  EXPECT_TRUE(
      close(std::log(law.weights.dot((4 * law.scales.array()).exp().matrix())), want, 1e-12));
}

TEST(Elliptical, BadParameters) {
  const Matrix I = Matrix::Identity(2, 2);
  EXPECT_THAT(message_of<ArgumentError>([&] {
                Elliptical e(I, {Vector{{1.0, -2.0}}, Vector::Ones(2)});
              }),
              HasSubstr("scales[1] is -2"));
  EXPECT_THROW(Elliptical(I, {Vector::Ones(2), Vector::Ones(3)}), DimensionError);
  EXPECT_THAT(message_of<ArgumentError>([] { (void)gamma_scales(50, 10); }),
              HasSubstr("shape * bound is 500"));
}

TEST(Student, HasNoLimitAndSaysSo) {
  const Student law(5, Vector::Ones(2), Matrix::Identity(2, 2));
  const std::string text = message_of<DomainError>([&] {
    (void)law.tilted_mean(Vector{{0.1, 0.0}});
  });
  EXPECT_THAT(text, HasSubstr("such prompts have no limit"));
  EXPECT_THAT(text, HasSubstr("nu = 5"));
  EXPECT_EQ(law.log_mgf(Vector::Zero(2)), 0);
  EXPECT_TRUE(close(law.tilted_mean(Vector::Zero(2)), Vector::Ones(2), 0));
  EXPECT_TRUE(std::isinf(law.sub_gaussian()));
  EXPECT_TRUE(close(tail_growth(law)->wild, Matrix::Identity(2, 2), 0));
  EXPECT_THROW((void)Student(2, Matrix::Identity(2, 2)).second_moment(), DomainError);
  EXPECT_THROW((void)Student(1, Matrix::Identity(2, 2)).mean(), DomainError);
}

// |x| of nu = 9 has finite fourth moments, so that second moments can be compared; the law of one
// coordinate is compared with its distribution function at one point.
TEST(Student, SamplesHaveTheirLaw) {
  const Matrix G{{1.0, 0.3}, {0.3, 0.5}};
  const Student law(9, Vector{{0.5, 0.0}}, G);
  const Index n = 20000;
  const Matrix z = law.sample(Stream(5), n).tokens();
  const auto mean_of = [n](const Vector& x) {
    const double mean = x.mean();
    return Estimate{mean, std::sqrt((x.array() - mean).square().sum()) / static_cast<double>(n), n,
                    Engine::direct};
  };
  for (Index i = 0; i < 2; ++i) {
    EXPECT_TRUE(agrees(mean_of(z.col(i)), law.mean()(i)));
    for (Index j = 0; j <= i; ++j) {
      EXPECT_TRUE(agrees(mean_of(z.col(i).cwiseProduct(z.col(j))), law.second_moment()(i, j)));
    }
  }
  // P(|t_9| > 2.262157) = 0.05.
  const Vector beyond = ((z.col(0).array() - 0.5).abs() > 2.262157162740992).cast<double>();
  EXPECT_TRUE(agrees(mean_of(beyond), 0.05));
  EXPECT_TRUE(close(law.sample(Stream(5), 7).tokens(), z.topRows(7), 0));
}

}  // namespace
}  // namespace esscher
