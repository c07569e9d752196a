// Prompts of a task side by side, as training draws them: matrices whose columns are prompts, from
// sequences of float normals (random/normal_sequences.h). This takes a small part of the time of
// one node after the other (draw_node), whose law it has. Query and target are drawn together, so
// that nothing has to be known of the target given the query.
#pragma once

#include <functional>
#include <vector>

#include "esscher/random/stream.h"
#include "esscher/task/means_law.h"
#include "esscher/task/token_law.h"

namespace esscher {

// The tokens of every prompt are sum_k p_k N(m_k, F F') with means of its own.
struct SideBySide {
  struct Draws {
    Matrix means;    // [K D,n]: mean k of a prompt in rows k D .. k D + D - 1
    Matrix queries;  // [D,n]
    Matrix targets;  // [m,n]
  };
  Vector weights;  // p [K]
  Matrix factor;   // F [D,rank]
  // Prompts first .. first + n - 1. Prompt i is a pure function of (stream, i).
  std::function<Draws(const Stream& stream, Index first, Index n)> draw;

  // The law of the tokens of prompt j.
  [[nodiscard]] SharedMixture law(const Draws& draws, Index j) const;
};

// Means of a mixture, the component that each query belongs to, and more normals.
struct ComponentDraws {
  Matrix means;                   // [K d,n]
  std::vector<Index> components;  // [n], with probabilities `weights`
  Matrix normals;                 // [more,n]
  Index dim;                      // d

  // The means of the components, [d,n].
  [[nodiscard]] Matrix centres() const;
};
ComponentDraws component_draws(const MixtureMeans& means, const Vector& weights, Index more,
                               const Stream& stream, Index first, Index n);

}  // namespace esscher
