// What the numbers of a figure say, in a sentence for its caption: where curves end, how far points
// go, where a map is largest. It is computed from what the figure draws, so that no caption says
// something that its figure does not show.
#pragma once

#include <map>
#include <string>

#include "esscher/report/page.h"

namespace esscher {

// A sentence; nothing for histograms, stored specifications and datasets without a number to draw.
//   one curve      "The curve goes from 0.35 at prompt length L = 10 to 5.3e-13 at 1e12."
//   two            "At prompt length L = 1e6 the curves are at 0.1 (linear) and 0.2 (softmax)."
//   more           "At prompt length L = 1e6 the curves lie between 0.1 (σ = 0.5) and 0.2 (σ = 2)."
//   points         "The 64 points lie between 1e-16 and 3e-13."
//   a map          "The largest value is 9.1, at trained at L = 10, tested at L = 1000."
std::string reading(const Chart& chart, const std::map<std::string, Sheet>& datasets);

// Appends its reading to the caption of each figure that asks for it (Figure::read).
void add_readings(Section& section, const std::map<std::string, Sheet>& datasets);
void add_readings(Page& page);

}  // namespace esscher
