// Why the Gaussian limit of a head fails: what is wrong with its keys, one number each, with a 95 %
// interval, what Gaussian keys would show, and a sentence. All but the last three read the scores of
// a few queries on at most kCauseKeys evenly spaced keys, standardised per query.
//
//   kurtosis    median over queries of the kurtosis; Gaussian scores have 3
//   tails       share of scores beyond three deviations, over the 0.27 % of Gaussian ones
//   clusters    what two clusters of one covariance explain better than one Gaussian, in nats per
//               key, on keys that they were not fitted to, in the three directions that vary most
//   drift       distance of the mean scores of both halves of the prompt, in deviations
//   dependence  kappa of neighbouring keys (heads/dependence.h)
//   position    share of the variance of scores that follows from positions alone, where keys are
//               rotary: that of <a, R_l u> with u the mean key before rotation
//   dominant    share of queries that give one same key more than half of their weight
//
// Level. kurtosis, tails and clusters are compared with kCauseReplicates prompts of Gaussian keys
// that have the covariance of the scores: a cause is found if it departs further than all of them,
// which Gaussian keys do with probability 1 / (kCauseReplicates + 1) = 5 %. Drift is compared with
// as many random orders of blocks of keys, so that neighbours may depend on each other. The other
// three are found if their interval lies above 1, a tenth and one half. Power is what the tests
// measure (tests/heads/causes_test.cc).
//
// Intervals are Student's. Those of tails and position leave out one of kCauseBlocks blocks of keys at a
// time (jackknife), that of drift a fifth of one half, that of clusters is from means of blocks. That of
// kurtosis takes every half of the blocks: without one block at a time, the errors of medians come out a
// quarter too large. scripts/calibrate counts how often they hold the truth; where they cannot, `flag` says why:
// scores that are more peaked than Gaussian ones, and tails of fewer than three keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/base/columns.h"
#include "esscher/base/enum_names.h"
#include "esscher/heads/dependence.h"
#include "esscher/heads/head.h"
#include "esscher/random/stream.h"

namespace esscher {

inline constexpr Index kCauseKeys = 1024;
inline constexpr Index kCauseReplicates = 19;
inline constexpr Index kCauseBlocks = 10;

enum class Cause { kurtosis, tails, clusters, drift, dependence, position, dominant };

constexpr auto enum_names(Cause) {
  return EnumNames<Cause, 7>{"cause",
                             {{{Cause::kurtosis, "kurtosis"},
                               {Cause::tails, "tails"},
                               {Cause::clusters, "clusters"},
                               {Cause::drift, "drift"},
                               {Cause::dependence, "dependence"},
                               {Cause::position, "position"},
                               {Cause::dominant, "dominant"}}}};
}

struct CauseRow {
  Cause cause = Cause::kurtosis;
  double value = 0;
  double low = 0, high = 0;            // 95 % interval
  std::optional<double> typical = {};  // of Gaussian keys, or of blocks in random order; median
  std::optional<double> p = {};        // of the test against them
  bool found = false;
  std::string text;                      // a sentence without a full stop
  std::optional<std::string> flag = {};  // why the interval cannot be trusted

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("cause", row.cause, "", "what may be wrong with the keys");
    column("value", row.value, "", "how much of it there is");
    column("low", row.low, "", "lower end of its 95 % interval");
    column("high", row.high, "", "upper end; inf if the keys are too few to show it");
    column("typical", row.typical, "", "what Gaussian keys, or blocks in random order, would show");
    column("p", row.p, "", "p-value of the test against them");
    column("found", row.found, "", "whether it is there, at level 5 %");
    column("text", row.text, "", "the same as a sentence");
    column("flag", row.flag, "", "why the interval cannot be trusted; absent if it can");
  }
};

// What the causes are read from.
struct CauseInput {
  Matrix scores;  // [n,queries] in the order of the prompt
  std::optional<KeyDependence> dependence = {};
  double dominant = 0;  // share of queries, of
  Index queries = 1;    // so many
  // For rotary keys: a [queries,dk], keys [n,dk] and their numbers in the prompt.
  std::optional<Rotary> rotary = {};
  Matrix a = {}, keys = {};
  std::vector<Index> places = {};
};

// One row per cause that can be looked at: position needs rotary keys, dependence eight keys, the
// first four kCauseBlocks * 4 keys and scores that vary.
std::vector<CauseRow> cause_rows(const CauseInput& input, const Stream& stream);

// "heavy tails (..), drift (..)", or that none was found.
std::string causes_text(const std::vector<CauseRow>& rows);

// The statistics themselves, of scores [n,queries].
double median_kurtosis(const MatrixView& scores);
// Its standard error: the standard deviation over all halves of kCauseBlocks blocks, from sums of powers
// of each block. scores [n,queries], n >= kCauseBlocks.
double median_kurtosis_error(const MatrixView& scores);
double tail_ratio(const MatrixView& scores);
double half_drift(const MatrixView& scores);
// Mean over keys, in blocks that take turns in being fitted to.
double cluster_gain(const MatrixView& scores);

}  // namespace esscher
