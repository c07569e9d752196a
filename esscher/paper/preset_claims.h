// What the source of a preset claims, checked on a run of the preset: a number that is printed or
// follows from a formula of the source, or a shape (order, slope, sign), with a verdict per claim.
// A source that prints no number for a setting gets the verdict "no number", and says so.
//
//   for (const ClaimRow& row : check_preset("zfb-shifts")) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/base/enum_names.h"
#include "esscher/config/table.h"

namespace esscher::paper {

enum class ClaimVerdict { holds, fails, no_number };

constexpr auto enum_names(ClaimVerdict) {
  return EnumNames<ClaimVerdict, 3>{"verdict on a claim",
                                    {{{ClaimVerdict::holds, "holds"},
                                      {ClaimVerdict::fails, "fails"},
                                      {ClaimVerdict::no_number, "no number"}}}};
}

struct ClaimRow {
  std::string preset;
  std::string claim;  // a sentence
  double found = 0;
  double expected = 0;
  std::string relation;  // "=", "<" or ">": found relation expected
  double tolerance = 0;  // of "=", absolute
  ClaimVerdict verdict = ClaimVerdict::no_number;

  template <class Row, class Column>
  static void columns(Row& row, Column&& column) {
    column("preset", row.preset, "", "name of the preset");
    column("claim", row.claim, "", "what its source states");
    column("found", row.found, "", "what the run shows; nan if there is nothing to compare");
    column("relation", row.relation, "", "how found must stand to expected: =, < or >");
    column("expected", row.expected, "", "the number of the claim");
    column("tolerance", row.tolerance, "", "of =, absolute");
    column("verdict", row.verdict, "", "holds, fails or no number");
  }
};

struct ClaimOptions {
  bool full = false;  // the published number of steps; else training is shortened
  std::vector<std::string> assignments = {};  // changes as of --set: a changed preset may fail
  std::uint64_t seed = 0;
};

// Throws ConfigError, which lists the names, for another name.
std::vector<ClaimRow> check_preset(std::string_view name, const ClaimOptions& options = {});

}  // namespace esscher::paper
