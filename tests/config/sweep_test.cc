#include "esscher/config/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"

namespace esscher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config parse(const std::string& text) { return Config::parse(text, "test.toml"); }

// Every verb reads a grid of lengths the same way, and its upper end belongs to it.
TEST(Sweep, OneGridForEveryVerb) {
  const Config config = parse("[sweep]\nlengths = { from = 10, to = 50, per_decade = 4 }\n");
  EXPECT_THAT(read_sweep(config.root(), 0).lengths, ElementsAre(10, 17, 29, 50));
  EXPECT_THAT(read_lengths(config.root(), {}), ElementsAre(10, 17, 29, 50));
}

TEST(Sweep, DefaultsAndValues) {
  const Config none = parse("");
  EXPECT_EQ(read_sweep(none.root(), 3).lengths.front(), 10);
  EXPECT_EQ(read_sweep(none.root(), 3).lengths.back(), 1000000);
  EXPECT_EQ(read_sweep(none.root(), 3).seed, 3u);
  const Config given = parse(
      "[sweep]\nlengths = [1, 5, 1e3]\nmetrics = [\"grad_u\"]\nengine = \"direct\"\nqueries = "
      "7\nreplicates = 2\n");
  const StudyOptions o = read_sweep(given.root(), 0);
  EXPECT_THAT(o.lengths, ElementsAre(1, 5, 1000));
  EXPECT_THAT(o.metrics, ElementsAre(Metric::grad_u));
  EXPECT_EQ(o.engine, Engine::direct);
  EXPECT_EQ(o.queries, 7);
  EXPECT_EQ(o.replicates, 2);
  given.check_all_used();
  const Config grid = parse("[sweep]\nlengths = { from = 2, to = 200, per_decade = 1 }\n");
  EXPECT_THAT(read_sweep(grid.root(), 0).lengths, ElementsAre(2, 20, 200));
}

TEST(Sweep, MistakesNameTheKey) {
  const auto message = [](const std::string& text) -> std::string {
    const Config config = parse(text);
    try {
      read_sweep(config.root(), 0);
      config.check_all_used();
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(message("[sweep]\nlengths = [5, 4]\n"), HasSubstr("sweep.lengths"));
  EXPECT_THAT(message("[sweep]\nlengths = [0]\n"), HasSubstr("sweep.lengths"));
  EXPECT_THAT(message("[sweep]\nlengths = { from = 5, to = 2 }\n"), HasSubstr("sweep.lengths.to"));
  EXPECT_THAT(message("[sweep]\nmetrics = [\"outptu\"]\n"), HasSubstr("sweep.metrics"));
  EXPECT_THAT(message("[sweep]\nengine = \"fast\"\n"), HasSubstr("sweep.engine"));
  EXPECT_THAT(message("[sweep]\nlenghts = [1]\n"), HasSubstr("lenghts"));
}

TEST(Sweep, Problem) {
  const Config config = parse("[measure]\ntype = \"gaussian\"\ndim = 2\n[attention]\nU = 0.5\n");
  const Problem p = read_problem(config.root());
  EXPECT_EQ(p.mu.dim(), 2);
  ASSERT_TRUE(p.nu.has_value());
  EXPECT_EQ(p.nu->dim(), 2);
  const Config points =
      parse("[measure]\ntype = \"rademacher\"\ndim = 1\n[query]\npoints = [[1.0], [2.0]]\n");
  EXPECT_EQ(read_problem(points.root()).points.rows(), 2);
  const Config linear =
      parse("[measure]\ntype = \"gaussian\"\ndim = 2\n[attention]\nkind = \"linear\"\n");
  EXPECT_THROW(read_problem(linear.root()), ConfigError);
}

}  // namespace
}  // namespace esscher
