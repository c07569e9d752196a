#include "esscher/config/schedule.h"

#include <cmath>
#include <limits>

#include "esscher/base/error.h"
#include "esscher/config/icl.h"
#include "esscher/io/matrix.h"

namespace esscher {
namespace {

constexpr std::string_view kKey = "score_schedule";

double real_length(Length length) {
  return length.is_infinite() ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(length.count());
}

std::vector<SchedulePoint> points_of(const Matrix& rows) {
  std::vector<SchedulePoint> out;
  for (Index i = 0; i < rows.rows(); ++i) out.push_back({rows(i, 0), rows(i, 1)});
  return out;
}

ScheduleOptions read_options(const Table& table, std::optional<double> train) {
  ScheduleOptions out{.kind = table.enumerator_or("kind", ScheduleKind::constant)};
  if (table.has("c")) out.c = table.number("c", Range::positive());
  if (table.has("train")) {
    out.train = table.number("train", Range{.low = 1, .low_open = true});
  } else if (has_training_length(out.kind)) {
    out.train = train;
  }
  if (out.kind == ScheduleKind::table && table.has("file")) {
    out.table = read_schedule_table(table.file("file").string());
  } else if (out.kind == ScheduleKind::table) {
    const Matrix rows = table.matrix("table");
    if (rows.cols() != 2) table.fail("table", "pairs [n, factor]");
    out.table = points_of(rows);
  }
  if (out.kind == ScheduleKind::formula) out.formula = table.text("formula");
  return out;
}

}  // namespace

std::vector<SchedulePoint> read_schedule_table(const std::string& file) {
  const Matrix rows = read_matrix(file);
  if (rows.cols() != 2) {
    throw FileError(file + " has " + std::to_string(rows.cols()) +
                    " columns, expected two: length and factor");
  }
  return points_of(rows);
}

std::optional<Schedule> read_schedule(const Table& table, std::string_view key,
                                      std::optional<double> train) {
  if (!table.has(key)) return std::nullopt;
  ScheduleOptions options;
  if (table.value(key).map() == nullptr) {
    options.kind = table.enumerator_or(key, ScheduleKind::constant);
    if (has_training_length(options.kind)) options.train = train;
  } else {
    options = read_options(table.table(key), train);
  }
  try {
    return Schedule(options);
  } catch (const ArgumentError& error) {
    table.fail_because(key, error.what());
  }
}

std::vector<double> read_score_factors(const Table& root, const std::vector<Length>& lengths) {
  const Table model = root.table_or_empty("model");
  const double trained = real_length(read_length(root));
  const std::optional<Schedule> schedule = read_schedule(
      model, kKey, std::isfinite(trained) && trained > 1 ? std::optional(trained) : std::nullopt);
  if (!schedule) return {};
  std::vector<double> out;
  try {
    const double unit = schedule->factor(trained);
    if (!(unit > 0)) model.fail(kKey, "a factor > 0 at train.length");
    for (const Length L : lengths) out.push_back(schedule->factor(real_length(L)) / unit);
  } catch (const ArgumentError& error) {
    model.fail_because(kKey, error.what());
  }
  return out;
}

}  // namespace esscher
