// How long is long enough: the smallest L with D(L) <= eps.
//
//   certified   D itself is evaluated, D(L) <= eps < D(L-1): queries are averaged in closed form or
//               given, and no token is sampled. D is also evaluated on a grid, powers of 2 up to
//               10^6 and of 16 up to 10^15: no shorter length of the grid is enough, and the
//               answer says whether D stays below eps on the longer ones
//   estimated   queries stand for their law, or prompts are sampled: a bracket holds the answer
//               except with the error probability stated. Sampling engines bisect on estimates; a
//               step decides when an interval excludes eps, drawing more queries first
//   never       explained: T does not exist, or no length up to searched_up_to is enough
//
// eps bounds a mean square. Every answer also carries the size of the limit, and with it the
// root-mean-square error and both as fractions of the limit (limit_size.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "esscher/attention/metric.h"
#include "esscher/base/estimate.h"
#include "esscher/concentration/limit_size.h"
#include "esscher/concentration/problem.h"

namespace esscher {

inline constexpr std::int64_t kMaxLength = 1000000000000000;

struct LengthOptions {
  double eps = 1e-3;
  Metric metric = Metric::output;
  bool relative = false;                // eps times E_z |X|^2
  std::optional<double> quantile = {};  // of the error over queries, instead of their average
  Engine engine = Engine::automatic;
  std::int64_t queries = 512;
  std::int64_t replicates = 8;
  std::uint64_t seed = 0;
  std::int64_t max_sampled_length = 100000;  // longest prompt a sampling engine may draw
};

enum class LengthStatus { certified, estimated, never };

constexpr auto enum_names(LengthStatus) {
  return EnumNames<LengthStatus, 3>{"status of a length",
                                    {{{LengthStatus::certified, "certified"},
                                      {LengthStatus::estimated, "estimated"},
                                      {LengthStatus::never, "never"}}}};
}

struct LengthAnswer {
  std::optional<std::int64_t> length = {};
  LengthStatus status = LengthStatus::never;
  double eps = 0;           // the absolute threshold in force
  double value = 0;         // D(length)
  double value_before = 0;  // D(length - 1); NaN if length is 1
  double std_error = 0;     // of value
  double limit_mean_square = std::numeric_limits<double>::quiet_NaN();  // E_z |X|^2
  double limit_std_error = 0;                                           // its standard error
  double error_probability = 0;  // that the bracket misses the answer; 0 if certified
  std::int64_t bracket_lo = 0, bracket_hi = 0;  // estimated: where the answer lies; else 0
  double clt = 0;  // constant / eps: what the central limit theorem would say
  Engine engine = Engine::exact;
  // D need not fall: rare tokens may spoil longer prompts. Whether D <= eps at every longer length
  // of the grid; unknown where prompts are sampled and no rise was seen.
  std::optional<bool> stays_below = {};
  std::optional<std::int64_t> rises_at = {};     // the first longer length of the grid with D > eps
  std::optional<std::int64_t> peak_length = {};  // where D is largest beyond the answer
  std::optional<double> peak_value = {};         // D there
  // The shortest length from which D <= eps on all of the grid: the length itself unless D rises.
  std::optional<std::int64_t> enough_from = {};
  // Never: the longest length that was looked at; absent if there is no limit to be near.
  std::optional<std::int64_t> searched_up_to = {};
  std::string flag = {};  // why the bracket cannot be trusted; empty if it can
  std::string explanation = {};

  [[nodiscard]] LimitSize limit() const { return {limit_mean_square, limit_std_error}; }

  // The bracket is no column: documents and Python add it as a pair.
  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("length", row.length, "tokens", "the shortest length; absent if there is none");
    column("status", row.status, "", "how sure the answer is");
    column("eps", row.eps, "", "the absolute threshold in force");
    column("value", row.value, "", "D(length)");
    column("value_before", row.value_before, "", "D(length - 1); nan if length is 1");
    column("std_error", row.std_error, "", "standard error of value");
    double rms = std::sqrt(row.value), relative_rms = row.limit().relative_rms(row.value);
    double relative = relative_rms * relative_rms;
    column("rms", rms, "", "root-mean-square error: the root of value");
    column("relative_value", relative, "", "value as a fraction of the squared size of the limit");
    column("relative_rms", relative_rms, "", "rms as a fraction of the size of the limit");
    column("limit_mean_square", row.limit_mean_square, "", "squared size of the limit");
    column("limit_std_error", row.limit_std_error, "", "standard error of limit_mean_square");
    column("error_probability", row.error_probability, "", "that the bracket misses the answer");
    column("clt", row.clt, "tokens", "constant / eps; inf where there is no constant");
    column("engine", row.engine, "", "how prompts were averaged");
    column("stays_below", row.stays_below, "",
           "whether D <= eps at all longer lengths of the grid; absent if unknown");
    column("rises_at", row.rises_at, "tokens", "first longer length with D > eps, if any");
    column("peak_length", row.peak_length, "tokens", "where D is largest beyond a rise");
    column("peak_value", row.peak_value, "", "D there");
    column("enough_from", row.enough_from, "tokens", "length from which D stays below eps");
    column("searched_up_to", row.searched_up_to, "tokens",
           "longest length looked at where none is enough; absent else");
    std::optional<std::string> flag;
    if (!row.flag.empty()) flag = row.flag;
    column("flag", flag, "", "why the bracket cannot be trusted; absent if it can");
    if constexpr (!std::is_const_v<Row>) row.flag = flag.value_or("");
    column("explanation", row.explanation, "", "why, in words");
  }
};

LengthAnswer shortest_length(const Problem& problem, const LengthOptions& options);

}  // namespace esscher
