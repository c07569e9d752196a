#include "esscher/training/parametrisation.h"

#include <gtest/gtest.h>

#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

// Small and large matrices are multiplied by different code.
TEST(Parametrisation, ProductsAreThoseOfTheMatricesInEveryDimension) {
  for (const Index D : {2L, 11L, 12L, 21L}) {
    for (const auto space : {ParameterSpace::KQV, ParameterSpace::KQVO}) {
      const Index k = D + 1;
      const Parametrisation p{space, D, k, 0.3};
      const Vector theta = testing::random_matrix(1, p.size(), Stream(5)).row(0).transpose();
      const Readout slope = testing::random_readout(D, 1, Stream(6));
      const Matrix K = Eigen::Map<const Matrix>(theta.data(), k, D);
      const Matrix Q = Eigen::Map<const Matrix>(theta.data() + k * D, k, D);
      EXPECT_TRUE(testing::close(p.readout(theta).U, 0.3 * K.transpose() * Q, 1e-13)) << D;
      const Vector back = p.pull_back(theta, slope);
      const Matrix grad_K = Eigen::Map<const Matrix>(back.data(), k, D);
      const Matrix grad_Q = Eigen::Map<const Matrix>(back.data() + k * D, k, D);
      EXPECT_TRUE(testing::close(grad_K, 0.3 * Q * slope.U.transpose(), 1e-13)) << D;
      EXPECT_TRUE(testing::close(grad_Q, 0.3 * K * slope.U, 1e-13)) << D;
    }
  }
}

}  // namespace
}  // namespace esscher
