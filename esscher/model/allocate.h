// A plan for a total number of bytes: which window and tail each head gets. Every head starts with
// its cheapest row; then the step that lowers the sum of errors most per byte is taken, again and
// again, while it fits. Steps run along the lower convex hull of (bytes, error) of a head, so the
// sum of errors is the least for the bytes that are used, and never rises with the budget. Errors
// are `lin` of the rows of heads/diagnosis.h; the whole cache has error 0. Mixtures do not take part.
#pragma once

#include <vector>

#include "esscher/heads/diagnosis.h"
#include "esscher/model/plan.h"

namespace esscher {

struct Allocation {
  HeadPlan plan;
  Index bytes = 0;   // 4 per number
  double error = 0;  // sum over heads of lin
};

// Heads are named like L0.H3, with or without something before it. Throws ArgumentError if a name is
// not, if a head has no windows, or if `bytes` is less than the cheapest plan needs.
Allocation allocate_windows(const std::vector<HeadDiagnosis>& heads, Index sinks, Index bytes);

}  // namespace esscher
