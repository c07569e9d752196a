// What a section of a paper took when scripts/paper_costs measured it: the CPU seconds of all threads
// and the peak memory of a process that computes this section alone, on two cores with AVX-512.
// Sections differ by a factor of a thousand and so do their cells, so that no piece of one tells its
// time beforehand.
#pragma once

#include <optional>
#include <string_view>

#include "esscher/paper/section.h"

namespace esscher::paper {

struct Cost {
  std::string_view id;  // of the statement
  Size size = Size::quick;
  double cpu_seconds = 0;
  double megabytes = 0;
};

// None if nobody measured it: the longest sections at size full.
std::optional<Cost> cost_of(std::string_view id, Size size);

}  // namespace esscher::paper
