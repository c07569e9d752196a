#include "esscher/attention/attention.h"

#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/measure/gaussian.h"
#include "esscher/measure/gaussian_view.h"
#include "tests/testing.h"

namespace esscher {
namespace {

TEST(Attention, GaussianLimitIsAffine) {
  Matrix G(2, 2);
  G << 2, 1, 1, 3;
  const Vector m = Vector::LinSpaced(2, 1, 2);
  const Gaussian mu(m, G);
  Matrix U(2, 2);
  U << 0.5, -1, 2, 0.25;
  Matrix V(1, 2);
  V << 1, -2;
  const Attention T = Attention::from_uv(U, V);
  const Vector z = Vector::LinSpaced(2, -1, 1);
  EXPECT_TRUE(testing::close(T(mu, z), V * m + V * G * U * z, 1e-15));
  EXPECT_TRUE(testing::close(T(AnyMeasure(mu), z), T(mu, z), 0));
  EXPECT_TRUE(gaussian_law(mu).has_value());
}

}  // namespace
}  // namespace esscher
