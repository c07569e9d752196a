// The entries of heads over time as heat maps in a row, with one slider and one scale.
#pragma once

#include <string>
#include <vector>

#include "esscher/report/page.h"
#include "esscher/risk/layer.h"
#include "esscher/risk/readout.h"

namespace esscher {

struct ShownHead {
  Matrix U;  // [D,D]
  Matrix V;  // [m,D], the rows that a prediction reads
};

struct TimedHeads {
  double time = 0;
  std::vector<ShownHead> heads;  // as many at every time
};
TimedHeads timed_heads(double time, const std::vector<Readout>& heads);
TimedHeads timed_heads(double time, const Layer& layer);

// Adds the dataset `id` {time column, head, matrix, row, column, value} to the page and returns the
// figure of it: one panel per head, with U entry by entry and the rows of V that the prediction reads
// below it. All U share one scale, all rows of V another. `time` is the name of the time column.
Figure head_map(Page& page, const std::string& id, const std::vector<TimedHeads>& path,
                const std::string& time);

}  // namespace esscher
