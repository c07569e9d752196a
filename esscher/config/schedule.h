// A schedule of the score scale (scaling/schedule.h) as TOML: its name, or a table
//
//   score_schedule = "qwen"
//   score_schedule = { kind = "yarn", c = 0.1, train = 4096 }
//   score_schedule = { kind = "table", table = [[1024, 1.0], [8192, 1.15]] }
//   score_schedule = { kind = "table", file = "factors.csv" }        columns n and factor
//   score_schedule = { kind = "formula", formula = "1 + 0.1*log(n/4096)" }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/length.h"
#include "esscher/config/table.h"
#include "esscher/scaling/schedule.h"

namespace esscher {

// Pairs (n, factor) from a file of two columns. Throws FileError naming it.
std::vector<SchedulePoint> read_schedule_table(const std::string& file);

// Nothing if the key is absent. `train` is n0 for kinds that have one, unless the table says it.
std::optional<Schedule> read_schedule(const Table& table, std::string_view key,
                                      std::optional<double> train);

// [model] score_schedule: a head that was trained at train.length = n0 reads a prompt of length L
// with its scores multiplied by f(L) / f(n0). One number for each length; empty without a schedule.
// Training needs none of this, because at n0 itself the factor is 1. Throws ConfigError where f has
// no finite value, as most schedules have none at L = infinity.
std::vector<double> read_score_factors(const Table& root, const std::vector<Length>& lengths);

}  // namespace esscher
