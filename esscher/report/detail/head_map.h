// The entries of heads over time as a heat map with a slider.
#pragma once

#include <string>
#include <vector>

#include "esscher/report/page.h"
#include "esscher/risk/readout.h"

namespace esscher {

struct TimedHead {
  double time = 0;
  Readout head;
};

// Adds the dataset `id` {time column, row, column, value} to the page and returns the figure of it:
// U entry by entry, and r as one more row. `time` is the name of the time column, `who` begins the
// caption.
Figure head_map(Page& page, const std::string& id, const std::vector<TimedHead>& heads,
                const std::string& time, const std::string& who = "");

}  // namespace esscher
