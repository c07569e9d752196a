// Laws and queries of a task (task/context.h) to average over: fixed nodes with weights.
//
//   lattice  tasks whose law of tokens is fixed (or a stratum) and whose queries need one or two
//            normals: a trapezoidal rule, which converges exponentially for smooth errors. It comes in
//            two halves, each a rule of its own, the second shifted by half a step. Their mean is
//            the answer, half their difference its error.
//   net      other tasks: scrambled Sobol points mapped to normals, one net for each stratum
#pragma once

#include <vector>

#include "esscher/task/context.h"

namespace esscher {

struct WeightedNode {
  ContextNode node;
  double weight = 0;  // sum 1
};

bool has_lattice(const ContextTask& task);

// half = 0 or 1.
std::vector<WeightedNode> lattice_nodes(const ContextTask& task, int half);

// About 2^log2_count nodes in all, at least eight for each stratum.
std::vector<WeightedNode> net_nodes(const ContextTask& task, int log2_count, const Stream& stream);

}  // namespace esscher
