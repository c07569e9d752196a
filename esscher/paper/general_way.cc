#include "esscher/paper/general_way.h"

#include <cmath>

namespace esscher::paper {
namespace {

// Closer at the start, where the flow is fast.
std::vector<double> times_of_way() {
  std::vector<double> out;
  for (int i = 0; i <= kGeneralPoints; ++i) {
    const double share = static_cast<double>(i) / kGeneralPoints;
    out.push_back(kGeneralEnd * share * share);
  }
  return out;
}

GapAt gap_at(const Way& way, int i, std::int64_t L) {
  const Vector& at = way.points[static_cast<std::size_t>(i)].theta;
  const Estimate risk = layer_risk(way.of.task, head_of(at), L, {}), limit = limit_at(way, i);
  return {std::abs(risk.value - limit.value), std::hypot(risk.std_error, limit.std_error),
          risk.value};
}

}  // namespace

Layer head_of(const Vector& at, ModelKind kind) {
  return {.W = Matrix::Zero(1, 2),
          .heads = {{kind, Matrix{{at[0], 0}, {0, 0}}, Matrix{{0, at[1]}}}}};
}

Way way_of(const GeneralCase& of) {
  LayerFlowProblem problem{.model = {.task = of.task,
                                     .start = head_of(Vector{{of.u, of.v}}),
                                     .family = LayerFamily::scalars}};
  problem.flow.times = times_of_way();
  problem.flow.t_end = kGeneralEnd;
  problem.flow.rtol = 1e-6;
  problem.flow.stationary = 1e-14;  // the way is compared at given times
  return {.of = of, .points = layer_flow(problem).path};
}

Estimate limit_at(const Way& way, int i) {
  const Vector& at = way.points[static_cast<std::size_t>(i)].theta;
  return layer_risk(way.of.task, head_of(at), Length::infinity(), {});
}

const GapAt& SupSearch::look(int i) {
  const auto found = seen_.find(i);
  return found != seen_.end() ? found->second : seen_.emplace(i, gap_at(way_, i, L_)).first->second;
}

void SupSearch::climb(int& at, int stride) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const int next : {at - stride, at + stride}) {
      if (next < 0 || next > kGeneralPoints || !is_worse(look(next).gap, look(at).gap)) continue;
      at = next;
      moved = true;
      break;
    }
  }
}

Sup SupSearch::from(int at) {
  for (const int stride : {4, 2, 1}) climb(at, stride);
  const GapAt& best = look(at);
  Sup out{at, way_.points[static_cast<std::size_t>(at)].t, best.gap, best.error};
  if (at == 0 || at == kGeneralPoints) return out;
  const double left = look(at - 1).gap, right = look(at + 1).gap;
  const double bend = left - 2 * best.gap + right, rise = (right - left) / 2;
  if (bend < 0) out.gap -= rise * rise / (2 * bend);
  return out;
}

Sup SupSearch::found() {
  int best = 0;
  for (int i = 0; i <= kGeneralPoints; i += kGeneralStride) {
    if (is_worse(look(i).gap, look(best).gap)) best = i;
  }
  return from(best);
}

}  // namespace esscher::paper
