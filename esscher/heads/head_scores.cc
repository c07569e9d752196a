#include "esscher/heads/head_scores.h"

#include <string>
#include <utility>

#include "esscher/base/error.h"
#include "esscher/measure/empirical.h"

namespace esscher {

ScoreModel head_scores(const Head& head, Index query) {
  check_head(head);
  if (query < 0 || query >= head.n_queries) {
    throw_argument("head " + head.name, "query", std::to_string(query),
                   "an index below " + std::to_string(head.n_queries));
  }
  const Index n = head.prompt_end(query), d = head.dk + head.dv;
  Matrix tokens(n, d);
  tokens << head.K(0, n), head.V(0, n);
  Vector z = Vector::Zero(d);
  z.head(head.dk) = head.scale * head.Q(query, 1).row(0).transpose();
  Matrix V = Matrix::Zero(head.dv, d);
  V.rightCols(head.dv).setIdentity();
  return ScoreModel::layer(
      {Empirical(std::move(tokens)), Attention::from_uv(Matrix(Matrix::Identity(d, d)), V), z});
}

}  // namespace esscher
