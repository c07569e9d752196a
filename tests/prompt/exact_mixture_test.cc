#include "esscher/prompt/exact_mixture.h"

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/mixture.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

GaussianLaw on_line(double mean, double variance) {
  return {Vector::Constant(1, mean), Matrix::Constant(1, 1, variance)};
}

GaussianMixtureLaw clouds(Index d) {
  GaussianMixtureLaw law{Vector{{0.5, 0.3, 0.2}}, {}};
  for (std::uint64_t k = 0; k < 3; ++k) {
    Matrix F(d, d);
    Stream(91, k).fill_normal(0, {F.data(), static_cast<std::size_t>(F.size())});
    Vector m(d);
    Stream(92, k).fill_normal(0, {m.data(), static_cast<std::size_t>(m.size())});
    law.components.push_back({1.5 * m, F * F.transpose() / static_cast<double>(d)});
  }
  return law;
}

AnyMeasure measure_of(const GaussianMixtureLaw& law) {
  std::vector<AnyMeasure> parts;
  for (const GaussianLaw& part : law.components) parts.emplace_back(Gaussian(part.mean, part.cov));
  return Mixture(law.weights, parts);
}

Attention layer(Index d) {
  Matrix M(4 * d, d);
  Stream(93).fill_normal(0, {M.data(), static_cast<std::size_t>(M.size())});
  M /= std::sqrt(static_cast<double>(d));
  return Attention::from_kqv(M.topRows(d), M.middleRows(d, d), M.middleRows(2 * d, 2), 0.6);
}

// E of (mean error)^2 and (variance error)^2 of a prompt of L = 2 or 3 tokens on a line, by the
// trapezoidal rule over the tokens themselves: no Laplace representation, no partitions.
struct Brute {
  double output = 0, gradient = 0, gradient_bias = 0;
};

Brute brute_force(const GaussianMixtureLaw& law, double a, int L) {
  const AnyMeasure mu = measure_of(law);
  const double m = mu.tilted_mean(Vector{{a}})[0], C = mu.tilted_cov(Vector{{a}})(0, 0);
  constexpr int kNodes = 240;
  constexpr double kEnd = 12, kWidth = 2 * kEnd / kNodes;
  std::vector<double> x(kNodes), p(kNodes), w(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    x[i] = -kEnd + (i + 0.5) * kWidth;
    w[i] = std::exp(a * x[i]);
    for (std::size_t k = 0; k < law.components.size(); ++k) {
      const double v = law.components[k].cov(0, 0), dx = x[i] - law.components[k].mean[0];
      p[i] += kWidth * law.weights[static_cast<Index>(k)] * std::exp(-0.5 * dx * dx / v) /
              std::sqrt(2 * std::numbers::pi * v);
    }
  }
  Brute out;
  for (int i = 0; i < kNodes; ++i) {
    for (int j = 0; j < kNodes; ++j) {
      if (p[i] * p[j] < 1e-20) continue;
      for (int k = 0; k < (L == 3 ? kNodes : 1); ++k) {
        const double third = L == 3 ? w[k] : 0, chance = p[i] * p[j] * (L == 3 ? p[k] : 1);
        const double S = w[i] + w[j] + third;
        const double mean = (w[i] * x[i] + w[j] * x[j] + third * x[k]) / S;
        const double variance = (w[i] * std::pow(x[i] - mean, 2) + w[j] * std::pow(x[j] - mean, 2) +
                                 third * std::pow(x[k] - mean, 2)) /
                                S;
        out.output += chance * (mean - m) * (mean - m);
        out.gradient += chance * (variance - C) * (variance - C);
        out.gradient_bias += chance * (variance - C);
      }
    }
  }
  return out;
}

TEST(ExactMixture, TwoAndThreeTokensByBruteForce) {
  const GaussianMixtureLaw law{Vector{{0.6, 0.4}}, {on_line(-0.8, 0.5), on_line(1.4, 0.9)}};
  for (double a : {0.0, 0.9, 2.5}) {
    const Attention attention = Attention::from_uv(Matrix::Constant(1, 1, a), Matrix::Ones(1, 1));
    for (int L : {2, 3}) {
      const Brute want = brute_force(law, a, L);
      MixtureErrors errors(law, attention, Vector::Ones(1));
      const ErrorParts gradient = errors.error_parts(Metric::grad_u, Length(L));
      EXPECT_TRUE(close(gradient.total(), want.gradient, 1e-9)) << a << " " << L;
      EXPECT_TRUE(close(gradient.bias2, want.gradient_bias * want.gradient_bias, 1e-9)) << a;
      EXPECT_TRUE(close(errors.error_parts(Metric::output, Length(L)).total(), want.output, 1e-9));
    }
  }
}

// One token has no spread: Chat = 0, whatever the mixture, so the error is the limit itself.
TEST(ExactMixture, OneTokenHasNoCovariance) {
  const GaussianMixtureLaw law = clouds(3);
  const Attention attention = layer(3);
  for (double size : {0.1, 1.0, 4.0}) {
    const Vector z = size * Vector{{0.7, -0.4, 0.5}};
    const Matrix C = measure_of(law).tilted_cov(attention.tilt(z));
    const ErrorParts got = MixtureErrors(law, attention, z).error_parts(Metric::grad_u, Length(1));
    const double want = z.squaredNorm() * (attention.V() * C).squaredNorm();
    EXPECT_TRUE(close(got.bias2, want, 1e-8)) << size;
    EXPECT_TRUE(close(got.total(), want, 1e-8)) << size;
  }
}

// Lengths and metrics asked in any order share one object's nodes and answer as fresh ones do.
TEST(ExactMixture, SharedNodesChangeNothing) {
  const GaussianMixtureLaw law = clouds(2);
  const Attention attention = layer(2);
  const Vector z = Vector{{1.5, -2.0}};
  MixtureErrors shared(law, attention, z);
  for (std::int64_t L : {1000000000L, 3L, 40L, 3L, 100000L, 1L}) {
    for (Metric metric : {Metric::grad_q, Metric::output, Metric::grad_u}) {
      const ErrorParts got = shared.error_parts(metric, Length(L));
      const ErrorParts want = MixtureErrors(law, attention, z).error_parts(metric, Length(L));
      EXPECT_EQ(got.bias2, want.bias2) << L << name(metric);
      EXPECT_EQ(got.variance, want.variance) << L << name(metric);
    }
    EXPECT_EQ(shared.effective_sample_size(Length(L)),
              MixtureErrors(law, attention, z).effective_sample_size(Length(L)));
  }
}

// A component of no weight is not there; one component is a Gaussian.
TEST(ExactMixture, EmptyComponentsAreDropped) {
  GaussianMixtureLaw law = clouds(2);
  law.weights << 0, 1, 0;
  const Attention attention = layer(2);
  const Vector z = Vector{{0.5, 1.0}};
  for (Metric metric : {Metric::output, Metric::grad_u, Metric::grad_k}) {
    EXPECT_EQ(MixtureErrors(law, attention, z).error_parts(metric, Length(7)).total(),
              mean_square_error(metric, law.components[1], attention, z, Length(7)));
  }
}

}  // namespace
}  // namespace esscher
