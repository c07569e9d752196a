// Which factor keeps something constant from n0 to n tokens? For a quantity q(f, n) of the weights,
// the smallest factor f with q(f, n) = q(1, n0), exactly, at each length; and the member of each
// published family (scaling/schedule.h, with this n0) that comes closest to these factors: of sqrt-log,
// ssmax, yarn and llama4 that of the best c, while constant, qwen and longrope have one member each. One
// more family, log-power, is (log n / log n0)^c, which published ones could be compared with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "esscher/scaling/score_model.h"

namespace esscher {

enum class Kept { ess, entropy, needle };

constexpr auto enum_names(Kept) {
  return EnumNames<Kept, 3>{
      "quantity", {{{Kept::ess, "ess"}, {Kept::entropy, "entropy"}, {Kept::needle, "needle"}}}};
}

struct KeptFactor {
  double L = 1;
  std::optional<double> factor = {};  // absent: no factor up to 100 reaches the target
  double value = 0;                   // of the quantity there; the best that was found if absent
  double target = 0;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("L", row.L, "tokens", "length of the prompt");
    column("factor", row.factor, "", "the smallest factor that keeps the quantity");
    column("value", row.value, "", "the quantity at this factor, or the best that was found");
    column("target", row.target, "", "the quantity at the length of training, factor 1");
  }
};

struct FamilyFit {
  std::string family = {};
  std::optional<double> c = {};  // of families that have one
  double worst = 0;              // largest |f / factor - 1| over the lengths

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("family", row.family, "", "form of the schedule");
    column("c", row.c, "", "its fitted coefficient");
    column("worst", row.worst, "", "largest relative distance to the exact factors");
  }
};

// entropy: the mean entropy itself, not over log n. needle: the weight of a token `gap` above the mean.
std::vector<KeptFactor> kept_factors(const ScoreModel& scores, Kept kept, double gap, double train,
                                     const std::vector<double>& lengths);

// Families by rising distance, one row each; empty unless some length beyond `train` has a factor.
std::vector<FamilyFit> nearest_families(const std::vector<KeptFactor>& factors, double train);

}  // namespace esscher
