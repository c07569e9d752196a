#include "esscher/config/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "esscher/base/error.h"
#include "tests/testing.h"

namespace esscher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;

constexpr const char* kText = R"(
title = "x"
[measure]
dim = 3
scale = 2
rate = 1e-3
mean = [1, 2.5, -3]
cov = [[1, 0], [0, 1]]
steps = 1e6
on = true
lengths = [10, 1e3, "inf"]
[[measure.parts]]
dim = 1
[[measure.parts]]
dim = 2
)";

Config example() { return Config::parse(kText, "exp.toml", "folder"); }

TEST(Table, GettersReadWhatIsWritten) {
  const Table measure = example().root().table("measure");
  EXPECT_EQ(measure.integer("dim"), 3);
  EXPECT_EQ(measure.number("scale"), 2.0);
  EXPECT_EQ(measure.number("rate"), 1e-3);
  EXPECT_EQ(measure.integer("steps"), 1000000);
  EXPECT_TRUE(measure.boolean_or("on", false));
  EXPECT_EQ(measure.vector("mean"), (Vector(3) << 1, 2.5, -3).finished());
  EXPECT_EQ(measure.matrix("cov"), Matrix(Matrix::Identity(2, 2)));
  EXPECT_EQ(measure.lengths("lengths"),
            (std::vector<Length>{Length(10), Length(1000), Length::infinity()}));
  const std::vector<Table> parts = measure.tables("parts");
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].integer("dim"), 2);
  EXPECT_EQ(parts[1].path("dim"), "measure.parts[1].dim");
}

TEST(Table, ErrorsNameFileLineKeyValueAndExpectation) {
  const Config config = example();
  const Table measure = config.root().table("measure");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.text("dim"); }),
            "exp.toml:4: measure.dim is 3, expected a string");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.number("scale", Range::between(0, 1)); }),
            "exp.toml:5: measure.scale is 2, expected a number in [0, 1]");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.integer("rate"); }),
            "exp.toml:6: measure.rate is 0.001, expected an integer");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.numbers("mean", Range::positive()); }),
            "exp.toml:7: measure.mean[2] is -3, expected a number > 0");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.matrix("mean"); }),
            "exp.toml:7: measure.mean[0] is 1, expected a row of numbers");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.number("none"); }),
            "exp.toml:3: measure.none is missing");
  EXPECT_EQ(message_of<ConfigError>([&] {
              (void)config.root().choice("title", {"a", "b"});
            }),
            "exp.toml:2: title is \"x\", expected one of \"a\", \"b\"");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.tables("cov"); }),
            "exp.toml:8: measure.cov[0] is [1, 0], expected a table");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.table("dim"); }),
            "exp.toml:4: measure.dim is 3, expected a table");
}

TEST(Table, RefusesNumbersThatAreNotFinite) {
  for (const char* bad : {"nan", "inf", "-inf"}) {
    const Config config = Config::parse("x = " + std::string(bad) + "\nv = [1, " + bad + "]", "t");
    EXPECT_THROW((void)config.root().number("x"), ConfigError) << bad;
    EXPECT_THROW((void)config.root().vector("v"), ConfigError) << bad;
    EXPECT_THROW((void)config.root().integer("x"), ConfigError) << bad;
  }
}

TEST(Table, RowsOfDifferentLengthAreAnError) {
  const Config config = Config::parse("m = [[1, 2],\n [3]]", "t");
  EXPECT_EQ(message_of<ConfigError>([&] { (void)config.root().matrix("m"); }),
            "t:2: m[1] is [3], expected 2 numbers as in the first row");
}

TEST(Table, LengthsArePositive) {
  const Config config = Config::parse("a = 0\nb = -3\nc = 1.5\nd = 'infinite'\ne = inf\n", "t");
  for (const char* key : {"a", "b", "c", "d"}) {
    EXPECT_THROW((void)config.root().length(key), ConfigError) << key;
  }
  EXPECT_TRUE(config.root().length("e").is_infinite());
}

TEST(Config, UnknownKeysAreErrors) {
  const Config config = Config::parse("[measure]\ndim = 2\nmaen = 3\n", "t.toml");
  EXPECT_EQ(config.root().table("measure").integer("dim"), 2);
  EXPECT_EQ(message_of<ConfigError>([&] { config.check_all_used(); }),
            "t.toml:3: unknown key measure.maen");
}

TEST(Config, UnknownKeysAreFoundAtAnyDepth) {
  const Config config = Config::parse("[[measure.parts]]\ndim = 2\nx.y = 3\n", "t.toml");
  EXPECT_EQ(config.root().table("measure").tables("parts")[0].integer("dim"), 2);
  EXPECT_EQ(message_of<ConfigError>([&] { config.check_all_used(); }),
            "t.toml:3: unknown key measure.parts[0].x");
}

TEST(Config, TablesOfOtherVerbsMayStayUnread) {
  Config::parse("[sweep]\nreplicates = 10\n", "t").check_all_used();
  EXPECT_EQ(
      message_of<ConfigError>([] { Config::parse("[mesure]\ndim = 10\n", "t").check_all_used(); }),
      "t:1: unknown key mesure");
}

TEST(Config, SetOverridesAndCreates) {
  Config config = example();
  config.set("measure.dim=5");
  config.set("measure.parts.1.dim=7");
  config.set("measure.kind=kcm");
  config.set("query.points=[[1, 2]]");
  const Table measure = config.root().table("measure");
  EXPECT_EQ(measure.integer("dim"), 5);
  EXPECT_EQ(measure.tables("parts")[1].integer("dim"), 7);
  EXPECT_EQ(measure.text("kind"), "kcm");
  EXPECT_EQ(config.root().table("query").matrix("points"), (Matrix(1, 2) << 1, 2).finished());
  EXPECT_EQ(message_of<ConfigError>([&] { (void)measure.number("kind"); }),
            "--set measure.kind=kcm: measure.kind is \"kcm\", expected a number");
}

TEST(Config, BadSetIsAnError) {
  Config config = example();
  for (const char* bad : {"measure.dim", "=3", "measure..dim=3", "measure.dim.x=3",
                          "measure.parts.2.dim=3", "measure.parts.x=3", "a b=3"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { config.set(bad); }),
                HasSubstr("--set " + std::string(bad)))
        << bad;
  }
}

TEST(Config, FileNamesAreRelativeToTheFileThatMentionsThem) {
  Config config = Config::parse("path = 'x.npy'\nother = '/abs/x.npy'\n", "t", "folder");
  EXPECT_EQ(config.root().file("path"), std::filesystem::path("folder/x.npy"));
  EXPECT_EQ(config.root().file("other"), std::filesystem::path("/abs/x.npy"));
  config.set("path=y.npy");
  EXPECT_EQ(config.root().file("path"), std::filesystem::path("y.npy"));
}

TEST(Config, ResolvedHoldsOverridesAndDefaultsAndReadsBack) {
  Config config = Config::parse("[b]\ny = 1.0\n[a]\nx = [1, {z = \"q\\\"\\n\"}]\n", "t");
  config.set("b.y=2");
  (void)config.root().table("b").number_or("w", 3);
  (void)config.root().table_or_empty("c").text_or("t", "u");
  EXPECT_EQ(config.resolved_toml(),
            "\n[a]\nx = [1, { z = \"q\\\"\\u000A\" }]\n\n[b]\nw = 3.0\ny = 2\n\n[c]\nt = \"u\"\n");
  const ConfigValue again = parse_toml(config.resolved_toml(), "again");
  EXPECT_EQ(write_toml(again), config.resolved_toml());
}

TEST(Config, DefaultsAreNotUserKeys) {
  const Config config = Config::parse("", "t");
  EXPECT_EQ(config.root().integer_or("n", 4), 4);
  EXPECT_FALSE(config.root().has("n"));
  config.check_all_used();
}

TEST(Config, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(message_of<ConfigError>([] { Config::parse("a = 1\nb = = 2\n", "t.toml"); }),
              HasSubstr("t.toml:2: "));
  EXPECT_THAT(message_of<ConfigError>([] { Config::parse("a = 1\na = 2\n", "t.toml"); }),
              HasSubstr("t.toml:2: "));
  EXPECT_THAT(message_of<ConfigError>([] { Config::parse("a = 1979-05-27\n", "t.toml"); }),
              AllOf(HasSubstr("t.toml:1: "), HasSubstr("dates")));
  EXPECT_THROW(Config::load("no-such-file.toml"), FileError);
}

}  // namespace
}  // namespace esscher
