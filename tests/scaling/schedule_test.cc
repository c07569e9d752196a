// Schedules: the factors as their sources print them, and formulas as a person types them.
#include "esscher/scaling/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "esscher/base/error.h"
#include "esscher/scaling/expression.h"

namespace esscher {
namespace {

double factor_at(ScheduleKind kind, double n, std::optional<double> c = {},
                 std::optional<double> train = {}) {
  return Schedule({.kind = kind, .c = c, .train = train}).factor(n);
}

TEST(Schedule, FactorsAreThePublishedOnes) {
  EXPECT_EQ(factor_at(ScheduleKind::constant, 1e9), 1);
  EXPECT_NEAR(factor_at(ScheduleKind::sqrt_log, 1e4, 2.0), 2 * std::sqrt(std::log(1e4)), 1e-12);
  EXPECT_NEAR(factor_at(ScheduleKind::ssmax, 1000), 0.43 * std::log(1000.0), 1e-12);
  EXPECT_NEAR(factor_at(ScheduleKind::qwen, 65536, {}, 4096.0), 16.0 / 12.0, 1e-12);
  EXPECT_EQ(factor_at(ScheduleKind::qwen, 100, {}, 4096.0), 1);
  EXPECT_NEAR(factor_at(ScheduleKind::yarn, 40960, {}, 4096.0),
              std::pow(0.1 * std::log(10.0) + 1, 2), 1e-12);
  // LongRoPE multiplies queries and keys by the square root of this.
  EXPECT_NEAR(factor_at(ScheduleKind::longrope, 131072, {}, 4096.0),
              1 + std::log(32.0) / std::log(4096.0), 1e-12);
}

TEST(Schedule, Llama4StepsAtMultiplesOfItsLength) {
  EXPECT_EQ(factor_at(ScheduleKind::llama4, 8190), 1);
  EXPECT_NEAR(factor_at(ScheduleKind::llama4, 8191), 1 + 0.1 * std::log(2.0), 1e-14);
  EXPECT_NEAR(factor_at(ScheduleKind::llama4, 16382), 1 + 0.1 * std::log(2.0), 1e-14);
  EXPECT_NEAR(factor_at(ScheduleKind::llama4, 16383), 1 + 0.1 * std::log(3.0), 1e-14);
}

TEST(Schedule, TablesAreLinearInTheLogarithm) {
  const Schedule table({.kind = ScheduleKind::table, .table = {{10, 1}, {1000, 3}}});
  EXPECT_EQ(table.factor(1), 1);
  EXPECT_NEAR(table.factor(100), 2, 1e-14);
  EXPECT_EQ(table.factor(1e6), 3);
}

TEST(Schedule, WrongOptionsAreRefused) {
  EXPECT_THROW(Schedule({.kind = ScheduleKind::constant, .c = 2.0}), ArgumentError);
  EXPECT_THROW(Schedule({.kind = ScheduleKind::log, .train = 10.0}), ArgumentError);
  EXPECT_THROW(Schedule({.kind = ScheduleKind::log, .c = -1.0}), ArgumentError);
  EXPECT_THROW(Schedule({.kind = ScheduleKind::qwen, .train = 1.0}), ArgumentError);
  EXPECT_THROW(Schedule({.kind = ScheduleKind::table}), ArgumentError);
  EXPECT_THROW(Schedule({.kind = ScheduleKind::table, .table = {{10, 1}, {10, 2}}}), ArgumentError);
  const Schedule negative({.kind = ScheduleKind::formula, .formula = "5 - n"});
  EXPECT_THROW((void)negative.factor(10), ArgumentError);
}

TEST(Expression, FollowsTheRulesOfArithmetic) {
  const auto at = [](const char* text, double n) { return parse_expression(text)(n); };
  EXPECT_EQ(at("1 + 2*3", 0), 7);
  EXPECT_EQ(at("2^3^2", 0), 512);
  EXPECT_EQ(at("-2^2", 0), -4);
  EXPECT_EQ(at("8/2/2", 0), 2);
  EXPECT_EQ(at("7-2-1", 0), 4);
  EXPECT_EQ(at("max(1, min(n, 3))", 5), 3);
  EXPECT_NEAR(at("0.1*log(n/4096) + 1", 4096 * std::exp(1.0)), 1.1, 1e-15);
  EXPECT_NEAR(at("sqrt(log(n)) * floor(2.7)", std::exp(4.0)), 4, 1e-14);
}

TEST(Expression, BadTextIsRefusedWithItsPlace) {
  for (const char* text : {"", "1 +", "m", "log n", "(1", "1)", "max(1)", "2..3", "--", "1e"}) {
    EXPECT_THROW((void)parse_expression(text), ArgumentError) << text;
  }
  EXPECT_THROW((void)parse_expression(std::string(100000, '(')), ArgumentError);
  EXPECT_THROW((void)parse_expression(std::string(100000, '-')), ArgumentError);
  try {
    (void)parse_expression("1 + lug(n)");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("character 5"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace esscher
