// How long is long enough: the smallest L with D(L) <= eps.
//
//   exact engine     search on D itself, D(L) <= eps < D(L-1) evaluated: "certified", where
//                    queries are averaged in closed form or given; where queries stand for a law
//                    their error gives a bracket too: "estimated"
//   other engines    bisection on estimates; a step decides when an interval excludes eps, drawing
//                    more queries first, else it stops there: "estimated", with a bracket that
//                    holds the answer except with the error probability stated
//   "never"          explained: T does not exist, eps is below what double precision shows, or
//                    L > 10^15
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "esscher/concentration/study.h"

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

struct LengthAnswer {
  std::optional<std::int64_t> length;
  std::string status;            // "certified", "estimated" or "never"
  double eps = 0;                // the absolute threshold in force
  double value = 0;              // D(length)
  double value_before = 0;       // D(length - 1); NaN if length is 1
  double std_error = 0;          // of value
  double error_probability = 0;  // that the bracket misses the answer; 0 if certified
  std::int64_t bracket_lo = 0, bracket_hi = 0;  // estimated: where the answer lies
  double clt = 0;  // constant / eps: what the central limit theorem would say
  std::string explanation;
  Engine engine = Engine::exact;
};

LengthAnswer shortest_length(const Problem& problem, const LengthOptions& options);

Json to_json(const LengthAnswer& answer);

}  // namespace esscher
