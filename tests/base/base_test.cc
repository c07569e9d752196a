#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/base/length.h"
#include "esscher/base/linalg.h"
#include "esscher/base/number_text.h"
#include "esscher/base/parallel.h"
#include "tests/testing.h"

namespace esscher {
namespace {

TEST(Length, ParsesIntegersAndInfinity) {
  EXPECT_EQ(Length::parse("1000"), Length(1000));
  EXPECT_EQ(Length::parse("1e6"), Length(1000000));
  EXPECT_EQ(Length::parse("9007199254740993").count(), 9007199254740993);
  EXPECT_TRUE(Length::parse("inf").is_infinite());
  for (const char* bad : {"", "-1", "1.5", "nan", "1e30", "10x"}) {
    EXPECT_THROW(Length::parse(bad), ArgumentError) << bad;
  }
}

TEST(Linalg, FactorOfSingularMatrixHasItsRank) {
  const Vector v = (Vector(3) << 1, -2, 3).finished();
  const Matrix G = v * v.transpose();
  const Matrix F = psd_factor("test", "G", G);
  EXPECT_EQ(F.cols(), 1);
  EXPECT_TRUE(testing::close(F * F.transpose(), G, 1e-14));
  const Matrix root = psd_sqrt("test", "G", G);
  EXPECT_TRUE(testing::close(root * root, G, 1e-13));
}

TEST(Linalg, RefusesWhatIsNotPsd) {
  const Matrix negative = (Matrix(2, 2) << 1, 0, 0, -1).finished();
  EXPECT_THROW(psd_factor("test", "G", negative), ArgumentError);
  const Matrix asymmetric = (Matrix(2, 2) << 1, 0.5, 0, 1).finished();
  EXPECT_THROW(psd_factor("test", "G", asymmetric), ArgumentError);
  const Matrix nan = Matrix::Constant(2, 2, std::nan(""));
  EXPECT_THROW(psd_factor("test", "G", nan), ArgumentError);
  EXPECT_THROW(psd_factor("test", "G", Matrix::Zero(2, 3)), DimensionError);
}

TEST(Parallel, CallsEveryIndexOnceAndRethrows) {
  std::vector<int> calls(1000, 0);
  parallel_for(1000, [&](std::int64_t i) { ++calls[i]; });
  EXPECT_EQ(calls, std::vector<int>(1000, 1));
  EXPECT_THROW(parallel_for(10,
                            [](std::int64_t i) {
                              if (i == 7) throw ArgumentError("seven");
                            }),
               ArgumentError);
}

TEST(NumberText, NeighboursAreToldApart) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(brief_apart({0.00099999994, 0.001, 0.0010000003}),
            (Texts{"0.00099999994", "0.001", "0.0010000003"}));
  EXPECT_EQ(brief_apart({1.5, 2.5}), (Texts{"1.5", "2.5"}));
  EXPECT_EQ(brief_apart({1.0, 1.0}), (Texts{"1", "1"}))
      << "equal numbers have no digit that differs";
}

TEST(NumberText, ValuesHaveTheDigitsOfTheirErrors) {
  EXPECT_EQ(brief_with_error(0.42857, 0.0041), "0.4286 ± 0.0041");
  EXPECT_EQ(brief_with_error(17190.9, 312), "17190 ± 310");
  EXPECT_EQ(brief_with_error(-2.42857, 0.5), "-2.43 ± 0.50");
  EXPECT_EQ(brief_with_error(0.42857142857, 1e-15), "0.428571 ± 1e-15");
  EXPECT_EQ(brief_with_error(2.1, 0), "2.1 ± 0");
  EXPECT_EQ(brief_to_error(1.23456789e-9, 2e-11), "1.235e-09");
  EXPECT_EQ(brief_to_error(0.4, 30.0), "0");
}

}  // namespace
}  // namespace esscher
