// The statements of Boursier and Boyer (arXiv 2512.11784), one section each: cells to compute, and
// a report section made from their rows alone, so that a resumed or merged run reads the same.
//
//   keys(options)          names of the cells, in order
//   compute(options, i)    rows of cell i: a pure function of its arguments
//   report(options, rows)  {section, datasets} of document "report" (report/report.h); the verdict
//                          is computed from the rows
//
// Rows of all cells of a section come in the order of the keys.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "esscher/json/json.h"
#include "esscher/store/run.h"

namespace esscher::paper {

// tiny takes seconds and is for tests; quick takes about a minute on two cores; full is the authors'
// whole training experiment.
enum class Size { tiny, quick, full };

std::string_view name(Size size);
Size parse_size(const std::string& text);  // throws ArgumentError on another word

struct Options {
  Size size = Size::quick;
  std::uint64_t seed = 0;
  // Test only: the section with this id computes one formula with the wrong sign, and its verdict
  // must then say "fails".
  std::string plant = {};

  template <class T>
  [[nodiscard]] T pick(T tiny, T quick, T full) const {
    return size == Size::tiny ? tiny : size == Size::quick ? quick : full;
  }
  // +1, or -1 for a section that is planted.
  [[nodiscard]] double sign(std::string_view id) const { return plant == id ? -1 : 1; }
};

struct SectionReport {
  Json section;
  std::map<std::string, Json> datasets;
};

struct Section {
  std::string_view id;
  std::string_view title;
  std::vector<std::string> (*keys)(const Options& options);
  std::vector<Row> (*compute)(const Options& options, std::size_t cell);
  SectionReport (*report)(const Options& options, const std::vector<Row>& rows);
};

// In the order of the report.
std::span<const Section> sections();
// Throws ArgumentError naming the ids there are.
const Section& section(std::string_view id);

}  // namespace esscher::paper
