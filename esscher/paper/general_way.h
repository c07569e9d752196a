// The way of the flow on infinite prompts, and the largest gap of risks on it (general_prompts.cc).
#pragma once

#include <map>

#include "esscher/paper/general.h"
#include "esscher/risk/layer.h"
#include "esscher/training/layer_flow.h"

namespace esscher::paper {

// The way at kGeneralPoints + 1 times.
struct Way {
  GeneralCase of;
  std::vector<FlowPoint> points;
};
Way way_of(const GeneralCase& of);

// The head of (u, v).
Layer head_of(const Vector& at, ModelKind kind = ModelKind::softmax);
// R_inf at a point of the way.
Estimate limit_at(const Way& way, int i);

struct GapAt {
  double gap = 0, error = 0, risk = 0;
};

// The sup over the way.
struct Sup {
  int at = 0;  // point of the way
  double t = 0, gap = 0, error = 0;
};

// It looks at few points, climbs from the highest of them by ever shorter strides, and takes the top
// of the parabola through the last three. The way outlives the search.
class SupSearch {
 public:
  SupSearch(const Way& way, std::int64_t L) : way_(way), L_(L) {}

  const GapAt& look(int i);
  Sup from(int at);
  Sup found();
  // What was looked at.
  [[nodiscard]] const std::map<int, GapAt>& seen() const { return seen_; }

 private:
  void climb(int& at, int stride);

  const Way& way_;
  std::int64_t L_;
  std::map<int, GapAt> seen_;
};

}  // namespace esscher::paper
