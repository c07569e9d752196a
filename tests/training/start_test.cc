#include "esscher/training/start.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/training/trainer.h"
#include "tests/risk/regression_cases.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using testing::close;

// The words of C++, TOML and Python.
TEST(Start, KindsHaveTheirNames) {
  EXPECT_EQ(parse_enum<StartKind>("identity"), StartKind::identity);
  EXPECT_EQ(parse_enum<StartKind>("dense"), StartKind::dense);
  EXPECT_THROW(parse_enum<StartKind>("small_identity"), ArgumentError);
}

TEST(Start, EveryParametrisationAndKindTrains) {
  for (const auto space : {ParameterSpace::UV, ParameterSpace::KQV, ParameterSpace::KQVO}) {
    for (const auto kind : {StartKind::torch, StartKind::balanced, StartKind::identity}) {
      for (const Index heads : {Index(1), Index(2), kMaxHeads}) {
        TrainConfig config = TrainConfig::authors(ModelKind::softmax, 6);
        config.batch = 4;
        config.space.space = space;
        config.start = {.kind = kind, .alpha = 0.3};
        config.heads = heads;
        Trainer trainer(config);
        trainer.run(3);
        EXPECT_EQ(trainer.step(), 3);
        EXPECT_EQ(trainer.heads().size(), static_cast<std::size_t>(heads));
      }
    }
  }
}

TEST(Start, TorchHasTheBoundsOfLinearLayers) {
  const Parametrisation space{ParameterSpace::KQVO, 6, 6, 1};
  const double bound = 1 / std::sqrt(6.0);
  const Vector theta = start_parameters(space, 1, {.kind = StartKind::torch}, 0);
  EXPECT_EQ(theta.size(), 3 * 36 + 6);
  EXPECT_LE(theta.cwiseAbs().maxCoeff(), bound);
  EXPECT_GT(theta.cwiseAbs().maxCoeff(), 0.9 * bound);
}

TEST(Start, NormalEntriesHaveTheirDeviation) {
  const Parametrisation space{ParameterSpace::KQVO, 40, 40, 1};
  const StartOptions normal{.kind = StartKind::normal, .alpha = 0.002};
  const Vector theta = start_parameters(space, 2, normal, 0);
  const double n = static_cast<double>(theta.size());
  EXPECT_EQ(theta.size(), 2 * (3 * 1600 + 40));
  // Six standard errors of a mean and of a variance of n standard normals.
  EXPECT_LT(std::abs(theta.mean()), 6 * 0.002 / std::sqrt(n));
  EXPECT_LT(std::abs(theta.squaredNorm() / (n * 4e-6) - 1), 6 * std::sqrt(2 / n));
  EXPECT_NE(theta.head(theta.size() / 2), theta.tail(theta.size() / 2));
  EXPECT_EQ(start_parameters(space, 2, {.kind = StartKind::normal, .alpha = 0.004}, 0), 2 * theta);
}

TEST(Start, SeedOfTheRunUnlessItsOwnIsGiven) {
  const Parametrisation space{ParameterSpace::KQV, 3, 3, 1};
  StartOptions torch{.kind = StartKind::torch};
  const Vector of_run = start_parameters(space, 1, torch, 5);
  torch.seed = 5;
  EXPECT_EQ(start_parameters(space, 1, torch, 0), of_run);
  torch.seed = 6;
  EXPECT_NE(start_parameters(space, 1, torch, 5), of_run);
}

TEST(Start, DenseIsWhatWasGiven) {
  const std::vector<Readout> heads{testing::random_readout(3, 1, Stream(1)),
                                   testing::random_readout(3, 1, Stream(2))};
  const Parametrisation space{ParameterSpace::UV, 3};
  StartOptions dense{.kind = StartKind::dense, .dense = heads};
  const Vector theta = start_parameters(space, 2, dense, 0);
  EXPECT_EQ(space.readout(theta.tail(space.size())).U, heads[1].U);
  EXPECT_THROW(start_parameters(space, 1, dense, 0), DimensionError);
  dense.kind = StartKind::torch;
  EXPECT_THROW(start_parameters(space, 2, dense, 0), ArgumentError);
}

TEST(Start, BalancedTakesTheGivenShape) {
  const Parametrisation space{ParameterSpace::UV, 3};
  Matrix shape(2, 2);
  shape << 2, 1, 1, 2;
  const Vector theta =
      start_parameters(space, 1, {.kind = StartKind::balanced, .alpha = 0.5, .shape = shape}, 0);
  EXPECT_TRUE(close(Matrix(space.readout(theta).U.topLeftCorner(2, 2)),
                    Matrix(0.5 / std::sqrt(10.0) * shape), 1e-14));
  EXPECT_EQ(space.readout(theta).r(2), 0.5);
}

}  // namespace
}  // namespace esscher
