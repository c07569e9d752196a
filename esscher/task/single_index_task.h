// In-context learning of a single-index label:
//
//   w per prompt,   token (x, g(w'x) + noise),   x ~ N(0, Sigma),   query (x, 0),   target g(w'x)
//
// with w ~ N(0, s2 I_d), or uniform on the sphere of radius sqrt(s2). An infinite prompt tells w,
// so that the best prediction is g(w'x) itself. Softmax attention with an infinite prompt applies a
// smoothed link to what linear attention computes (measure/single_index.h).
#pragma once

#include "esscher/measure/link.h"
#include "esscher/task/context.h"

namespace esscher {

enum class IndexLaw { gaussian, sphere };

constexpr auto enum_names(IndexLaw) {
  return EnumNames<IndexLaw, 2>{"law of w",
                                {{{IndexLaw::gaussian, "gaussian"}, {IndexLaw::sphere, "sphere"}}}};
}

struct SingleIndexTask {
  Matrix cov;  // Sigma [d,d]
  Link link{LinkName::tanh};
  IndexLaw index_law = IndexLaw::gaussian;
  double task_variance = 1;   // s2
  double noise_variance = 0;  // on the labels of the prompt
  bool query_noise = false;   // the same noise on the target

  // Throws ArgumentError naming the field that is wrong.
  void check() const;
};

// w of d standard normals.
Vector drawn_index(const SingleIndexTask& task, const VectorView& normals);

ContextTask single_index_task(const SingleIndexTask& task);

}  // namespace esscher
