// Equiangular tokens against their Gram matrix, sphere tokens against the exact engine, simulated
// prompts and the limit integral.
#include "esscher/scaling/published_tokens.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "esscher/base/error.h"
#include "esscher/base/linalg.h"
#include "esscher/measure/sphere.h"
#include "esscher/scaling/score_model.h"

namespace esscher {
namespace {

// One step of attention on a Gram matrix: new tokens are A x, their Gram matrix A G A'.
TEST(Equiangular, IsOneStepOfAttention) {
  for (const double rho : {0.0, 0.3, 0.8}) {
    for (const double gamma : {0.0, 0.7, 1.5, 4.0}) {
      const Index n = 12;
      Matrix G = Matrix::Constant(n, n, rho);
      G.diagonal().setOnes();
      Matrix A = (gamma * std::log(12.0) * G.array()).exp();
      const Vector sums = A.rowwise().sum();
      A = sums.cwiseInverse().asDiagonal() * A;
      const Matrix N = A * G * A.transpose();
      const EquiangularRow row = equiangular_row(12, rho, gamma);
      EXPECT_NEAR(row.self_weight, A(0, 0), 1e-13);
      EXPECT_NEAR(row.inner_product, N(0, 1) / N(0, 0), 1e-12) << rho << " " << gamma;
    }
  }
}

TEST(Equiangular, HasThreeLimits) {
  for (const double rho : {0.2, 0.5}) {
    const double critical = 1 / (1 - rho);
    for (const double gamma : {0.5 * critical, critical, 2 * critical}) {
      const EquiangularRow row = equiangular_row(1e15, rho, gamma);
      EXPECT_NEAR(row.inner_product, row.predicted_inner_product, 1e-3) << rho << " " << gamma;
    }
    EXPECT_NEAR(equiangular_row(1e15, rho, critical).predicted_inner_product,
                4 * rho / (1 + 3 * rho), 1e-15);
    const EquiangularRow near = equiangular_row(100, rho, 1);
    EXPECT_NEAR(equiangular_row(100, rho, near.boundary).self_weight, 0.5, 1e-12);
  }
}

TEST(SphereTokens, AreThoseOfTheExactEngine) {
  for (const std::int64_t dim : {2, 3, 5}) {
    const Matrix I = Matrix::Identity(dim, dim);
    Vector z = Vector::Zero(dim);
    z(0) = 1;
    for (const double beta : {0.5, 4.0, 20.0}) {
      const ScoreModel scores =
          ScoreModel::layer({Sphere(dim, 1.0), Attention::from_uv(beta * I, I), z});
      for (const double L : {2.0, 30.0, 1000.0}) {
        const double p = 0.5 * static_cast<double>(dim - 1);
        if (std::pow(40.0 / L, 1 / p) * beta > 1500) continue;  // beyond the gaps that are served
        EXPECT_NEAR(sphere_weight_square(L, dim, beta) / scores.weights(1, L).H, 1, 1e-9)
            << dim << " " << beta << " " << L;
      }
    }
  }
}

// kappa int (1 - e^-t (1+t))/t exp(-kappa (gamma + log t + E_1(t))) dt, d = 3.
TEST(SphereTokens, LimitIsTheIntegral) {
  const auto Ein = [](double t) {  // gamma + log t + E_1(t) = -sum (-t)^k / (k k!)
    return std::numbers::egamma + std::log(t) - std::expint(-t);
  };
  for (const double kappa : {0.1, 1.0, 7.0}) {
    double sum = 0;
    for (double u = -40; u < 700; u += 1.0 / 64) {
      const double t = std::exp(std::min(u, 600.0));
      const double lost = t < 1e-4 ? t * t / 2 : 1 - std::exp(-t) * (1 + t);
      const double W = t < 1e-4 ? t : (t > 600 ? std::numbers::egamma + u : Ein(t));
      sum += kappa * lost * std::exp(-kappa * W) / 64;
    }
    EXPECT_NEAR(sphere_limit(3, kappa) / sum, 1, 1e-6) << kappa;
  }
}

TEST(SphereTokens, TendToTheirLimit) {
  for (const std::int64_t dim : {2, 3, 6}) {
    double last = 1;
    for (const double L : {1e2, 1e4, 1e8}) {
      const SphereRow row = sphere_row(L, dim, 2);
      const double away = std::abs(row.H / row.predicted_H - 1);
      EXPECT_LT(away, last) << dim << " " << L;
      last = away;
    }
    EXPECT_LT(last, 1e-2) << dim;
  }
  EXPECT_NEAR(sphere_scale(1e6, 3, 4), 1e6 / 8, 1e-6);
  EXPECT_LT(sphere_row(1e12, 3, 1).H - sphere_limit(3, 1), 1e-9);
}

TEST(PublishedTokens, RefuseWhatMeansNothing) {
  EXPECT_THROW((void)equiangular_row(1, 0.5, 1), ArgumentError);
  EXPECT_THROW((void)equiangular_row(10, 1, 1), ArgumentError);
  EXPECT_THROW((void)equiangular_row(10, 0.5, -1), ArgumentError);
  EXPECT_THROW((void)sphere_row(10, 1, 1), ArgumentError);
  EXPECT_THROW((void)sphere_row(10, 2, 1e-3), ArgumentError);
  EXPECT_THROW((void)sphere_weight_square(10, 3, 0), ArgumentError);
}

}  // namespace
}  // namespace esscher
