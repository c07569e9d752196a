#include "esscher/simd/convolve.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "esscher/base/error.h"
#include "esscher/simd/targets.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;
using testing::random_matrix;

Vector plain(const Vector& a, const Vector& b, Vector out) {
  for (Index i = 0; i < a.size(); ++i) {
    for (Index j = 0; j < b.size(); ++j) out[i + j] += a[i] * b[j];
  }
  return out;
}

std::span<double> all(Vector& v) { return {v.data(), static_cast<std::size_t>(v.size())}; }

TEST(Convolve, EqualsThePlainSumsOnEveryTarget) {
  for (const std::string& target : simd::supported_targets()) {
    SCOPED_TRACE(target);
    simd::force_target(target);
    for (const Index n : {1L, 2L, 7L, 33L, 100L}) {
      for (const Index m : {1L, 3L, 31L, 32L, 65L, 257L}) {
        SCOPED_TRACE(std::to_string(n) + " x " + std::to_string(m));
        Vector a = random_matrix(Stream(1), n, 1), b = random_matrix(Stream(2), m, 1);
        Vector out = random_matrix(Stream(3), n + m - 1, 1);
        const Vector want = plain(a, b, out);
        simd::convolve_add(all(a), all(b), all(out));
        EXPECT_TRUE(close(out, want, 1e-13, 1));
        // Up to seven sequences at once, as four, two and one.
        Matrix many = random_matrix(Stream(4), 7, n), sums = random_matrix(Stream(5), 7, n + m - 1);
        Matrix alone = sums;
        std::vector<std::span<const double>> rows;
        std::vector<std::span<double>> to;
        const auto row = [](Matrix& of, Index r) {
          return std::span<double>(of.row(r).data(), static_cast<std::size_t>(of.cols()));
        };
        for (Index r = 0; r < 7; ++r) {
          rows.push_back(row(many, r));
          to.push_back(row(sums, r));
          simd::convolve_add(row(many, r), all(b), row(alone, r));
        }
        simd::convolve_add(rows, all(b), to);
        EXPECT_EQ(sums, alone);
      }
    }
  }
  simd::force_target("");
}

TEST(Convolve, ShapesAreChecked) {
  std::vector<double> a(3), b(2), out(3);
  EXPECT_THROW(simd::convolve_add(a, b, out), DimensionError);
  std::vector<double> right(4), longer(4);
  EXPECT_THROW(simd::convolve_add({a, a}, b, {right}), DimensionError);
  EXPECT_THROW(simd::convolve_add({a, longer}, b, {right, right}), DimensionError);
}

}  // namespace
}  // namespace esscher
