// Nodes for integrals of e^{psi(v)} f(v) on the line, f smooth and of moderate growth, where psi is
// smooth between given breakpoints and falls far out. Internal to measure/.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "esscher/base/linalg.h"

namespace esscher {

// psi of many arguments at once.
using LogDensity = std::function<void(std::span<const double> v, std::span<double> out)>;

struct PanelNodes {
  Vector v;        // [n]
  Vector weights;  // [n], sum 1: proportional to e^{psi(v_i)} times the weights of the rule
  double log_integral = 0;  // log of the integral of e^psi
};

// Panels between neighbours of `breaks` (sorted) are halved until a rule of 16 points and two of
// them agree to `tolerance` of the whole integral for 1, v and v^2. `bend` bounds |psi''| for |v|
// up to `bend_reach`, where psi may have peaks between nodes: a panel is dropped only if its highest
// node plus what such a bend may hide is below e^-44 of the highest value seen.
struct PanelOptions {
  double tolerance = 1e-14;
  double bend = 1;
  double bend_reach = 0;
};
PanelNodes panel_nodes(const LogDensity& psi, std::vector<double> breaks,
                       const PanelOptions& options);

}  // namespace esscher
